/** A queue in a SQLite file for tests. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import type { SqliteQueueOptions } from '../../src/store/sqlite/sqlite-options.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import type { TestedQueue } from '../contracts/queue.ts'

/** A queue in a file of its own, by a clock that stands still. */
export function testedSqliteQueue(open: (options: SqliteQueueOptions) => Queue = sqliteQueue): TestedQueue {
  const clock = manualClock()
  const folder = mkdtempSync(join(tmpdir(), 'hookline-queue-'))
  const dedupeWindowMs = 60_000
  const another = () => open({ path: join(folder, 'jobs.sqlite'), dedupeWindowMs, clock })
  const queue = another()
  return {
    queue,
    another,
    now: clock.now,
    /** A few calls each time, so that what is due then has begun. */
    async advance(ms) {
      await clock.advance(ms)
      for (let trip = 0; trip < 3; trip += 1) {
        await queue.counts().catch(() => {}) // It may be closed.
        await clock.advance(0)
      }
    },
    async tick() {
      await new Promise((resolve) => setTimeout(resolve, 1)) // The disk has a clock of its own.
      await clock.advance(20)
    },
    dedupeWindowMs,
    dispose: async () => rmSync(folder, { recursive: true, force: true, maxRetries: 9 }),
  }
}
