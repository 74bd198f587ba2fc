/** Where the shared secret comes from: given once, or asked of a provider and kept for a while. */

import type { Clock } from '../protocol/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import { SECRET_COOLDOWN_MS, SECRET_MAX_AGE_MS, SECRET_RETRY_MS } from '../protocol/limits.ts'
import { createKeys, type Key } from '../protocol/signature.ts'

/** One shared secret, or several while one replaces another. */
export type Secrets = string | readonly (string | undefined)[]

/** Asks for the shared secret, for instance in a vault. */
export type SecretProvider = () => Secrets | undefined | Promise<Secrets | undefined>

/**
 * Finds the secret that made a signature: its place in the list, or -1. At once where the secret is known.
 *
 * @throws HooklineError (or a rejection) `secret_unavailable`.
 */
export type MatchSecret = (bytes: Uint8Array, signature: string) => number | Promise<number>

/**
 * Prepares the secrets.
 *
 * @throws TypeError for a secret that is missing or empty, and for an empty list.
 */
export function createMatchSecret(secret: Secrets | SecretProvider | undefined, clock: Clock): MatchSecret {
  if (typeof secret === 'function') return askProvider(secret, clock)
  if (secret === undefined) {
    throw new TypeError(
      'secret: missing. Give the shared secret of the destination, or allowUnsigned: true to accept messages from anybody.',
    )
  }
  const keys = createKeys(secret)
  return (bytes, signature) => indexOfMatch(keys, bytes, signature)
}

function askProvider(provider: SecretProvider, clock: Clock): MatchSecret {
  let keys: readonly Key[] = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let askedAt = Number.NEGATIVE_INFINITY
  let failure: HooklineError | undefined
  let question: Promise<void> | undefined

  const isWithin = (ms: number, since: number): boolean => clock.monotonic() - since < ms

  const load = async (): Promise<void> => {
    const time = clock.monotonic()
    askedAt = time
    try {
      const loaded = createKeys((await provider()) ?? [])
      if (time < loadedAt) return // A later question was answered sooner.
      keys = loaded
      loadedAt = time
      failure = undefined
    } catch (cause) {
      const error = new HooklineError('secret_unavailable', 'The secret provider gave no secret.', { cause })
      if (time >= loadedAt) failure = error
      throw error
    }
  }
  /** Asks once for all that wait; a question that got no answer for long is asked again. */
  const ask = (): Promise<void> => {
    if (question !== undefined && isWithin(SECRET_COOLDOWN_MS, askedAt)) return question
    const asked = load().finally(() => {
      if (question === asked) question = undefined
    })
    question = asked
    return asked
  }

  return (bytes, signature) => {
    const find = (): number => indexOfMatch(keys, bytes, signature)
    if (!isWithin(SECRET_MAX_AGE_MS, loadedAt)) {
      if (failure !== undefined && isWithin(SECRET_RETRY_MS, askedAt)) throw failure
      return ask().then(find)
    }
    const index = find()
    if (index !== -1) return index
    if (question !== undefined || !isWithin(SECRET_COOLDOWN_MS, askedAt)) return ask().then(find)
    if (failure !== undefined) throw failure // A newer secret may be there; nobody could tell us.
    return -1
  }
}

function indexOfMatch(keys: readonly Key[], bytes: Uint8Array, signature: string): number {
  return keys.findIndex((key) => key.matches(bytes, signature))
}
