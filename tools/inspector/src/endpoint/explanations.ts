/** Explains why the signature of a kept request was refused, when a user opens the request. */

import type { Clock, Receiver } from 'hookline'
import { explainSignature } from 'hookline/testing'
import { secretsOf, TIMED_OUT, withTimeout } from '../../../../src/internals.ts'
import type { Refused } from '../journal.ts'
import { Refusal } from './answers.ts'

/** The timeout of a provider of secrets, in milliseconds. */
const SECRETS_MS = 5_000
/** The maximum size of a body to explain, in bytes: the default body limit of a receiver. */
const MAX_BODY_BYTES = 512 * 1024
/** The maximum number of secrets to try. */
const MAX_SECRETS = 3
/** The maximum number of bytes to hash for all secrets together: about 0.1 seconds of work, whatever an untrusted request contains. */
const MAX_BYTES = 40_000_000

/**
 * @param receivers The receivers, keyed by name.
 * @param machine The system clock.
 * @returns A function that explains a refused signature. The function rejects with a Refusal when the secret cannot be
 *   read, or when the body is too large.
 */
export function createExplain(receivers: ReadonlyMap<string, Receiver>, machine: Clock) {
  async function readSecrets({ part, path, headers }: Refused): Promise<readonly string[]> {
    const receiver = receivers.get(part)
    if (receiver === undefined) return []
    // The error of a provider is not shown, because it may contain secrets. The receiver has already reported the error.
    const secrets = await withTimeout(secretsOf(receiver, { path, query: '', headers }), SECRETS_MS, machine).catch(
      () => TIMED_OUT,
    )
    if (typeof secrets !== 'symbol') return secrets.filter((secret) => secret !== '').slice(0, MAX_SECRETS)
    const text = 'The secret of the receiver cannot be read. Its provider failed, or took too long. Try again later.'
    throw new Refusal(503, text)
  }

  return async (refused: Refused): Promise<string> => {
    const secrets = await readSecrets(refused)
    if (secrets.length === 0) {
      return 'No secret is known for this request: its source is unknown, or is named by the query, which is not kept. Check the path, or the part of the request that `secret.source` reads.'
    }
    if (refused.bytes.length > MAX_BODY_BYTES) {
      throw new Refusal(503, 'The body is too large to explain here. Run `hookline verify` on the body instead.')
    }
    const given = refused.headers['x-signature']
    const signature = typeof given === 'string' ? given : given?.join(', ')
    const bound = { maxBytes: MAX_BYTES / secrets.length }
    const found = secrets.map((secret) => explainSignature(refused.bytes, signature, secret, bound))
    return (found.find(({ verdict }) => verdict !== 'unexplained') ?? found[0])?.message ?? ''
  }
}
