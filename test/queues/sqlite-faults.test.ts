import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import fs, { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteDedupe } from '../../src/dedupe/sqlite.ts'
import type { ClaimedJob, Outcome, Queue } from '../../src/queues/queue.ts'
import { type SqliteQueueOptions, sqliteQueue } from '../../src/queues/sqlite.ts'
import { readOptions } from '../../src/queues/sqlite-options.ts'
import { createSqliteQueue } from '../../src/queues/sqlite-queue.ts'
import { openStore } from '../../src/queues/sqlite-store.ts'
import { startWorker } from '../../src/queues/sqlite-thread.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { sqliteQueueHere } from '../support/sqlite.ts'
import { until } from '../support/until.ts'

const done: Outcome = { done: true }
const LEASE_MS = 60_000
const HOURS_3 = 3 * 60 * 60_000
const jobOf = (body = 'job', more = {}) => ({ id: randomUUID(), body: Buffer.from(body), ...more })
const unavailable = expect.objectContaining({ name: 'HooklineError', code: 'queue_unavailable' })

function newFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'hookline-queue-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'jobs.db')
}

/**
 * Opens queues on one file, whose clock can be set; the file is whole when the test ends. Where it is of no account which
 * thread has the file, this one has it, so that coverage sees what runs.
 */
function setUp({ path = newFile(), isWhole = true, isHere = false } = {}) {
  const clock = manualClock(Date.now())
  const errors: unknown[] = []
  let shift = 0
  onTestFinished(() => {
    if (!isWhole) return
    const database = new DatabaseSync(path)
    expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    database.close()
  })
  function settingsOf(options: Partial<SqliteQueueOptions>): SqliteQueueOptions {
    const shifted = { ...clock, now: () => clock.now() + shift }
    const onError = (error: unknown) => errors.push(error)
    return { path, leaseMs: LEASE_MS, clock: shifted, busyTimeoutMs: 20, onError, ...options }
  }
  function closeAtEnd(queue: Queue): Queue {
    onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
    return queue
  }
  return {
    path,
    clock,
    errors,
    open(options: Partial<SqliteQueueOptions> = {}) {
      const settings = settingsOf(options)
      const queue = sqliteQueue(settings)
      return closeAtEnd(isHere ? sqliteQueueHere(settings) : queue)
    },
    /** With a thread that a test can end. */
    openMortal(startFirst?: () => Worker) {
      const settings = readOptions(settingsOf({}))
      const threads: Worker[] = []
      const queue = createSqliteQueue(settings, () => {
        const { name, knownForMs, maxJobs, busyTimeoutMs } = settings
        const isFirst = threads.length === 0
        const startNext = () => startWorker({ path: settings.path, name, knownForMs, maxJobs, busyTimeoutMs })
        const thread = isFirst && startFirst !== undefined ? startFirst() : startNext()
        threads.push(thread)
        return thread
      })
      return { queue: closeAtEnd(queue), threads }
    },
    setClock(ms: number) {
      shift += ms
    },
    /** Lets queues by the manual clock go on until it is so. */
    async see(isTrue: () => boolean) {
      while (!isTrue()) {
        await new Promise((resolve) => setImmediate(resolve))
        await clock.advance(20)
      }
    },
    async drained(queue: Queue) {
      let isDrained = false
      const drain = queue.drain().then(() => {
        isDrained = true
      })
      while (!isDrained) {
        await new Promise((resolve) => setImmediate(resolve))
        await clock.advance(20)
      }
      await drain
    },
    /** Another connection to the file, of somebody else. */
    connect() {
      const database = new DatabaseSync(path)
      onTestFinished(() => (database.isOpen ? database.close() : undefined))
      return database
    },
  }
}

function work(queue: Queue, decide: (job: ClaimedJob) => Outcome | Promise<Outcome> = () => done, concurrency = 10) {
  const seen: ClaimedJob[] = []
  queue.work(
    async (job) => {
      seen.push(job)
      return decide(job)
    },
    { concurrency },
  )
  return seen
}

const never = () => new Promise<Outcome>(() => {})
const bodiesOf = (jobs: readonly { readonly body: Uint8Array }[]) => jobs.map(({ body }) => `${Buffer.from(body)}`)

