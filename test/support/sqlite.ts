/** A queue in a SQLite file for tests: in its thread, or in this one, where a test can look at it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import type { Queue } from '../../src/queues/queue.ts'
import { sqliteQueue } from '../../src/queues/sqlite.ts'
import { serveCalls } from '../../src/queues/sqlite-host.ts'
import { readOptions, type SqliteQueueOptions } from '../../src/queues/sqlite-options.ts'
import { createSqliteQueue } from '../../src/queues/sqlite-queue.ts'
import type { Host } from '../../src/queues/sqlite-thread.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import type { TestedQueue } from '../contracts/queue.ts'

/** Opens a queue whose file is served in this thread. */
export function sqliteQueueHere(options: SqliteQueueOptions): Queue {
  const settings = readOptions(options)
  return createSqliteQueue(settings, () => serveHere(settings))
}

function serveHere(settings: Parameters<typeof serveCalls>[1]): Host {
  const { port1, port2 } = new MessageChannel()
  serveCalls(port2, settings)
  const on = (event: string, listener: (value: never) => void) => {
    port1.on((event === 'exit' ? 'close' : event) as 'message', listener as (value: unknown) => void)
  }
  return {
    on: on as never,
    postMessage: (request, transfer) => port1.postMessage(request, transfer as readonly ArrayBuffer[]),
    ref: () => port1.ref(),
    unref: () => port1.unref(),
  }
}

/** A folder for a test, and how to remove it. */
function temporaryFolder(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-queue-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** A queue in a file of its own, by a clock that stands still. */
export function testedSqliteQueue(open: (options: SqliteQueueOptions) => Queue = sqliteQueue): TestedQueue {
  const clock = manualClock()
  const { folder, remove } = temporaryFolder()
  const another = () => open({ path: join(folder, 'jobs.sqlite'), clock })
  const queue = another()
  return {
    queue,
    another,
    now: clock.now,
    /** A few round trips to the thread each time, so that what is due then has begun. */
    async advance(ms) {
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
    dispose: async () => remove(),
  }
}
