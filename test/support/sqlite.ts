/** A queue in a SQLite file for tests: in its worker thread, or served in this one, where coverage and spies see it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Queue } from '../../src/queues/api.ts'
import { createQueue } from '../../src/queues/queue.ts'
import { connect } from '../../src/queues/sqlite/connection.ts'
import { sqliteQueue } from '../../src/queues/sqlite/index.ts'
import { readOptions, type Settings, type SqliteQueueOptions } from '../../src/queues/sqlite/options.ts'
import { createSqliteStore } from '../../src/queues/sqlite/store.ts'
import { serve, type Thread, type ThreadSettings } from '../../src/queues/sqlite/worker-thread.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import type { TestedQueue } from '../contracts/queue.ts'

export function sqliteQueueHere(options: SqliteQueueOptions): Queue {
  return sqliteQueueWith(options, serveHere)
}

/** Opens a queue whose thread is started by the test. */
export function sqliteQueueWith(options: SqliteQueueOptions, start: (settings: ThreadSettings) => Thread): Queue {
  const settings = readOptions(options)
  const store = createSqliteStore(settings, connect(settings.path, settings.name, start))
  return createQueue(store, settingsOf(settings))
}

function settingsOf({ name, pollMs, deadLetterRetentionMs, onError, clock }: Settings) {
  return { name, pollMs, deadLetterRetentionMs, onError, clock }
}

export function serveHere(settings: ThreadSettings): Thread {
  const { port1, port2 } = new MessageChannel()
  const end = (): MessagePort => {
    port2.close()
    return port2
  }
  serve(Object.assign(port2, { off: end }), settings) // A worker thread ends when nothing listens.
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

function temporaryFolder(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-queue-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 9 }) }
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
        await queue.counts().catch(() => {}) // It may be closed.
        await clock.advance(0)
      }
    },
    async tick() {
      await new Promise((resolve) => setTimeout(resolve, 1)) // The threads have a clock of their own.
      await clock.advance(20)
    },
    dedupeWindowMs: 24 * 60 * 60_000,
    dispose: async () => remove(),
  }
}
