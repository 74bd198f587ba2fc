/** Checks the signature of a request, or the header in its place. Fails closed. */

import { bodyConsumed, type EndpointBody, isExact, KEEP_THE_BYTES } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import { shownUrl } from '../kit/shown.ts'
import { HooklineError } from '../protocol/error.ts'
import { createKey, isWellFormed, type Key } from '../protocol/signature.ts'
import type { Deadline } from './deadline.ts'
import { MISMATCH } from './log-lines.ts'
import { NO_PROOF, type Proof } from './received-delivery.ts'
import type { FindKeys, SourceRequest } from './secrets.ts'

/** The header that a sender adds in place of a signature. */
export interface GivenHeader {
  readonly name: string
  /** Its value in this request. */
  readonly value: EndpointHeaders[string]
}

/**
 * Returns which secret signed the bytes.
 *
 * @param header In place of a signature.
 * @throws HooklineError (as a rejection) `signature_missing`, `signature_malformed`, `signature_mismatch`, `header_missing`,
 *   `header_mismatch`, `source_unknown`, `secret_unavailable`, `body_consumed`.
 */
export async function verifyRequest(
  findKeys: FindKeys | undefined,
  request: SourceRequest,
  { bytes, source: bodySource }: EndpointBody,
  header: GivenHeader | undefined,
  deadline: Deadline,
): Promise<Proof> {
  if (findKeys === undefined) return NO_PROOF
  const { headers } = request
  const signature = header === undefined ? readSignature(headers) : signWith(header, bytes)
  const { source, keys, newerKeys } = findKeys(request)
  let found = await deadline.wait(keys())
  let index = indexOfSigner(found, bytes, signature)
  const newer = index === -1 ? newerKeys() : undefined
  if (newer !== undefined) {
    found = await deadline.wait(newer)
    index = indexOfSigner(found, bytes, signature)
  }
  if (index !== -1) {
    // The last secret is the oldest: a retry that the sender signs with a newer one is the same delivery.
    const id = index === found.length - 1 ? signature : (found.at(-1) as Key).sign(bytes)
    return { verified: header === undefined ? 'signature' : 'header', signature: id, secretIndex: index, source }
  }
  if (header !== undefined) throw new HooklineError('header_mismatch', anotherValue(header.name))
  if (!isExact(bytes, bodySource, headers['content-length'])) {
    throw bodyConsumed('a copy that it does not match', `${KEEP_THE_BYTES} A wrong secret is answered 401 then.`)
  }
  throw found.length === 0 ? sourceUnknown(request.path) : new HooklineError('signature_mismatch', MISMATCH)
}

/** Stands for the secret of a source without one, which would be answered sooner otherwise: a stranger could tell. */
const DECOY = createKey(Buffer.from('decoy'))

function indexOfSigner(keys: readonly Key[], bytes: Uint8Array, signature: string): number {
  if (keys.length === 0) DECOY.matches(bytes, signature)
  return keys.findIndex((key) => key.matches(bytes, signature))
}

function readSignature(headers: EndpointHeaders): string {
  const signature = headers['x-signature']
  if (signature === undefined) {
    const text = 'The request must be signed. Got no X-Signature header. Sign the body with the shared secret.'
    throw new HooklineError('signature_missing', text)
  }
  if (isWellFormed(signature)) return signature
  const text = 'X-Signature must be 40 lowercase hex digits. Got another value. Send the HMAC-SHA1 of the body.'
  throw new HooklineError('signature_malformed', text)
}

/** Returns the signature that the header would have made: the comparison of both is that of signatures. */
function signWith({ name, value }: GivenHeader, bytes: Uint8Array): string {
  if (typeof value === 'object' && value.length > 1) throw new HooklineError('header_mismatch', anotherValue(name))
  if (value !== undefined && value.length > 0) return createKey(Buffer.from(String(value))).sign(bytes)
  const text = `The request must have the header ${name}. Got none. Set it at the sender.`
  throw new HooklineError('header_missing', text)
}

function anotherValue(name: string): string {
  return `The header ${name} must have the right value. Got another one. Set it at the sender.`
}

/** So many characters of a path are shown: a stranger chose them. */
const MAX_PATH = 100

function sourceUnknown(path: string): HooklineError {
  const found = JSON.stringify(shownUrl(path).slice(0, MAX_PATH))
  const advice =
    'Return its name from `secret.source` and its secret from `secret.secrets`. Else the request is forged.'
  return new HooklineError(
    'source_unknown',
    `The source of the request must have a secret. Got the path ${found}. ${advice}`,
  )
}
