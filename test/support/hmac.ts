/** Node's own HMAC-SHA1, against which ours is held. */

import { createHmac } from 'node:crypto'

export function hmac(bytes: Uint8Array, secret: string): string {
  return createHmac('sha1', secret).update(bytes).digest('hex')
}
