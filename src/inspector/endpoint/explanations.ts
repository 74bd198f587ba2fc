/** Explains why the signature of a kept request was refused: when its message is opened, in a thread of its own. */

import type { Receiver } from '../../receiver/api.ts'
import { secretsOf } from '../../receiver/inspected.ts'
import type { Clock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import { createExplainer } from '../explainer.ts'
import type { Refused } from '../journal.ts'
import { Refusal } from './answers.ts'

/** How long a provider of secrets may take. */
const SECRETS_MS = 5_000
/** The most secrets that are tried: each takes up to a second. */
const MAX_SECRETS = 3

/**
 * @param receivers By name.
 * @param machine The clock of the machine.
 * @throws Refusal (as a rejection of `explain`) when there is no secret to explain with, and while too many wait.
 */
export function createExplanations(receivers: ReadonlyMap<string, Receiver>, machine: Clock) {
  const explainer = createExplainer()

  async function readSecrets({ part, path, headers }: Refused): Promise<readonly string[]> {
    const receiver = receivers.get(part)
    if (receiver === undefined) return []
    // What a provider throws may hold anything: the receiver has reported it where the app wants that.
    const secrets = await within(secretsOf(receiver, { path, headers }), SECRETS_MS, machine).catch(() => TIMED_OUT)
    if (typeof secrets !== 'symbol') return secrets.filter((secret) => secret !== '').slice(0, MAX_SECRETS)
    const text = 'The secret of the receiver cannot be read. Its provider failed, or took too long. Try again later.'
    throw new Refusal(503, text)
  }

  return {
    async explain(refused: Refused): Promise<string> {
      const secrets = await readSecrets(refused)
      if (secrets.length === 0) {
        return 'No secret is known for this request: its source is unknown. Check the path, or what `secret.source` reads.'
      }
      const given = refused.headers['x-signature']
      const signature = typeof given === 'string' ? given : given?.join(', ')
      if (signature === '') {
        return 'Its X-Signature is empty, or was not kept in the file because it may be the secret itself. Have the message sent again.'
      }
      let first: string | undefined
      for (const secret of secrets) {
        const explanation = await explainer.explain(refused.bytes, signature, secret)
        if (explanation === undefined) {
          const text = 'The signature was not explained. Its body is too large, or too many wait. Try again later.'
          throw new Refusal(503, text)
        }
        if (explanation.verdict !== 'unexplained') return explanation.message
        first ??= explanation.message
      }
      return first as string
    },
    close: explainer.close,
  }
}
