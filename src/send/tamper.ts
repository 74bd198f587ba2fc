/** Ways to send a message incorrectly, to test what an endpoint accepts and refuses. */

import { invalidOption, requireOneOf } from '../kit/checks.ts'
import { SIGNATURE_LENGTH } from '../protocol/limits.ts'
import { sign } from '../protocol/signature.ts'

/**
 * A way to change a request. A correct endpoint accepts `chunked` and `repeated`, and refuses all others:
 *
 * - `bad-signature` changes the last digit of the signature.
 * - `wrong-secret` signs with another secret.
 * - `no-signature` omits the signature.
 * - `truncated` removes the last byte of the body after signing.
 * - `reserialised` changes the white space of the body after signing, as a body parser in front of the endpoint does.
 * - `chunked` sends the body in chunks, without its length.
 * - `repeated` sends the request twice.
 */
export type Tampering =
  | 'bad-signature'
  | 'wrong-secret'
  | 'no-signature'
  | 'truncated'
  | 'reserialised'
  | 'chunked'
  | 'repeated'

export interface Tampered {
  readonly bytes: Uint8Array
  readonly signature: string | undefined
  readonly isChunked: boolean
  readonly copies: number
}

export function tamper(bytes: Uint8Array, signature: string | undefined, way: Tampering | undefined): Tampered {
  const correct = { bytes, signature, isChunked: false, copies: 1 }
  if (way === undefined) return correct
  requireOneOf('tamper', way, TAMPERINGS)
  return { ...correct, ...WAYS[way](bytes, signature) }
}

/** Functions that return the changed parts of a request, keyed by the way to change it. */
const WAYS: Readonly<Record<Tampering, (bytes: Uint8Array, signature: string | undefined) => Partial<Tampered>>> = {
  'bad-signature': (_bytes, signature) => ({ signature: flipLastDigit(requireSignature(signature)) }),
  'wrong-secret': (bytes, signature) => ({ signature: sign(bytes, `not the secret ${requireSignature(signature)}`) }),
  'no-signature': () => ({ signature: undefined }),
  truncated: (bytes) => ({ bytes: bytes.subarray(0, bytes.length - 1) }),
  reserialised: (bytes) => ({ bytes: Buffer.from(JSON.stringify(JSON.parse(Buffer.from(bytes).toString()), null, 2)) }),
  chunked: () => ({ isChunked: true }),
  repeated: () => ({ copies: 2 }),
}

export const TAMPERINGS: readonly Tampering[] = Object.keys(WAYS) as Tampering[]

function flipLastDigit(signature: string): string {
  const end = SIGNATURE_LENGTH - 1
  return signature.slice(0, end) + (signature[end] === '0' ? '1' : '0')
}

function requireSignature(signature: string | undefined): string {
  if (signature !== undefined) return signature
  throw invalidOption('tamper', 'needs a signature to change', undefined, 'Set `sharedSecret`.')
}
