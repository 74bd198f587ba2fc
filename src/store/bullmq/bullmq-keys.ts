/** The keys of Redis that are Hookline's own, beside those of BullMQ. */

/** Returns how the keys of Hookline for a queue begin: not with `<prefix>:<name>:`, where the tools of BullMQ delete keys that are not BullMQ's. */
export function keyOf(prefix: string, name: string): string {
  return `${namesKeyOf(prefix)}:${name}`
}

export function namesKeyOf(prefix: string): string {
  return `${prefix}-hookline`
}
