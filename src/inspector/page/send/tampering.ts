/** Ways to send a message incorrectly, in words. */

import type { Tampering } from '../../../sender/tamper.ts'

/** What each of them does, and what a correct endpoint answers. */
export const TAMPERINGS: Readonly<Record<Tampering, string>> = {
  'bad-signature': 'Changes a digit of the signature. A correct endpoint refuses it.',
  'wrong-secret': 'Signs with another secret. A correct endpoint refuses it.',
  'no-signature': 'Leaves the signature out. A correct endpoint refuses it.',
  truncated: 'Cuts the last byte of the body after signing. A correct endpoint refuses it.',
  reserialised:
    'Writes the JSON with other spaces after signing, as a body parser does. A correct endpoint refuses it.',
  chunked: 'Sends the body in chunks, without its length. A correct endpoint accepts it.',
  repeated: 'Sends the request twice. A correct endpoint accepts both, and handles one.',
}