describe('a file that will not do is refused when the queue is made', () => {
  function refusal(path: string): Error {
    try {
      sqliteQueue({ path })
    } catch (error) {
      expect(error).toEqual(unavailable)
      return error as Error
    }
    throw new Error('it was not refused')
  }

  it('no database', () => {
    const path = newFile()
    writeFileSync(path, 'Dear diary, '.repeat(100))
    expect(refusal(path).message).toContain('it is not a SQLite database')
  })

  it('in a folder that is missing', () => {
    const path = join(dirname(newFile()), 'missing', 'jobs.db')
    expect(refusal(path).message).toContain(`the directory ${dirname(path)} does not exist`)
  })

  it('that somebody keeps locked', () => {
    const { path, open, connect } = setUp()
    open()
    connect().exec('BEGIN IMMEDIATE')
    hurryTime()
    expect(refusal(path).message).toMatch(/: another process keeps it locked\. End that process, .*[^.]\.$/)
  })

  it('damaged', () => {
    const { path, open, connect } = setUp({ isWhole: false })
    open()
    const database = connect()
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    damage(path, pageInside(database, 'hookline_queues'))
    database.close()
    expect(refusal(path).message).toMatch(/: it is damaged\. Move it away, .*[^.]\.$/)
  })

  it('in a folder that this process may not write to', () => {
    const path = newFile()
    mkdirSync(path)
    replaceInFs('accessSync', () => {
      throw new Error('EACCES')
    })
    expect(refusal(path).message).toContain(`this process may not write to ${dirname(path)}. SQLite keeps two files`)
  })

  it('when the program of its thread is missing: it is said before a file is made', () => {
    const path = newFile()
    replaceInFs('existsSync', (file) => !`${file}`.endsWith('sqlite-worker.ts'))
    expect(() => sqliteQueue({ path })).toThrow(/sqlite-worker\.ts is not there\. A bundler must leave hookline out/)
    expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined()
  })

  it('no options', () => {
    expect(() => sqliteQueue(null as never)).toThrow(new TypeError('sqliteQueue: give it options, { path }.'))
    expect(() => sqliteQueue('jobs.db' as never)).toThrow('give it options')
  })

  it.each([':memory:', 'file:jobs.db'])('none at all: %s', (path) => {
    expect(() => sqliteQueue({ path })).toThrow(TypeError)
    expect(() => sqliteQueue({ path })).toThrow('path: must be the path of a file')
  })

  it('a folder', () => {
    const path = newFile()
    mkdirSync(path)
    expect(refusal(path).message).toContain('no directory')
  })

  it('with tables of another version', () => {
    const { path, connect, open } = setUp()
    open()
    connect().exec('UPDATE hookline_queue_schema SET version = 2')
    expect(refusal(path).message).toContain('its tables are of version 2, and this Hookline knows version 1')
  })
})

/** Puts a function in the place of one of `node:fs`, for this test. */
function replaceInFs(name: 'accessSync' | 'existsSync', fake: (path: unknown) => never | boolean): void {
  const spy = vi.spyOn(fs, name).mockImplementation(fake as never)
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
}

/** What waits for others waits no longer, whatever it was to wait: for this test. */
function hurryTime(): void {
  let now = 0
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 60_000
    return now
  })
  onTestFinished(() => spy.mockRestore())
}

