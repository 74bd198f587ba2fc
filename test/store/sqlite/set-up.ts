/** What the tests of a queue in a SQLite file share: files, queues on them, damage, and processes that use them. */

import fs, { closeSync, mkdtempSync, openSync, readdirSync, truncateSync, writeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, vi } from 'vitest'
import { type SqliteQueueOptions, sqliteQueue } from '../../../src/queues-sqlite.ts'
import type { Outcome, Queue } from '../../../src/store/queue-types.ts'
import { Connection } from '../../../src/store/sqlite/sqlite-connection.ts'
import * as steps from '../../../src/store/sqlite/sqlite-store.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { jobOf } from '../../support/queues.ts'
import { until } from '../../support/until.ts'

export { bodiesOf, complete as done, jobOf, work } from '../../support/queues.ts'
export const HOURS_3 = 3 * 60 * 60_000
export const unavailable = expect.objectContaining({ name: 'HooklineError', code: 'queue_unavailable' })

/** A path in a folder that is removed when the test ends or, with `afterAll`, the suite. */
export function newFile(atEnd: (remove: () => Promise<void>) => void = onTestFinished): string {
  const directory = mkdtempSync(join(tmpdir(), 'hookline-queue-'))
  atEnd(() => rm(directory, { recursive: true, force: true, maxRetries: 9 }))
  return join(directory, 'jobs.db')
}

/** Opens queues on one file, whose clock can be set; the file is whole when the test ends. */
export function setUp({ path = newFile(), isWhole = true } = {}) {
  const clock = manualClock(Date.now())
  const errors: unknown[] = []
  let shift = 0
  onTestFinished(() => {
    if (!isWhole) return
    const database = new DatabaseSync(path, { timeout: 10_000 })
    expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    database.close()
  })

  /** Lets queues by the manual clock go on until it is so. */
  async function see(isTrue: () => boolean): Promise<void> {
    await until(async () => {
      if (isTrue()) return true
      await clock.advance(20)
      return false
    })
  }
  return {
    path,
    clock,
    errors,
    open(options: Partial<SqliteQueueOptions> = {}) {
      const shifted = { ...clock, now: () => clock.now() + shift }
      const onError = (error: unknown) => errors.push(error)
      const queue = sqliteQueue({ path, clock: shifted, timeoutMs: 20, onError, ...options })
      onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
      return queue
    },
    setClock(ms: number) {
      shift += ms
    },
    see,
    async drained(queue: Queue) {
      const over = vi.fn()
      const drain = queue.drain().then(over)
      await see(() => over.mock.calls.length > 0)
      await drain
    },
    connect() {
      const database = new DatabaseSync(path)
      onTestFinished(() => (database.isOpen ? database.close() : undefined))
      return database
    },
  }
}

/** Opens a file as another process, whose claims are those of this owner. */
export function openAs(
  path: string,
  owner: number,
  settings: { readonly maxJobs?: number; readonly name?: string } = {},
) {
  const queue = { name: 'default', dedupeWindowMs: 1, maxJobs: 10, ...settings }
  const file = new Connection(path, owner, () => {})
  file.addQueue(queue)
  function ask<T>(kind: 'promise' | 'claim' | 'read', step: steps.Step<T>): T {
    const [answer] = file.makeCalls([{ name: queue.name, kind, step }])
    if (answer === undefined || answer.failure !== undefined) throw answer?.failure
    return answer.value as T
  }
  let isOpen = true
  const close = (): void => {
    if (isOpen) file.close('closed')
    isOpen = false
  }
  onTestFinished(close)
  return {
    push(...bodies: string[]) {
      const jobs = bodies.map((body) => jobOf(body))
      return ask('promise', (of) => steps.push(of, queue, jobs, 0))
    },
    claim: ({ limit = 1, now = 0 } = {}) => ask('claim', (of) => steps.claim(of, limit, now).jobs),
    counts: () => ask('read', (of) => steps.count(of, 0)),
    finish: (ended: steps.SqliteClaim, outcome: Outcome) =>
      ask('promise', (of) => {
        if ('complete' in outcome) return steps.complete(of, [{ ...ended, log: outcome.log }], 0)
        return steps.retryOrFail(of, ended, outcome, 0)
      }),
    release: (claims: readonly steps.ClaimRef[]) => ask('promise', (of) => steps.release(of, claims, true)),
    close,
  }
}

export function sideFilesOf(path: string): string[] {
  return readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}-owner-`))
}

/** Replaces a function of `node:fs` while a test runs. */
export function replaceInFs(name: 'readFileSync' | 'fdatasync' | 'watch', fake: (...given: never[]) => unknown) {
  const spy = vi.spyOn(fs, name).mockImplementation(fake as never)
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
  return spy
}

/** The bodies of all jobs in a file, over another connection. Sorted. */
export function bodiesIn(path: string): string[] {
  const database = new DatabaseSync(path, { timeout: 10_000 })
  const rows = database.prepare('SELECT body FROM hookline_queue_bodies').all()
  database.close()
  return rows.map(({ body }) => `${Buffer.from(body as Uint8Array)}`).sort()
}

/** A queue whose WAL is truncated while it is in use: the job `before` is in its file, `in the WAL` is lost. */
export async function truncateWal() {
  const { path, open, connect } = setUp()
  const queue = open()
  await queue.push([jobOf('before')])
  const other = connect()
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  other.close()
  await queue.push([jobOf('in the WAL')])
  truncateSync(`${path}-wal`)
  return { path, queue }
}

export function hurryTime(): void {
  let now = performance.now()
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 60_000
    return now
  })
  onTestFinished(() => spy.mockRestore())
}

/** Damages the first page of a table in a file. Closes the connection. */
export function damagePage(path: string, database: DatabaseSync, table: string): void {
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const size = Number(database.prepare('PRAGMA page_size').get()?.page_size)
  const page = database.prepare('SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ?').get(table, 'leaf')
  database.close()
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(size, 0xff), 0, size, (Number(page?.pageno) - 1) * size)
  closeSync(file)
}
