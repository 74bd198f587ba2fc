/** The keys of Hookline in Redis, which are separate from those of BullMQ. */

/**
 * Returns the beginning of Hookline's keys for a queue. It is not `<prefix>:<name>:`, because the BullMQ tools delete
 * keys that begin in this way but do not belong to BullMQ.
 */
export function keyOf(prefix: string, name: string): string {
  return `${namesKeyOf(prefix)}:${name}`
}

export function namesKeyOf(prefix: string): string {
  return `${prefix}-hookline`
}