describe('a file that goes away', () => {
  it('with its folder: each call says what to do, once, until it is there', async () => {
    const { path, open } = setUp({ isHere: true })
    const queue = open({ name: 'outbox' })
    const folder = dirname(path)
    rmSync(folder, { recursive: true })
    const error = await queue.push([jobOf()]).catch((reason) => reason)
    expect(error).toEqual(unavailable)
    expect(error.message).toBe(
      `The queue outbox cannot use ${path}: the directory ${folder} does not exist. Make it first.`,
    )
    mkdirSync(folder)
    await queue.push([jobOf()])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('while it is open: a call is refused, and the next one makes another', async () => {
    const { path, open } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf()])
    for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`)
    const error = await queue.push([jobOf()]).catch((reason) => reason)
    expect(error).toEqual(unavailable)
    expect(error.message).toBe(
      `The queue default is not available: ${path} was removed or replaced while it was in use.`,
    )
    await queue.push([jobOf()])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('in part: a queue that is no longer in it says so', async () => {
    const { open, connect } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf()])
    connect().exec('DELETE FROM hookline_queues')
    await expect(queue.push([jobOf()])).rejects.toThrow('not available: the queue is no longer in its file.')
  })
})

describe('a file that others use too', () => {
  it('for something else: their tables and their version stay', async () => {
    const { connect, open } = setUp()
    connect().exec('CREATE TABLE theirs (a); INSERT INTO theirs VALUES (5); PRAGMA user_version = 7')
    const queue = open()
    await queue.push([jobOf()])
    expect(connect().prepare('SELECT a FROM theirs').all()).toEqual([{ a: 5 }])
    expect(connect().prepare('PRAGMA user_version').get()).toEqual({ user_version: 7 })
  })

  it('as the store of handled messages, and for queues of other names', async () => {
    const { path, open } = setUp()
    const dedupe = sqliteDedupe({ path, busyTimeoutMs: 5_000 })
    const [orders, users] = [open({ name: 'orders' }), open({ name: 'users' })]
    const job = jobOf('the same id')
    await Promise.all([orders.push([job]), users.push([job, jobOf('another')]), dedupe.claim('a')])
    const seen = work(users)
    await users.drain()
    expect(bodiesOf(seen).sort()).toEqual(['another', 'the same id'])
    expect(await orders.counts()).toMatchObject({ waiting: 1 })
    expect(await users.counts()).toMatchObject({ waiting: 0, active: 0 })
    expect(dedupe.claim('a')).toBe('in_progress')
    dedupe.close()
  })
})

describe('a file that somebody else keeps locked', () => {
  it('a push is refused, and one after that is taken', async () => {
    const { open, connect } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('before')])
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    await expect(queue.push([jobOf('meanwhile')])).rejects.toThrow(unavailable)
    await expect(queue.push([jobOf('meanwhile')])).rejects.toThrow('database is locked')
    other.exec('ROLLBACK')
    await queue.push([jobOf('after')])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['before', 'after'])
  })

  it('claims go on by themselves when it is free', async () => {
    const { open, connect, errors, see } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('a')])
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    const seen = work(queue)
    await until(() => errors.length > 0)
    expect([errors[0], seen]).toEqual([unavailable, []])
    other.exec('ROLLBACK')
    await see(() => seen.length === 1)
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  })

  it('what became of a job is told when it is free', async () => {
    const { open, connect, errors, drained } = setUp({ isHere: true })
    const queue = open()
    const held = Promise.withResolvers<Outcome>()
    const seen = work(queue, () => held.promise)
    await queue.push([jobOf('a')])
    await until(() => seen.length === 1)
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    held.resolve({ dead: 'no' })
    await until(() => errors.length > 0)
    other.exec('ROLLBACK')
    await drained(queue)
    expect(await queue.dead()).toMatchObject([{ reason: 'no' }])
    expect(seen).toHaveLength(1)
  })
})

describe('a row that cannot be read', () => {
  const update = (values: string) =>
    `UPDATE hookline_queue_jobs SET ${values} WHERE seq = (SELECT min(seq) FROM hookline_queue_jobs)`

  it.each([
    [
      'no body',
      'DELETE FROM hookline_queue_bodies WHERE seq = (SELECT min(seq) FROM hookline_queue_bodies)',
      'its body is gone',
    ],
    ['an id of 3 bytes', update("id = x'010203'"), 'its id is none'],
    ['an id of no bytes', update("id = x''"), 'its id is none'],
  ])('goes to the dead, and others are handed out: %s', async (_what, damage, reason) => {
    const { open, connect, drained } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('bad'), jobOf('good'), jobOf('good too')])
    connect().exec(damage)
    const seen = work(queue, () => done, 1)
    await drained(queue)
    expect(bodiesOf(seen)).toEqual(['good', 'good too'])
    expect(await queue.dead()).toMatchObject([{ reason: `It cannot be read: ${reason}.` }])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 1 })
    expect(await queue.redrive('all')).toBe(1)
    await drained(queue)
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 1 })
    expect(await queue.drop('all')).toBe(1)
    expect(await queue.counts()).toMatchObject({ dead: 0 })
  })

  it.each([
    update("deliveries = 'many'"),
    update("due_at = 'soon'"),
    update("first_at = x'00'"),
    update("state = 'text'"),
    update('state = 5'),
    update('deliveries = 1 << 60'),
    update('due_at = 1 << 60'),
    update('first_at = 1 << 60'),
    update('phase = 4'),
    "UPDATE hookline_queue_bodies SET body = 'text'",
    'UPDATE hookline_queue_bodies SET body = 5',
  ])('the file refuses, or it keeps nobody else waiting: %s', async (damage) => {
    const { open, connect, drained } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('bad'), jobOf('good')])
    expect(() => connect().exec(damage)).toThrow()
    const seen = work(queue)
    await drained(queue)
    expect(bodiesOf(seen)).toEqual(['bad', 'good'])
  })

  it('because its page is damaged: the others are handed out', async () => {
    const { path, open, connect, drained } = setUp({ isWhole: false, isHere: true })
    const before = open()
    const jobs = Array.from({ length: 100 }, (_, index) => jobOf(`${index}`.padEnd(1000)))
    await before.push(jobs)
    await before.close({ graceMs: 0 })
    const database = connect()
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    damage(path, pageInside(database, 'hookline_queue_bodies'))
    database.close()
    const queue = open()
    const seen = work(queue)
    await drained(queue)
    const dead = await queue.dead({ limit: 1000 })
    expect(dead.length).toBeGreaterThan(0)
    expect(dead.length).toBeLessThan(10)
    expect(dead[0]?.reason).toMatch(/^It cannot be read: it lies on a damaged page/)
    expect([...seen, ...dead].map(({ id }) => id).sort()).toEqual(jobs.map(({ id }) => id).sort())
  })

  it('because its page was damaged when it was dead: it is listed without its body, and can be dropped', async () => {
    const { path, open, connect } = setUp({ isWhole: false, isHere: true })
    const before = open()
    work(before, () => ({ dead: 'no' }))
    await before.push(Array.from({ length: 100 }, (_, index) => jobOf(`${index}`.padEnd(1000))))
    await before.drain()
    await before.close({ graceMs: 0 })
    const database = connect()
    damage(path, pageInside(database, 'hookline_queue_bodies'))
    database.close()
    const [listing, dropping] = [open(), open()]
    const dead = await listing.dead({ limit: 1000 })
    const lost = dead.filter(({ body }) => body.byteLength === 0)
    expect(dead).toHaveLength(100)
    expect(lost.length).toBeGreaterThan(0)
    expect(lost.length).toBeLessThan(10)
    expect(await dropping.drop([lost[0]?.id as string])).toBe(1)
    expect(await dropping.drop('all')).toBe(99)
    expect(await listing.counts()).toMatchObject({ dead: 0 })
  })

  it('this time only: it is listed with its body the next', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open()
    work(queue, () => ({ dead: 'no' }))
    await queue.push([jobOf('a')])
    await queue.drain()
    const { get } = StatementSync.prototype
    const spy = vi.spyOn(StatementSync.prototype, 'get').mockImplementation(function (this: StatementSync, ...values) {
      if (!this.sourceSQL.includes('hookline_queue_bodies')) return get.apply(this, values)
      throw Object.assign(new Error('disk I/O error'), { errcode: 10 })
    })
    onTestFinished(() => spy.mockRestore())
    await expect(queue.dead()).rejects.toThrow('disk I/O error')
    spy.mockRestore()
    expect(bodiesOf(await queue.dead())).toEqual(['a'])
  })
})

describe('a list of what is done that is damaged', () => {
  it('keeps no job from being done', async () => {
    const { path, open, connect } = setUp({ isWhole: false, isHere: true })
    const before = open()
    work(before, () => done, 500)
    await before.push(Array.from({ length: 500 }, () => jobOf()))
    await before.drain()
    await before.close({ graceMs: 0 })
    const database = connect()
    damage(path, pageInside(database, 'hookline_queue_done', 0))
    database.close()
    const queue = open()
    const seen = work(queue)
    await queue.push([jobOf('a'), jobOf('b')])
    await queue.drain()
    await queue.push([jobOf('c')])
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['a', 'b', 'c'])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  })
})

/** A leaf page of a table, so far into it. */
function pageInside(database: DatabaseSync, table: string, at = 0.5) {
  const size = Number(database.prepare('PRAGMA page_size').get()?.page_size)
  const pages = database.prepare('SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ?').all(table, 'leaf')
  const found = pages[Math.floor(pages.length * at)]
  return { size, number: Number(found?.pageno) - 1 }
}

function damage(path: string, { size, number }: { readonly size: number; readonly number: number }): void {
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(size, 0xff), 0, size, number * size)
  closeSync(file)
}

describe('the thread', () => {
  it('that ends in the middle: what was asked is refused, and it goes on with another', async () => {
    const { openMortal, errors } = setUp()
    const { queue, threads } = openMortal()
    await queue.push([jobOf('before')])
    const lost = queue.push([jobOf('meanwhile')])
    lost.catch(() => {})
    await new Promise((resolve) => setImmediate(resolve))
    await threads[0]?.terminate()
    await lost.catch((error) => expect(error).toEqual(unavailable))
    await queue.push([jobOf('after')])
    expect(errors).toEqual([unavailable])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen).filter((body) => body !== 'meanwhile')).toEqual(['before', 'after'])
    expect(threads).toHaveLength(2)
  })

  it('that fails: what was asked is refused with the reason', async () => {
    const { openMortal, errors } = setUp()
    const program =
      "require('node:worker_threads').parentPort.once('message', () => { throw new Error('out of order') })"
    const { queue, threads } = openMortal(() => new Worker(program, { eval: true }))
    const cause = expect.objectContaining({ message: 'out of order' })
    await expect(queue.push([jobOf('lost')])).rejects.toMatchObject({ code: 'queue_unavailable', cause })
    await until(() => errors.length > 0)
    expect(errors).toMatchObject([{ code: 'queue_unavailable', cause }])
    await queue.push([jobOf('kept')])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
    expect(threads).toHaveLength(2)
  })

  it('that ends with the answer to a claim: the jobs are handed out nonetheless', async () => {
    const { openMortal, connect, see } = setUp()
    const { queue, threads } = openMortal()
    const ids = Array.from({ length: 50 }, () => jobOf())
    await queue.push(ids)
    const thread = threads[0] as Worker
    // The answer never comes, though the jobs are handed out in the file.
    thread.removeAllListeners('message')
    const seen = work(queue)
    const database = connect()
    const isHandedOut = () =>
      database.prepare('SELECT count(*) AS n FROM hookline_queue_jobs WHERE phase = 2').get()?.n === 10
    await until(isHandedOut)
    await thread.terminate()
    await see(() => seen.length >= 50)
    await queue.drain()
    expect(seen.map(({ id }) => id).sort()).toEqual(ids.map(({ id }) => id).sort())
  })
})

describe('a clock that is set', () => {
  it('back: what is due is handed out at once, also after that', async () => {
    const { open, setClock } = setUp({ isHere: true })
    const queue = open()
    await queue.push([jobOf('before')])
    setClock(-HOURS_3)
    await queue.push([jobOf('after')])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen).sort()).toEqual(['after', 'before'])
  })

  it('back: the lease of a process that died lasts no longer than a lease', async () => {
    const { open, setClock, clock } = setUp({ isHere: true })
    const dying = open({ clock: manualClock(clock.now()) }) // Its time stands still: it renews nothing.
    const first = work(dying, never)
    await dying.push([jobOf('left')])
    await until(() => first.length === 1)
    setClock(-HOURS_3)
    const queue = open()
    const seen = work(queue)
    for (let passed = 0; passed < LEASE_MS - 1_000; passed += 1_000) {
      await queue.counts()
      await clock.advance(1_000)
    }
    expect(seen).toEqual([])
    for (let passed = 0; seen.length === 0 && passed < LEASE_MS; passed += 1_000) {
      await queue.counts()
      await clock.advance(1_000)
    }
    expect(seen).toMatchObject([{ deliveries: 2 }])
  })

  it('forward: what this process works on is not handed out again', async () => {
    const { open, setClock, clock } = setUp({ isHere: true })
    const queue = open()
    const held = Promise.withResolvers<Outcome>()
    const seen = work(queue, () => held.promise)
    await queue.push([jobOf('held'), jobOf('later', { notBefore: clock.now() + HOURS_3 })])
    await until(() => seen.length === 1)
    setClock(HOURS_3)
    while (seen.length < 2) {
      await queue.counts()
      await clock.advance(200)
    }
    expect(bodiesOf(seen)).toEqual(['held', 'later'])
    held.resolve(done)
    await queue.drain()
    expect(seen).toHaveLength(2)
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  })
})

describe('a clock that is set back', () => {
  it('keeps the id of a job that is done known no longer than that, from then on', async () => {
    const { open, setClock, clock, see } = setUp({ isHere: true })
    const queue = open({ knownForMs: 1_000 })
    const seen = work(queue)
    const job = jobOf('a')
    await queue.push([job])
    await queue.drain()
    setClock(-HOURS_3)
    await queue.push([job])
    await queue.drain()
    await clock.advance(999)
    await queue.push([job])
    await queue.drain()
    expect(seen).toHaveLength(1)
    await clock.advance(1)
    await queue.push([job])
    await see(() => seen.length === 2)
  })
})

describe('a job that takes longer than a lease', () => {
  it('stays with whoever works on it, also when a renewal failed', async () => {
    const { open, clock, connect, errors } = setUp({ isHere: true })
    const queue = open()
    const held = Promise.withResolvers<Outcome>()
    const first = work(queue, () => held.promise)
    await queue.push([jobOf('long')])
    await until(() => first.length === 1)
    const second = work(open())
    async function pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await clock.advance(1_000)
        await queue.counts().catch(() => {})
      }
    }
    await pass(2 * LEASE_MS)
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    hurryTime()
    await pass(LEASE_MS / 3)
    expect(errors).toContainEqual(unavailable)
    other.exec('ROLLBACK')
    await pass(2 * LEASE_MS)
    held.resolve(done)
    await queue.drain()
    expect([first.length, second.length]).toEqual([1, 0])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  })
})

describe('a process that stood still until its lease was over', () => {
  it('still says what became of a job that nobody else has, and no more of one that somebody has', async () => {
    const { open, clock } = setUp({ isHere: true })
    const still = open({ clock: manualClock(clock.now()) }) // Its time stands still: it renews nothing.
    const fates: PromiseWithResolvers<Outcome>[] = []
    const first = work(still, () => {
      const fate = Promise.withResolvers<Outcome>()
      fates.push(fate)
      return fate.promise
    })
    await still.push([jobOf('a'), jobOf('b'), jobOf('c')])
    await until(() => first.length === 3)
    await clock.advance(LEASE_MS)
    const queue = open()
    const held = Promise.withResolvers<Outcome>()
    const second = work(queue, () => held.promise, 1)
    await until(() => second.length === 1)
    expect(await queue.counts()).toMatchObject({ waiting: 2, active: 1 })
    fates[0]?.resolve({ dead: 'too late' })
    fates[1]?.resolve(done)
    fates[2]?.resolve({ dead: 'in time' })
    while ((await queue.counts()).dead === 0);
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 1, dead: 1 })
    expect(await queue.dead()).toMatchObject([{ reason: 'in time' }])
    held.resolve(done)
    await queue.drain()
    expect(bodiesOf(second)).toEqual(['a'])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 1 })
  })
})

describe('a worker that was handed a job for the second time', () => {
  it('changes nothing by what it says of the first', () => {
    const { path } = setUp()
    const store = openStore({ path, name: 'default', knownForMs: 1, maxJobs: 10, busyTimeoutMs: 0 })
    const { id, body } = jobOf()
    const claimBy = (owner: number, now: number) =>
      ({ kind: 'claim', now, limit: 1, owner, leaseMs: 1_000, held: undefined }) as const
    store.run([{ kind: 'push', now: 0, ids: [id], notBefore: [undefined], bodies: [body] }])
    const [first] = store.run([claimBy(5, 0)])
    store.run([{ ...claimBy(6, 2_000), limit: 0 }]) // Takes from the first what it had.
    const [second] = store.run([claimBy(5, 2_000)])
    const settle = (deliveries: number, outcome: 'done' | 'retry' | 'dead') => {
      const seq = 2 ** 40 + 1
      const fate = { outcome, retryAt: 0, reason: '', state: undefined }
      store.run([{ kind: 'settle', now: 2_000, owner: 5, id, seq, deliveries, ...fate }])
      return store.run([{ kind: 'counts', now: 2_000 }])[0]
    }
    expect([first, second]).toMatchObject([
      { value: { jobs: [{ deliveries: 1 }] } },
      { value: { jobs: [{ deliveries: 2 }] } },
    ])
    for (const outcome of ['done', 'retry', 'dead'] as const)
      expect(settle(1, outcome)).toMatchObject({ value: { waiting: 0, active: 1, dead: 0 } })
    expect(settle(2, 'done')).toMatchObject({ value: { waiting: 0, active: 0, dead: 0 } })
    store.close()
  })
})

describe('a worker that lost the answer to a claim', () => {
  it('says what it has: that stays with it, and the rest is handed out again', () => {
    const { path } = setUp()
    const store = openStore({ path, name: 'default', knownForMs: 1, maxJobs: 10, busyTimeoutMs: 0 })
    const jobs = [jobOf('had'), jobOf('lost')]
    const bodies = jobs.map(({ body }) => body)
    const claim = (held?: number[]) => ({ kind: 'claim', now: 0, limit: 1, owner: 5, leaseMs: 1_000, held }) as const
    store.run([{ kind: 'push', now: 0, ids: jobs.map(({ id }) => id), notBefore: [undefined, undefined], bodies }])
    store.run([claim()])
    store.run([claim()])
    const replies = store.run([
      { ...claim([2 ** 40 + 1]), now: 7 },
      { kind: 'counts', now: 7 },
    ])
    expect(replies).toMatchObject([
      { value: { jobs: [{ id: jobs[1]?.id, deliveries: 1, firstAt: 7 }] } },
      { value: { waiting: 0, active: 2 } },
    ])
    store.run([{ kind: 'leave', owner: 5, held: [2 ** 40 + 1] }])
    expect(store.run([{ ...claim(), limit: 2 }])).toMatchObject([
      { value: { jobs: [{ deliveries: 2, firstAt: 0 }, { deliveries: 1 }] } }, // What it did not know that it had.
    ])
    store.close()
  })
})

describe('calls that share a commit', () => {
  it('one that fails takes nobody along, and is not counted', async () => {
    const { open, connect } = setUp({ isHere: true })
    const queue = open()
    connect().exec(`
      CREATE TRIGGER refuse BEFORE INSERT ON hookline_queue_bodies WHEN length(NEW.body) = 3
      BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
    const bad = jobOf('bad')
    const pushes = [[jobOf('good')], [jobOf('before bad'), bad], [jobOf('good too')], [jobOf('good 3')]]
    const results = await Promise.allSettled(pushes.map((jobs) => queue.push(jobs)))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(results[1]).toMatchObject({ reason: { code: 'queue_unavailable' } })
    expect(`${(results[1] as PromiseRejectedResult).reason}`).toContain('not this one')
    expect(await queue.counts()).toMatchObject({ waiting: 3, active: 0, dead: 0 })
    await queue.push([{ ...bad, body: Buffer.from('mended') }])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['good', 'good too', 'good 3', 'mended'])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
  })

  it('one whose failure undoes all: the others are done', async () => {
    const { open, connect } = setUp({ isHere: true })
    const queue = open()
    connect().exec(`
      CREATE TRIGGER refuse BEFORE INSERT ON hookline_queue_bodies WHEN length(NEW.body) = 3
      BEGIN SELECT RAISE(ROLLBACK, 'not this one'); END`)
    const results = await Promise.allSettled([queue.push([jobOf('good')]), queue.push([jobOf('bad')])])
    expect(results).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected' }])
    expect(`${(results[1] as PromiseRejectedResult).reason}`).toContain('not this one')
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('one that fails, and somebody has the file then: one waits for it, and the others fail with that', () => {
    const { path, connect } = setUp()
    const store = openStore({ path, name: 'default', knownForMs: 1, maxJobs: 10, busyTimeoutMs: 2_000 })
    const other = connect()
    other.exec("CREATE TRIGGER refuse BEFORE INSERT ON hookline_queue_bodies BEGIN SELECT RAISE(ABORT, 'no'); END")
    const { exec } = DatabaseSync.prototype
    let begun = 0
    const spy = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
      if (sql === 'BEGIN IMMEDIATE') begun += 1
      exec.call(this, sql)
      if (sql === 'ROLLBACK') exec.call(other, 'BEGIN IMMEDIATE')
    })
    onTestFinished(() => spy.mockRestore())
    hurryTime()
    const pushes = Array.from({ length: 4 }, () => {
      const { id, body } = jobOf()
      return { kind: 'push', now: 0, ids: [id], notBefore: [undefined], bodies: [body] } as const
    })
    const replies = store.run(pushes)
    expect(replies).toEqual(Array(4).fill({ failure: expect.objectContaining({ errcode: 5 }) }))
    expect(begun).toBe(2)
    spy.mockRestore()
    other.exec('ROLLBACK; DROP TRIGGER refuse')
    expect(store.run(pushes)).toEqual(Array(4).fill({ value: undefined }))
    store.close()
  })

  it('wait for the disk, unless all of them may be lost with the power', () => {
    const { path } = setUp({ isHere: true })
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
    onTestFinished(() => exec.mockRestore())
    const store = openStore({ path, name: 'default', knownForMs: 1, maxJobs: 10, busyTimeoutMs: 0 })
    /** What the disk was waited for at the last commit. */
    function lastCommit() {
      const statements = exec.mock.calls.map(([sql]) => sql)
      const modes = statements
        .slice(0, statements.lastIndexOf('COMMIT'))
        .join('\n')
        .match(/synchronous = \w+/g)
      return modes?.at(-1)
    }
    const [now, owner] = [Date.now(), 5]
    const push = () => {
      const { id, body } = jobOf()
      return { kind: 'push', now, ids: [id], notBefore: [undefined], bodies: [body] } as const
    }
    const claim = { kind: 'claim', now, limit: 1, owner, leaseMs: 1000, held: undefined } as const
    store.run([push()])
    expect(lastCommit()).toBe('synchronous = FULL')
    store.run([claim])
    expect(lastCommit()).toBe('synchronous = NORMAL')
    store.run([claim, push()])
    expect(lastCommit()).toBe('synchronous = FULL')
    store.close()
  })
})

