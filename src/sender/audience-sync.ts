/** Audiences and computed traits: what changed since the sync before, as identify calls ("Outbound event delivery", Audience and computed-trait delivery). */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { traitName } from '../protocol/audience.ts'
import type { Clock } from '../protocol/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import { refuseUnknown } from '../protocol/options.ts'
import type { Destination, Queued, SyncOptions } from './api.ts'
import { type Composed, composeCall } from './methods.ts'

/** What a sync needs of its destination. */
export interface SyncTarget {
  readonly clock: Clock
  submit(composed: readonly Composed[]): Promise<readonly Queued[]>
  /** Whether its queue is empty. */
  isEmpty(): Promise<boolean>
}

/** What a user has now; `gone` once there is nothing any more. */
interface Change<Value> {
  readonly userId: string
  readonly value: Value
  readonly isGone: boolean
}

/** How many calls are queued at once. */
const CHUNK = 500

/** How long a sync waits before it asks a full queue again, in milliseconds. */
const FULL_MS = 1_000

/** The two syncs of a destination. */
export function createAudienceSync(target: SyncTarget): Pick<Destination, 'syncAudience' | 'syncTrait'> {
  return {
    syncAudience: async (name, members, options = {}) => {
      refuseUnknown(options, ['previous'])
      const now = mapMembers(members, 'members')
      const kept = mapMembers(options.previous ?? [], 'previous')
      await sync<boolean>(target, traitName(name), now, kept, false)
      return new Set(kept.keys())
    },
    syncTrait: async <Value>(
      name: string,
      values: Iterable<readonly [string, Value]>,
      options: SyncOptions<Iterable<readonly [string, Value]>> = {},
    ) => {
      refuseUnknown(options, ['previous'])
      const now = mapValues(values, 'values')
      const kept = mapValues(options.previous ?? [], 'previous')
      await sync<Value | null>(target, traitName(name), now, kept, null)
      return kept
    },
  }
}

function mapMembers(members: Iterable<string>, name: string): Map<string, boolean> {
  requireIterable(members, name, 'a list or a Set of userIds')
  return new Map(Array.from(members, (userId) => [requireUserId(userId, name), true]))
}

/** The values are copied: whoever changes one later has another value then, which the next sync is to see. */
function mapValues<Value>(values: Iterable<readonly [string, Value]>, name: string): Map<string, Value> {
  requireIterable(values, name, 'a Map, or a list of [userId, value]')
  return new Map(
    Array.from(values, (entry) => {
      if (!Array.isArray(entry)) throw new TypeError(`${name}: must be a Map, or a list of [userId, value].`)
      return [requireUserId(entry[0], name), structuredClone(entry[1])]
    }),
  )
}

function requireIterable(value: unknown, name: string, what: string): void {
  if (typeof value === 'object' && value !== null && Symbol.iterator in value) return
  throw new TypeError(`${name}: must be ${what}.`)
}

function requireUserId(userId: unknown, name: string): string {
  if (typeof userId === 'string' && userId !== '') return userId
  throw new TypeError(`${name}: every userId must be a string that is not empty.`)
}

/** Queues an identify for each user whose value is not what was kept, and keeps what was queued. Waits while the queue is full. */
async function sync<Value>(
  { clock, submit, isEmpty }: SyncTarget,
  trait: string,
  now: ReadonlyMap<string, Value>,
  kept: Map<string, Value>,
  gone: Value,
): Promise<void> {
  const changes = findChanges(now, kept, gone)
  let size = CHUNK
  for (let start = 0; start < changes.length; ) {
    const chunk = changes.slice(start, start + size)
    const at = clock.now()
    const calls = chunk.map(({ userId, value }) => composeCall('identify', { userId, traits: { [trait]: value } }, at))
    try {
      const answers = await submit(calls)
      for (const [index, change] of chunk.entries()) if (answers[index]?.queued) keep(kept, change)
      start += size
      await nextTurn() // A large audience must not hold up the deliveries.
    } catch (error) {
      if (!(error instanceof HooklineError) || error.code !== 'queue_full') throw error
      if (chunk.length === 1 && (await isEmpty())) throw error // It will never have room.
      size = Math.ceil(chunk.length / 2)
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, FULL_MS))
    }
  }
}

function findChanges<Value>(
  now: ReadonlyMap<string, Value>,
  kept: ReadonlyMap<string, Value>,
  gone: Value,
): readonly Change<Value>[] {
  const changed = [...now]
    .filter(([userId, value]) => !kept.has(userId) || JSON.stringify(kept.get(userId)) !== JSON.stringify(value))
    .map(([userId, value]) => ({ userId, value, isGone: false }))
  const left = [...kept.keys()].filter((userId) => !now.has(userId))
  return [...changed, ...left.map((userId) => ({ userId, value: gone, isGone: true }))]
}

function keep<Value>(kept: Map<string, Value>, { userId, value, isGone }: Change<Value>): void {
  if (isGone) kept.delete(userId)
  else kept.set(userId, value)
}
