/** Ways to send a message wrongly, to see that an endpoint refuses it, or takes it all the same. */

import { SIGNATURE_LENGTH } from '../protocol/limits.ts'
import { sign } from '../protocol/signature.ts'

/**
 * What to do to a request:
 * `bad-signature` is well-formed and wrong; `wrong-secret` is the signature under another secret; `no-signature` leaves it
 * out; `truncated` cuts the body after it was signed; `reserialised` changes the body's spaces after it was signed, as a
 * parser in between does; `chunked` sends the body in chunks, without its length; `repeated` sends the request twice.
 * An endpoint takes the last two, and refuses the others.
 */
export type Tampering =
  | 'bad-signature'
  | 'wrong-secret'
  | 'no-signature'
  | 'truncated'
  | 'reserialised'
  | 'chunked'
  | 'repeated'

/** What is sent. */
export interface Tampered {
  readonly bytes: Uint8Array
  readonly signature: string | undefined
  /** In chunks, without a length. */
  readonly isChunked: boolean
  /** How often. */
  readonly copies: number
}

/**
 * Does it.
 *
 * @throws TypeError for an unknown way, and for one about signatures where nothing is signed.
 */
export function tamper(bytes: Uint8Array, signature: string | undefined, way: Tampering | undefined): Tampered {
  const plain = { bytes, signature, isChunked: false, copies: 1 }
  if (way === undefined) return plain
  if (!Object.hasOwn(WAYS, way)) throw new TypeError(`tamper: must be one of ${Object.keys(WAYS).join(', ')}.`)
  return { ...plain, ...WAYS[way](bytes, signature) }
}

const WAYS: Readonly<Record<Tampering, (bytes: Uint8Array, signature: string | undefined) => Partial<Tampered>>> = {
  'bad-signature': (_bytes, signature) => ({ signature: flipLast(required(signature)) }),
  'wrong-secret': (bytes, signature) => ({ signature: sign(bytes, `not the secret ${required(signature)}`) }),
  'no-signature': () => ({ signature: undefined }),
  truncated: (bytes) => ({ bytes: bytes.subarray(0, bytes.length - 1) }),
  reserialised: (bytes) => ({ bytes: Buffer.from(JSON.stringify(JSON.parse(Buffer.from(bytes).toString()), null, 2)) }),
  chunked: () => ({ isChunked: true }),
  repeated: () => ({ copies: 2 }),
}

function flipLast(signature: string): string {
  const end = SIGNATURE_LENGTH - 1
  return signature.slice(0, end) + (signature[end] === '0' ? '1' : '0')
}

function required(signature: string | undefined): string {
  if (signature === undefined) throw new TypeError('tamper: there is no signature to change. Give a sharedSecret.')
  return signature
}
