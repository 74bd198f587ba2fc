/** Checks the signature of a request, or the header that replaces it. A request that cannot be checked is refused. */

import { bodyConsumed, type EndpointBody, isExact, KEEP_THE_BYTES } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import { isThenable } from '../kit/callbacks.ts'
import { shownUrl } from '../kit/shown.ts'
import { HooklineError } from '../protocol/error.ts'
import { createKey, isWellFormed, type Key } from '../protocol/signature.ts'
import type { Deadline } from './deadline.ts'
import type { FailedRequest } from './events.ts'
import { MISMATCH } from './log-lines.ts'
import { NO_PROOF, type Proof } from './received-delivery.ts'
import type { FindKeys, SourceRequest } from './secrets.ts'

/** A request as it arrived. A call to `receive` has no method. */
export interface GivenRequest extends FailedRequest {
  readonly method?: string | undefined
  readonly query?: string | undefined
  readonly rawHeaders?: readonly string[] | undefined
}

/** The header that holds the secret, in place of a signature. */
export interface GivenHeader {
  readonly name: string
  /** The value of the header in this request; a list when the header is repeated. */
  readonly value: EndpointHeaders[string]
}

export function readHeader({ headers, rawHeaders = [] }: GivenRequest, name: string): GivenHeader {
  // In `rawHeaders`, names are at even indexes, and each is followed by its value. `headers` would have only the first value of some
  // headers.
  const values = rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name)
  return { name, value: values.length > 1 ? values : headers[name] }
}

/** Copies a request without the header that holds the secret, so that observers, logs and the inbox do not get the secret. */
export function withoutHeader(request: GivenRequest, name: string): GivenRequest {
  const { [name]: _, ...headers } = request.headers
  const { method, path, query, remoteAddress } = request
  return { method, headers, path, query, remoteAddress }
}

/**
 * Verifies a request: finds the secret with which its bytes were signed.
 *
 * @param header The header that is checked in place of a signature.
 * @throws HooklineError (as a rejection) `signature_missing`, `signature_malformed`, `signature_mismatch`,
 *   `header_missing`, `header_mismatch`, `source_unknown`, `secret_unavailable`, `body_consumed`.
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
  const cached = keys()
  let tried = isThenable(cached) ? await deadline.wait(cached) : cached
  let index = indexOfSigner(tried, bytes, signature)
  const newer = index === -1 ? newerKeys() : undefined
  if (newer !== undefined) {
    tried = await deadline.wait(newer)
    index = indexOfSigner(tried, bytes, signature)
  }
  if (index !== -1) {
    // The id of the delivery is derived from the signature with the last, oldest secret, so that a retry that is signed with a newer secret
    // has the same id.
    const oldest = index === tried.length - 1 ? signature : (tried.at(-1) as Key).sign(bytes)
    return { verified: header === undefined ? 'signature' : 'header', signature: oldest, secretIndex: index, source }
  }
  if (header !== undefined) throw headerMismatch(header.name)
  if (!isExact(bytes, bodySource, headers['content-length'])) {
    throw bodyConsumed(
      'a copy of the body that the signature does not match',
      `${KEEP_THE_BYTES} The secret may be wrong, too: that shows only once the bytes are kept, as a 401.`,
    )
  }
  throw tried.length === 0 ? sourceUnknown(request.path) : new HooklineError('signature_mismatch', MISMATCH)
}

/**
 * The key to try for a source without a secret. If no key were tried, the answer would come sooner, and a stranger could tell which sources
 * exist.
 */
const DECOY = createKey(Buffer.from('decoy'))

function indexOfSigner(keys: readonly Key[], bytes: Uint8Array, signature: string): number {
  if (keys.length === 0) DECOY.matches(bytes, signature)
  return keys.findIndex((key) => key.matches(bytes, signature))
}

function readSignature(headers: EndpointHeaders): string {
  const signature = headers['x-signature']
  if (signature === undefined) {
    const text = 'The request is not signed: it has no X-Signature header. Sign the body with the shared secret.'
    throw new HooklineError('signature_missing', text)
  }
  if (isWellFormed(signature)) return signature
  const text = 'X-Signature must be 40 lowercase hex digits. Send the HMAC-SHA1 of the body.'
  throw new HooklineError('signature_malformed', text)
}

/** Signs the bytes with the value of the header, so that comparing signatures compares the value with the secrets. */
function signWith({ name, value }: GivenHeader, bytes: Uint8Array): string {
  if (typeof value === 'object' && value.length > 1) throw headerMismatch(name)
  if (value !== undefined && value.length > 0) return createKey(Buffer.from(String(value))).sign(bytes)
  const text = `The request does not have the header ${name}. Set it in the sender's settings.`
  throw new HooklineError('header_missing', text)
}

function headerMismatch(name: string): HooklineError {
  return new HooklineError(
    'header_mismatch',
    `The header ${name} does not have the expected value. Correct it in the sender's settings.`,
  )
}

/** The maximum number of characters of the path to show in an error, because a stranger may have chosen the path. */
const MAX_PATH = 100

function sourceUnknown(path: string): HooklineError {
  const shown = JSON.stringify(shownUrl(path).slice(0, MAX_PATH))
  const advice =
    'Unless the request is forged, return the name of the source from `secret.source` and its secret from `secret.secrets`.'
  return new HooklineError('source_unknown', `The source of the request at ${shown} has no secret. ${advice}`)
}
