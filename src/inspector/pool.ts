/** How much a journal keeps: two pools of entries, of which forged requests fill one alone. */

import { createFifo } from '../collections/fifo.ts'
import type { KeepOptions } from './api.ts'
import type { Entry } from './entry.ts'

/** The options of what is kept, checked and complete. */
export type Keep = Required<Omit<KeepOptions, 'path'>> & Pick<KeepOptions, 'path'>

/** Entries within bounds of their own, the oldest first. */
export interface Pool {
  readonly entries: ReturnType<typeof createFifo<Entry>>
  readonly most: number
  readonly mostBytes: number
  bytes: number
}

/** Creates the pool of messages and that of refused requests. */
export function createPools(keep: Keep): readonly [messages: Pool, refused: Pool] {
  return [
    { entries: createFifo(), most: keep.messages, mostBytes: keep.bytes, bytes: 0 },
    { entries: createFifo(), most: keep.refused, mostBytes: keep.refusedBytes, bytes: 0 },
  ]
}

/** Counts what an entry takes now. Returns the oldest entries, which have no room any more: at least one stays. */
export function settle(pool: Pool, entry: Entry): readonly Entry[] {
  pool.bytes += entry.size - entry.counted
  entry.counted = entry.size
  if (pool.entries.size <= pool.most && pool.bytes <= pool.mostBytes) return NONE
  const dropped: Entry[] = []
  while (pool.entries.size > pool.most || (pool.bytes > pool.mostBytes && pool.entries.size > 1)) {
    const oldest = pool.entries.shift() as Entry
    pool.bytes -= oldest.counted
    dropped.push(oldest)
  }
  return dropped
}

const NONE: readonly Entry[] = []
