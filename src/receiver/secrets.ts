/** The shared secret: constant, or from a provider whose answer is cached. */

import { HooklineError } from '../message/error.ts'
import { SECRET_COOLDOWN_MS, SECRET_MAX_AGE_MS, SECRET_RETRY_MS } from '../message/limits.ts'
import { createKeys, type Key } from '../message/signature.ts'
import { invalidOption } from '../options/checks.ts'
import type { Clock } from '../time/clock.ts'

/** One shared secret, or several while one replaces another. */
export type Secrets = string | readonly (string | undefined)[]

/** Provides the shared secret, for instance from a vault. */
export type SecretProvider = () => Secrets | undefined | Promise<Secrets | undefined>

/**
 * Finds the secret that made the signature of a delivery: its index in the list, or -1. Returns a promise only while a
 * provider is asked, and reads the bytes after that.
 *
 * @throws HooklineError (or a rejection) `secret_unavailable`.
 */
export type MatchSecret = (delivery: { readonly bytes: Uint8Array }, signature: string) => number | Promise<number>

/**
 * Prepares the secrets.
 *
 * @throws TypeError for a secret that is missing or empty, and for an empty list.
 */
export function createMatchSecret(secret: Secrets | SecretProvider | undefined, clock: Clock): MatchSecret {
  if (typeof secret === 'function') return askProvider(secret, clock)
  if (secret === undefined) {
    const advice = 'Pass the shared secret of the destination, or `allowUnsigned: true` to accept messages from anyone.'
    throw invalidOption('secret', 'is required', 'undefined', advice)
  }
  const keys = createKeys(secret)
  return ({ bytes }, signature) => indexOfMatch(keys, bytes, signature)
}

function askProvider(provider: SecretProvider, clock: Clock): MatchSecret {
  let keys: readonly Key[] = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let askedAt = Number.NEGATIVE_INFINITY
  let failure: HooklineError | undefined
  let pending: Promise<void> | undefined

  const isWithin = (ms: number, since: number): boolean => clock.monotonic() - since < ms

  const load = async (): Promise<void> => {
    const time = clock.monotonic()
    askedAt = time
    try {
      const loaded = createKeys((await provider()) ?? [])
      if (time < loadedAt) return // A later call was answered first.
      keys = loaded
      loadedAt = time
      failure = undefined
    } catch (cause) {
      const message =
        'The secret provider must return a secret. Got an error or no secret. Check the `secret` function.'
      const error = new HooklineError('secret_unavailable', message, { cause })
      if (time >= loadedAt) failure = error
      throw error
    }
  }
  /** Shares one call among all requests that wait; after the cooldown a call that hangs is replaced. */
  const ask = (): Promise<void> => {
    if (pending !== undefined && isWithin(SECRET_COOLDOWN_MS, askedAt)) return pending
    const asked = load().finally(() => {
      if (pending === asked) pending = undefined
    })
    pending = asked
    return asked
  }

  return (delivery, signature) => {
    const find = (): number => indexOfMatch(keys, delivery.bytes, signature)
    if (!isWithin(SECRET_MAX_AGE_MS, loadedAt)) {
      if (failure !== undefined && isWithin(SECRET_RETRY_MS, askedAt)) throw failure
      return ask().then(find)
    }
    const index = find()
    if (index !== -1) return index
    if (pending !== undefined || !isWithin(SECRET_COOLDOWN_MS, askedAt)) return ask().then(find)
    if (failure !== undefined) throw failure // A newer secret may exist that the provider could not return.
    return -1
  }
}

function indexOfMatch(keys: readonly Key[], bytes: Uint8Array, signature: string): number {
  return keys.findIndex((key) => key.matches(bytes, signature))
}
