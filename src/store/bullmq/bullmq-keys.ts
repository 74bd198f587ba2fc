/** Hookline's own keys in Redis, beside those of BullMQ. */

/**
 * Returns the beginning of Hookline's keys for a queue. It is not `<prefix>:<name>:`, because BullMQ's tools delete keys there that are not
 * BullMQ's.
 */
export function keyOf(prefix: string, name: string): string {
  return `${namesKeyOf(prefix)}:${name}`
}

export function namesKeyOf(prefix: string): string {
  return `${prefix}-hookline`
}
