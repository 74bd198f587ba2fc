/** Ids of jobs, made from what the caller knows the work by. */

import { createHash } from 'node:crypto'

/** A UUID, the same one for the same digest: at least 32 hexadecimal digits, in lower case. */
export function jobIdOf(digest: string): string {
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

/** A UUID, the same one for the same key. */
export function jobIdFromKey(key: string): string {
  return jobIdOf(createHash('sha256').update(key).digest('hex'))
}
