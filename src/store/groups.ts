/** The option `groupBy` of inboxes and destinations. */

import { hash } from 'node:crypto'
import { invalidOption, kindOf, requireFunction } from '../kit/checks.ts'
import { GROUP_ADVICE } from './arguments.ts'
import type { Queue } from './queue-types.ts'

/**
 * Checks the option `groupBy`, which needs a queue with groups.
 *
 * @param place The beginning of the option's name in errors, such as `inbox.`.
 * @throws TypeError that names the invalid option.
 */
export function checkGroupBy(place: string, groupBy: unknown, { hasGroups }: Queue): void {
  if (groupBy === undefined) return
  requireFunction(`${place}groupBy`, groupBy)
  if (hasGroups !== true) throw new TypeError(`\`${place}groupBy\` needs a queue with groups. ${GROUP_ADVICE}`)
}

/** Checks and returns the group that a `groupBy` function returned. Returns undefined if the job has no group. */
export function readGroup(place: string, group: unknown): string | undefined {
  if (group === undefined || group === null || group === '') return undefined
  if (typeof group === 'string') return group
  const advice = 'Return the key of the group, for example the userId.'
  throw invalidOption(`${place}groupBy()`, 'must return a string, null or undefined', kindOf(group), advice)
}

/**
 * Returns a digest of 12 hexadecimal digits to store in place of the name of a group, because the name may identify a person. Two names
 * with the same digest form one group.
 */
export function digestOf(group: string): string {
  return hash('sha1', group, 'hex').slice(0, 12)
}
