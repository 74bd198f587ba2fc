/** Audiences and computed traits: what changed since the sync before, as identify calls ("Outbound event delivery", Audience and computed-trait delivery). */

import { traitName } from '../protocol/audience.ts'
import type { Clock } from '../protocol/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Destination, Queued } from './api.ts'
import { type Composed, composeCall } from './methods.ts'

/** What a sync needs of its destination. */
export interface SyncTarget {
  readonly clock: Clock
  submit(composed: readonly Composed[]): Promise<readonly Queued[]>
}

/** A value that a user has now, or null. */
type Change<Value> = readonly [userId: string, value: Value | null]

/** How many calls are queued at once. */
const CHUNK = 500

/** How long a sync waits before it asks a full queue again, in milliseconds. */
const FULL_MS = 1_000

/** The two syncs of a destination. */
export function createAudienceSync(target: SyncTarget): Pick<Destination, 'syncAudience' | 'syncTrait'> {
  return {
    syncAudience: async (name, members, { previous = [] } = {}) => {
      const trait = traitName(name)
      const now = mapMembers(members, 'members')
      const kept = mapMembers(previous, 'previous')
      const left = [...kept.keys()].filter((userId) => !now.has(userId))
      const changes = [...changesOf(now, kept), ...left.map((userId) => [userId, false] as const)]
      await send(target, trait, changes, (userId, value) => (value ? kept.set(userId, true) : kept.delete(userId)))
      return new Set(kept.keys())
    },
    syncTrait: async (name, values, { previous = [] } = {}) => {
      const trait = traitName(name)
      const now = mapValues(values, 'values')
      const kept = mapValues(previous, 'previous')
      const left = [...kept.keys()].filter((userId) => !now.has(userId))
      const changes = [...changesOf(now, kept), ...left.map((userId) => [userId, null] as const)]
      await send(target, trait, changes, (userId, value) =>
        value === null ? kept.delete(userId) : kept.set(userId, value),
      )
      return kept
    },
  }
}

function mapMembers(members: Iterable<string>, name: string): Map<string, boolean> {
  requireIterable(members, name, 'a list or a Set of userIds')
  return new Map(Array.from(members, (userId) => [requireUserId(userId, name), true]))
}

function mapValues<Value>(values: Iterable<readonly [string, Value]>, name: string): Map<string, Value> {
  requireIterable(values, name, 'a Map, or a list of [userId, value]')
  return new Map(Array.from(values, ([userId, value]) => [requireUserId(userId, name), value]))
}

function requireIterable(value: unknown, name: string, what: string): void {
  if (typeof value === 'object' && value !== null && Symbol.iterator in value) return
  throw new TypeError(`${name}: must be ${what}.`)
}

function requireUserId(userId: unknown, name: string): string {
  if (typeof userId === 'string' && userId !== '') return userId
  throw new TypeError(`${name}: every userId must be a string that is not empty.`)
}

/** Who is new, or has another value. */
function changesOf<Value>(now: ReadonlyMap<string, Value>, before: ReadonlyMap<string, Value>): Change<Value>[] {
  return [...now].filter(
    ([userId, value]) => !before.has(userId) || JSON.stringify(before.get(userId)) !== JSON.stringify(value),
  )
}

/** Queues an identify for each change, and keeps those that were queued. Waits while the queue is full. */
async function send<Value>(
  { clock, submit }: SyncTarget,
  trait: string,
  changes: readonly Change<Value>[],
  keep: (userId: string, value: Value | null) => unknown,
): Promise<void> {
  let size = CHUNK
  for (let start = 0; start < changes.length; ) {
    const chunk = changes.slice(start, start + size)
    const now = clock.now()
    const calls = chunk.map(([userId, value]) => composeCall('identify', { userId, traits: { [trait]: value } }, now))
    try {
      const answers = await submit(calls)
      for (const [index, [userId, value]] of chunk.entries()) if (answers[index]?.queued) keep(userId, value)
      start += size
    } catch (error) {
      if (!(error instanceof HooklineError) || error.code !== 'queue_full') throw error
      size = Math.ceil(size / 2) // The queue may never have room for so many at once.
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, FULL_MS))
    }
  }
}
