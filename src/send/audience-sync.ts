/** Syncs audiences and computed traits: queues an identify call for each change since the previous sync. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { invalidOption, kindOf, refuseUnknown } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { traitName } from '../protocol/audience.ts'
import { HooklineError } from '../protocol/error.ts'
import { type Composed, composeCall } from './compose-call.ts'
import type { Destination, Queued, SyncOptions } from './destination-types.ts'

export interface SyncTarget {
  readonly clock: Clock
  push(composed: readonly Composed[]): Promise<readonly Queued[]>
  isEmpty(): Promise<boolean>
}

interface Change<Value> {
  readonly userId: string
  readonly value: Value
  readonly isRemoved: boolean
}

/** The maximum number of calls to queue in one push. */
const MAX_CHUNK = 500

/** The wait before the next push after the queue was full, in milliseconds. */
const FULL_MS = 1_000

export function createAudienceSync(target: SyncTarget): Pick<Destination, 'syncAudience' | 'syncTrait'> {
  return {
    syncAudience: async (name, members, options = {}) => {
      refuseUnknown(options, ['previous'])
      const current = mapMembers(members, 'members')
      const synced = mapMembers(options.previous ?? [], 'previous')
      await queueChanges<boolean>(target, traitName(name), current, synced, false)
      return new Set(synced.keys())
    },
    syncTrait: async <Value>(
      name: string,
      values: Iterable<readonly [string, Value]>,
      options: SyncOptions<Iterable<readonly [string, Value]>> = {},
    ) => {
      refuseUnknown(options, ['previous'])
      const current = mapValues(values, 'values')
      const synced = mapValues(options.previous ?? [], 'previous')
      await queueChanges<Value | null>(target, traitName(name), current, synced, null)
      return synced
    },
  }
}

function mapMembers(members: Iterable<string>, name: string): Map<string, boolean> {
  if (!isIterable(members)) {
    throw invalidOption(name, 'must be a list or a Set', kindOf(members), "Pass user ids, for example ['user-1'].")
  }
  return new Map(Array.from(members, (userId) => [requireUserId(userId, name), true]))
}

/** Copies the values, so that the next sync notices values that the caller has changed in place. */
function mapValues<Value>(values: Iterable<readonly [string, Value]>, name: string): Map<string, Value> {
  if (!isIterable(values)) throw invalidValues(name, kindOf(values))
  return new Map(
    Array.from(values, (entry) => {
      if (!Array.isArray(entry)) throw invalidValues(name, `${kindOf(entry)} in place of a pair`)
      return [requireUserId(entry[0], name), structuredClone(entry[1])]
    }),
  )
}

function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.iterator in value
}

function invalidValues(name: string, found: string): TypeError {
  return invalidOption(name, 'must be a Map or a list of pairs', found, "Pass pairs, for example [['user-1', 12]].")
}

function requireUserId(userId: unknown, name: string): string {
  if (typeof userId === 'string' && userId !== '') return userId
  const advice = 'Remove or correct this user id.'
  throw invalidOption(name, 'must contain only non-empty strings as user ids', kindOf(userId), advice)
}

/**
 * Queues an identify call for each user whose value differs between `current` and `synced`, and applies each queued change to `synced`.
 * When the queue is full, waits and then pushes half as many calls.
 *
 * @param removed The value to queue for a user who is no longer in `current`.
 */
async function queueChanges<Value>(
  target: SyncTarget,
  trait: string,
  current: ReadonlyMap<string, Value>,
  synced: Map<string, Value>,
  removed: Value,
): Promise<void> {
  const changes = findChanges(current, synced, removed)
  let size = MAX_CHUNK
  for (let start = 0; start < changes.length; ) {
    const chunk = changes.slice(start, start + size)
    const calls = chunk.map(({ userId, value }) =>
      composeCall('identify', { userId, traits: { [trait]: value } }, target.clock),
    )
    try {
      const results = await target.push(calls)
      for (const [index, change] of chunk.entries()) if (results[index]?.queued === true) applyChange(synced, change)
      start += size
      await nextTurn() // A large audience must not delay the rounds under way.
    } catch (error) {
      if (!(error instanceof HooklineError) || error.code !== 'queue_full') throw error
      if (chunk.length === 1 && (await target.isEmpty())) throw error // Even an empty queue has no room for this call.
      size = Math.ceil(chunk.length / 2)
      await new Promise<void>((resolve) => void target.clock.setTimeout(resolve, FULL_MS))
    }
  }
}

function findChanges<Value>(
  current: ReadonlyMap<string, Value>,
  synced: ReadonlyMap<string, Value>,
  removed: Value,
): readonly Change<Value>[] {
  const changed = [...current]
    .filter(([userId, value]) => !synced.has(userId) || JSON.stringify(synced.get(userId)) !== JSON.stringify(value))
    .map(([userId, value]) => ({ userId, value, isRemoved: false }))
  const missing = [...synced.keys()].filter((userId) => !current.has(userId))
  return [...changed, ...missing.map((userId) => ({ userId, value: removed, isRemoved: true }))]
}

function applyChange<Value>(synced: Map<string, Value>, { userId, value, isRemoved }: Change<Value>): void {
  if (isRemoved) synced.delete(userId)
  else synced.set(userId, value)
}