describe('order', () => {
  it('of a thousand that come due at once: as they came due, with those in line among them', async () => {
    const { open, setClock, clock } = setUp({ isHere: true })
    const queue = open()
    const jobs = Array.from({ length: 1_000 }, (_, index) =>
      jobOf(`${index}`, { notBefore: clock.now() + index * 10 + 10 }),
    )
    await queue.push([...jobs].reverse())
    setClock(5_005)
    await queue.push([jobOf('in line')])
    setClock(HOURS_3)
    const seen = work(queue, () => done, 7)
    await queue.drain()
    const expected = jobs.map(({ body }) => `${body}`)
    expected.splice(500, 0, 'in line')
    expect(bodiesOf(seen)).toEqual(expected)
  })
})

describe('maxJobs', () => {
  it('is not gone over, by no part of a push and by no re-driving; ids that are known take no room', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open({ maxJobs: 3 })
    const known = jobOf('known')
    await queue.push([known, jobOf('dies')])
    await expect(queue.push([jobOf(), jobOf()])).rejects.toMatchObject({ code: 'queue_full' })
    expect(await queue.counts()).toMatchObject({ waiting: 2 })
    await queue.push([known, known, jobOf('third')])
    const seen = work(queue, ({ body }) => (`${Buffer.from(body)}` === 'dies' ? { dead: 'no' } : { retryAt: 8e15 }))
    await until(() => seen.length === 3)
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 2, dead: 1 })
    await queue.push([jobOf('fourth', { notBefore: 8e15 })])
    await expect(queue.redrive('all')).rejects.toMatchObject({ code: 'queue_full' })
    expect(await queue.counts()).toMatchObject({ waiting: 3, dead: 1 })
  })
})

