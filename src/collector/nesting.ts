/** How deep the JSON of a call may nest: parsing takes any depth, what comes after it does not. */

/**
 * Far more than calls have, and far less than the stack holds: JSON.stringify overflows after some thousands. A call that
 * overflowed on its way out would be retried for nothing.
 */
const NESTING_LIMIT = 500

/** Whether values stand in more than 500 objects or lists inside one another. */
export function nestsTooDeep(value: unknown, levels: number = NESTING_LIMIT): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  return Object.values(value).some((child) => nestsTooDeep(child, levels - 1))
}
