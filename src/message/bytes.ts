/** Checks arguments that must be bytes. */

import { isUint8Array } from 'node:util/types'
import { kindOf } from './error.ts'

export function requireBytes(value: unknown, name: string): Uint8Array {
  if (isUint8Array(value)) return value // instanceof fails across realms, as under Jest with jsdom
  throw new TypeError(
    `${name} must be the exact bytes as a Uint8Array. Got ${kindOf(value)}. Pass the bytes as they are on the wire, not decoded or parsed.`,
  )
}