describe('dropping all', () => {
  it('takes more than are dropped at once', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open()
    work(queue, () => ({ dead: 'no' }), 500)
    await queue.push(Array.from({ length: 1_001 }, () => jobOf()))
    await queue.drain()
    expect(await queue.drop('all')).toBe(1_001)
    expect(await queue.counts()).toMatchObject({ dead: 0 })
  })
})

describe('processes', () => {
  it('one that is killed while it works: its jobs come back when the lease is over', async () => {
    const { path, open, clock, see } = setUp()
    const queue = open()
    const jobs = [jobOf('a'), jobOf('b')]
    await queue.push(jobs)
    const { child, lines } = start(path, 'hold')
    child.stdin?.write('go\n')
    await until(() => lines.filter((line) => line.startsWith('got')).length === 2)
    child.kill('SIGKILL')
    await until(() => child.signalCode !== null)
    const seen = work(queue)
    const before = clock.now()
    await see(() => seen.length === 2)
    expect(clock.now() - before).toBeGreaterThan(LEASE_MS / 3)
    expect(seen).toMatchObject([{ deliveries: 2 }, { deliveries: 2 }])
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  }, 60_000)

  it('two that share a file under load get every job once', async () => {
    const { path, open } = setUp()
    const children = [start(path, 'work'), start(path, 'work')]
    await until(() => children.every(({ lines }) => lines.includes('open')))
    for (const { child } of children) child.stdin?.write('go\n')
    const queue = open({ busyTimeoutMs: 10_000 })
    const jobs = Array.from({ length: 2_000 }, () => jobOf('x'.repeat(1_000)))
    await Promise.all(jobs.map((job) => queue.push([job])))
    const got = () => children.map(({ lines }) => lines.filter((line) => line.startsWith('got')))
    await until(() => got().flat().length >= 2_000)
    let left = 1
    while (left > 0) {
      const { waiting, active } = await queue.counts()
      left = waiting + active
    }
    expect(got().flat().sort()).toEqual(jobs.map(({ id }) => `got ${id}`).sort())
    expect(got().map((lines) => lines.length > 0)).toEqual([true, true])
    expect(children.flatMap(({ lines }) => lines).filter((line) => line.startsWith('error'))).toEqual([])
  }, 60_000)

  it('one whose last act is to close its queue lives until that is done', async () => {
    const { path, open } = setUp()
    const { child, lines } = start(path, 'close')
    child.stdin?.write('go\n')
    await until(() => child.exitCode !== null)
    expect([child.exitCode, lines.at(-1)]).toEqual([0, 'closed'])
    expect(await open().counts()).toMatchObject({ waiting: 0, active: 0 })
  }, 60_000)

  it.skipIf(process.platform === 'win32')(
    'one whose disk is full is told so, and loses nothing that it was told is in',
    async () => {
      const { path, open } = setUp()
      open()
      // A file may grow to so many blocks and no more, in this process: a write past them fails as on a full disk.
      const limited = ['sh', '-c', `trap '' XFSZ; ulimit -f 4000; exec "$@"`, 'sh']
      const { child, lines } = start(path, 'push', '1000', limited)
      child.stdin?.write('go\n')
      await until(() => lines.includes('done'))
      child.kill('SIGKILL')
      await until(() => child.signalCode !== null)
      const pushed = lines.filter((line) => line.startsWith('pushed')).map((line) => line.slice(7))
      expect(lines).toContain('failed queue_unavailable')
      expect(lines.filter((line) => /^(pushed|failed)/.test(line))).toHaveLength(1_000)
      expect(pushed.length).toBeGreaterThan(50)
      const queue = open()
      const seen = work(queue, () => done, 100)
      await queue.drain()
      expect(new Set(seen.map(({ id }) => id))).toEqual(new Set([...seen.map(({ id }) => id), ...pushed]))
      for (const { id, body } of seen) expect(`${Buffer.from(body)}`.slice(0, 36)).toBe(id)
    },
    60_000,
  )
})

