/** Ids of messages on their way, as UUIDs: new ones, and ones made from what tells a message from others. */

import { hash, randomUUID } from 'node:crypto'

/** A new UUID, of version 7. It begins with the time, so that an index appends it: SQLite writes a random one to a page of its own. */
export function newId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** @param digest 32 hexadecimal digits or more. */
export function idOfDigest(digest: string): string {
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

export function idOfKey(key: string): string {
  return idOfDigest(hash('sha256', key))
}
