/** What a provider of secrets answered: asked for when it is needed, once for all requests that wait, and kept for a while. */

import type { OpenDelivery } from '../handling/open-delivery.ts'
import { HooklineError } from '../message/error.ts'
import { SECRET_COOLDOWN_MS, SECRET_MAX_AGE_MS, SECRET_RETRY_MS } from '../message/limits.ts'
import type { Key } from '../message/signature.ts'
import { type Clock, inBackground } from '../time/clock.ts'
import { TIMED_OUT, within } from '../time/timeout.ts'

type Signed = Pick<OpenDelivery, 'isSignedBy'>

export interface SecretCache {
  readonly isKnown: boolean
  readonly isAsking: boolean
  /**
   * Finds the secret that made the signature of a delivery: its index, or -1. Reads the bytes after the provider has
   * answered: a delivery that is answered before that holds none.
   */
  match(delivery: Signed, signature: string): number | Promise<number>
}

export function createSecretCache(load: () => Promise<readonly Key[]>, clock: Clock): SecretCache {
  let keys: readonly Key[] = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let askedAt = Number.NEGATIVE_INFINITY
  let failure: HooklineError | undefined
  let pending: Promise<void> | undefined

  const isWithin = (ms: number, since: number): boolean => clock.monotonic() - since < ms

  async function loadOnce(): Promise<void> {
    const time = clock.monotonic()
    askedAt = time
    try {
      const loaded = await load()
      if (time < loadedAt) return // A later call was answered first.
      keys = loaded
      loadedAt = time
      failure = undefined
    } catch (cause) {
      const text =
        'The secret provider must return a secret. Got an error or no secret. See `cause` of this error in `onError`.'
      const error = new HooklineError('secret_unavailable', text, { cause })
      if (time >= loadedAt) failure = error
      throw error
    }
  }

  /** Shares one call among all requests that wait. Of a call that hangs nothing is left after the cooldown but itself. */
  function ask(): Promise<void> {
    if (pending !== undefined && isWithin(SECRET_COOLDOWN_MS, askedAt)) return pending
    const asked = askInTime().finally(() => {
      if (pending === asked) pending = undefined
    })
    pending = asked
    return asked
  }

  async function askInTime(): Promise<void> {
    if ((await within(loadOnce(), SECRET_COOLDOWN_MS, inBackground(clock))) !== TIMED_OUT) return
    const text = 'The secret provider must answer in time. Got no answer. Make it answer or fail sooner.'
    throw new HooklineError('secret_unavailable', text)
  }

  return {
    get isKnown() {
      return keys.length > 0
    },
    get isAsking() {
      return pending !== undefined
    },
    match(delivery, signature) {
      const find = (): number => indexOfMatch(keys, delivery, signature)
      if (!isWithin(SECRET_MAX_AGE_MS, loadedAt)) {
        if (failure !== undefined && isWithin(SECRET_RETRY_MS, askedAt)) throw failure
        return ask().then(find)
      }
      const index = find()
      if (index !== -1) return index
      if (pending !== undefined || !isWithin(SECRET_COOLDOWN_MS, askedAt)) return ask().then(find)
      if (failure !== undefined) throw failure // A newer secret may exist that the provider could not return.
      return -1
    },
  }
}

export function indexOfMatch(keys: readonly Key[], delivery: Signed, signature: string): number {
  return keys.findIndex((key) => delivery.isSignedBy(key, signature))
}
