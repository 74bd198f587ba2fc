/** The cheapest HMAC-SHA1 that we know: two one-shot hashes over pads that are there already. Part of the floors. */

import { hash } from 'node:crypto'
import { secret } from './message.ts'

const BLOCK = 64
const block = Buffer.alloc(BLOCK)
block.write(secret)
const inner = Buffer.alloc(BLOCK + 64 * 1024)
inner.set(block.map((byte) => byte ^ 0x36))
const outer = Buffer.alloc(BLOCK + 20)
outer.set(block.map((byte) => byte ^ 0x5c))

/** Signs bytes, 64 KB at most, with the secret of the benchmark: hexadecimal digits. */
export function signBytes(bytes: Uint8Array): string {
  inner.set(bytes, BLOCK)
  outer.write(hash('sha1', inner.subarray(0, BLOCK + bytes.length), 'binary'), BLOCK, 'latin1')
  return hash('sha1', outer, 'hex')
}
