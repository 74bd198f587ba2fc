/** Checks who sent a delivery: its signature, over its exact bytes. */

import { bodyConsumed, isExact, KEEP_THE_BYTES } from '../protocol/body.ts'
import { HooklineError } from '../protocol/error.ts'
import { isWellFormed } from '../protocol/signature.ts'
import type { OpenDelivery } from './delivery.ts'
import type { MatchSecret } from './secrets.ts'

/**
 * Notes on a delivery which secret signed it. At once where the secret is known.
 *
 * @throws HooklineError (or a rejection) for a signature that is missing or wrong, and `secret_unavailable`.
 */
export type Authenticate = (delivery: OpenDelivery) => void | Promise<void>

/** Prepares the check; without secrets, everybody passes. */
export function createAuthenticate(matchSecret: MatchSecret | undefined): Authenticate {
  let hasWarned = false

  return (delivery) => {
    if (delivery.source === 'reserialised') warnOnce()
    if (matchSecret === undefined) return
    const signature = delivery.headers['x-signature']
    if (signature === undefined) {
      throw new HooklineError('signature_missing', 'The request is not signed: it has no X-Signature header.')
    }
    if (!isWellFormed(signature)) {
      throw new HooklineError('signature_malformed', 'X-Signature is not 40 lowercase hexadecimal digits.')
    }
    const confirm = (index: number): void => {
      if (index === -1) throw mismatch(delivery)
      delivery.confirm(signature, index)
    }
    const index = matchSecret(delivery.bytes, signature)
    return typeof index === 'number' ? confirm(index) : index.then(confirm)
  }

  function warnOnce(): void {
    if (hasWarned) return
    hasWarned = true
    process.emitWarning(
      `Signatures are checked over JSON.stringify(body), which is not always what was sent. ${KEEP_THE_BYTES}`,
      { code: 'HOOKLINE_RESERIALISED' },
    )
  }
}

function mismatch({ source }: OpenDelivery): HooklineError {
  if (!isExact(source)) return bodyConsumed('its exact bytes were not kept')
  return new HooklineError('signature_mismatch', 'X-Signature is not the signature of this body.')
}
