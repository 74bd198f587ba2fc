/** The options `groupBy` and `holdGroup` of inboxes and destinations. */

import { hash } from 'node:crypto'
import { invalidOption, kindOf, requireBoolean, requireFunction } from '../options/checks.ts'
import type { HandleJob, Queue } from './api.ts'
import { GROUP_ADVICE } from './arguments.ts'

interface GroupOptions {
  readonly groupBy?: (...args: never[]) => string | null | undefined
  readonly holdGroup?: boolean
}

/** @throws TypeError that names the option, in `place`. */
export function checkGroups(place: string, { groupBy, holdGroup }: GroupOptions, { groups }: Queue): void {
  if (groupBy !== undefined) requireFunction(`${place}groupBy`, groupBy)
  if (holdGroup !== undefined) requireBoolean(`${place}holdGroup`, holdGroup)
  if (groupBy !== undefined && groups === undefined) {
    throw invalidOption(`${place}groupBy`, 'needs a queue with groups', 'another one', GROUP_ADVICE)
  }
  if (!holdGroup) return
  const name = `${place}holdGroup`
  if (groupBy === undefined) throw invalidOption(name, 'needs `groupBy`', 'none', 'Pass both, or leave it out.')
  if (groups?.canHold) return
  throw invalidOption(name, 'needs a queue that can hold a group', 'another one', 'Use sqliteQueue or memoryQueue.')
}

/** What a `groupBy` returned. */
export function readGroup(place: string, group: unknown): string | undefined {
  if (group === undefined || group === null || group === '') return undefined
  if (typeof group === 'string') return group
  const advice = 'Return what identifies the group, for example the userId.'
  throw invalidOption(`${place}groupBy()`, 'must return a string, null or undefined', kindOf(group), advice)
}

/** A handler whose retries hold their groups. */
export function holding(handle: HandleJob): HandleJob {
  return async (...claimed) => {
    const outcome = await handle(...claimed)
    return 'retryAt' in outcome ? { ...outcome, holdsGroup: true } : outcome
  }
}

/** Stored in place of the name, which may be that of a person: 12 hexadecimal digits. Two names with one digest are one group. */
export function digestOf(group: string): string {
  return hash('sha1', group, 'hex').slice(0, 12)
}
