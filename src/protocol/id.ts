/** Creates the ids of messages as UUIDs: new ids, and ids that are derived from a key or a digest. */

import { hash, randomUUID } from 'node:crypto'

/**
 * Creates a UUID of version 7 (RFC 9562, section 5.7): the time, then random digits. Ids that begin with the time are appended to an index;
 * SQLite would write each random id to a different page.
 */
export function newId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/**
 * Creates a UUID of version 8 (RFC 9562, section 5.8) from the beginning of a digest.
 *
 * @param digest At least 32 hexadecimal digits.
 */
export function idOfDigest(digest: string): string {
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

/** Returns the UUID of a key. The same key always has the same UUID. */
export function idOfKey(key: string): string {
  return idOfDigest(hash('sha256', key))
}
