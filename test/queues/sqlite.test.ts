import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteQueue } from '../../src/queues/sqlite.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { testDurableQueue } from '../contracts/durable-queue.ts'
import { testQueue } from '../contracts/queue.ts'

function create() {
  const clock = manualClock()
  const folder = mkdtempSync(join(tmpdir(), 'hookline-queue-'))
  const open = () => sqliteQueue({ path: join(folder, 'jobs.sqlite'), clock })
  const queue = open()
  return {
    queue,
    another: open,
    now: clock.now,
    /** A few round trips to the thread each time, so that what is due then has begun. */
    async advance(ms: number) {
      await clock.advance(ms)
      for (let trip = 0; trip < 3; trip += 1) {
        await queue.counts()
        await clock.advance(0)
      }
    },
    async tick() {
      await new Promise((resolve) => setTimeout(resolve, 1)) // The threads have a clock of their own.
      await clock.advance(20)
    },
    outlivesProcess: true,
    knownForMs: 24 * 60 * 60_000,
    dispose: async () => rmSync(folder, { recursive: true }),
  }
}

testQueue('a SQLite file', create)
testDurableQueue('a SQLite file', create)