describe('depth', () => {
  it('costs nothing: whatever is asked finds its rows by an index', async () => {
    const { path } = setUp()
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
    onTestFinished(() => prepare.mockRestore())
    openStore({ path, name: 'default', knownForMs: 1, maxJobs: 1, busyTimeoutMs: 0 }).close()
    const queries = prepare.mock.calls.map(([sql]) => sql).filter((sql) => !/PRAGMA|sqlite_schema/.test(sql))
    prepare.mockRestore()
    expect(queries.length).toBeGreaterThan(20)
    const database = new DatabaseSync(path)
    // Of those who work on a queue there are a few.
    const scans = queries.flatMap((sql) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail))
        .filter((detail) => /SCAN|TEMP/.test(detail) && !/hookline_queue_(owners|schema)/.test(detail)),
    )
    database.close()
    expect(scans).toEqual([])
  })

  it('ids of jobs that are done are forgotten in time', async () => {
    const { open, clock, connect } = setUp({ isHere: true })
    const queue = open({ knownForMs: 1_000 })
    work(queue)
    for (let round = 0; round < 5; round += 1) {
      await queue.push(Array.from({ length: 50 }, () => jobOf()))
      await queue.drain()
      await clock.advance(1_000)
    }
    const count = (table: string) => connect().prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n
    expect(count('hookline_queue_done')).toBeLessThanOrEqual(100)
    expect(count('hookline_queue_ids')).toBe(count('hookline_queue_done'))
  })

  it('a closed queue leaves its jobs in one file, none in the log beside it', async () => {
    const { path, open } = setUp()
    const queue = open()
    for (let round = 0; round < 20; round += 1)
      await queue.push(Array.from({ length: 100 }, () => jobOf('x'.repeat(4_000))))
    await queue.close({ graceMs: 0 })
    expect(statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0)
  })

  it('the log beside the file grows to a size and no further', async () => {
    const { path, open } = setUp()
    const queue = open()
    work(queue)
    const sizes: number[] = []
    for (let round = 0; round < 25; round += 1) {
      await queue.push(Array.from({ length: 500 }, () => jobOf('x'.repeat(4_000))))
      await queue.drain()
      sizes.push(statSync(`${path}-wal`).size)
    }
    expect(Math.max(...sizes)).toBeLessThan(60_000_000)
    expect(statSync(path).size).toBeLessThan(60_000_000)
  }, 60_000)
})

/** Starts `sqlite-child.ts`; what it printed so far is in the lines. */
function start(path: string, what: string, count = '0', under: readonly string[] = []) {
  const program = fileURLToPath(new URL('sqlite-child.ts', import.meta.url))
  const [file = '', ...args] = [...under, process.execPath, program, path, what, count]
  const child: ChildProcess = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  let rest = ''
  child.stdout?.on('data', (chunk) => {
    const parts = `${rest}${chunk}`.split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
  })
  return { child, lines }
}
