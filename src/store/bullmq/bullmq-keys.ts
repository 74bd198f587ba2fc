/** The keys in Redis that belong to Hookline, next to those of BullMQ. */

/**
 * Returns the beginning of Hookline's keys for a queue. It is not `<prefix>:<name>:`, because the BullMQ tools delete all keys that begin
 * with that and do not belong to BullMQ.
 */
export function keyOf(prefix: string, name: string): string {
  return `${namesKeyOf(prefix)}:${name}`
}

export function namesKeyOf(prefix: string): string {
  return `${prefix}-hookline`
}
