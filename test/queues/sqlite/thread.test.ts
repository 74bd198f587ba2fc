import { readdirSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Outcome } from '../../../src/queues/api.ts'
import { connect } from '../../../src/queues/sqlite/connection.ts'
import { openForRequests } from '../../../src/queues/sqlite/thread-requests.ts'
import type { ThreadSettings } from '../../../src/queues/sqlite/worker-thread.ts'
import { needs } from '../../support/needs.ts'
import { serveHere, sqliteQueueWith } from '../../support/sqlite.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, HOURS_3, jobOf, requestsOf, setUp, sideFilesOf, unavailable, work } from './set-up.ts'

describe('the worker thread', () => {
  it('that ends in the middle: calls on their way are refused, and the next ones start another', async () => {
    const { openMortal, errors } = setUp()
    const { queue, threads } = openMortal()
    await queue.push([jobOf('before')])
    const lost = queue.push([jobOf('meanwhile')])
    lost.catch(() => {})
    await new Promise((resolve) => setImmediate(resolve))
    await threads[0]?.terminate()
    await lost.catch((error) => expect(error).toEqual(unavailable))
    await queue.push([jobOf('after')])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen).filter((body) => body !== 'meanwhile')).toEqual(['before', 'after'])
    expect(threads).toHaveLength(2)
    expect(errors).toEqual([])
  })

  it('that fails: calls on their way are refused with the reason', async () => {
    const { openMortal } = setUp()
    const program =
      "require('node:worker_threads').parentPort.once('message', () => { throw new Error('out of order') })"
    const { queue, threads } = openMortal(() => new Worker(program, { eval: true }))
    const error = await queue.push([jobOf('lost')]).catch((reason) => reason)
    expect(error).toEqual(unavailable)
    expect(error.message).toMatch(
      /its worker thread ended\. Got 'out of order'\. Call again: the next call starts another thread\.$/,
    )
    expect(error.cause.cause).toMatchObject({ message: 'out of order' })
    await queue.push([jobOf('kept')])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
    expect(threads).toHaveLength(2)
  })

  it('that ends with the answer to a claim: its jobs are claimed again, and the lost claim does not count', async () => {
    const { openMortal, connect, errors, see } = setUp()
    const { queue, threads } = openMortal()
    const ids = Array.from({ length: 50 }, () => jobOf())
    await queue.push(ids)
    const thread = threads[0] as Worker
    thread.removeAllListeners('message') // The answer never comes, though the jobs are claimed in the file.
    const seen = work(queue)
    const database = connect()
    const areClaimed = () =>
      database.prepare('SELECT count(*) AS n FROM hookline_queue_jobs WHERE phase = 2').get()?.n === 10
    await until(areClaimed)
    await thread.terminate()
    await see(() => seen.length >= 50)
    await queue.drain()
    expect(errors).toEqual([unavailable])
    expect(seen.map(({ id }) => id).sort()).toEqual(ids.map(({ id }) => id).sort())
    expect(new Set(seen.map(({ claimCount }) => claimCount))).toEqual(new Set([1]))
  })

  it('that ends while a handler runs: the job stays claimed, also for other processes, and is finished once', async () => {
    const { openMortal, path } = setUp()
    const { queue, threads } = openMortal()
    const held = Promise.withResolvers<Outcome>()
    const seen = work(queue, () => held.promise)
    await queue.push([jobOf('held')])
    await until(() => seen.length === 1)
    await threads[0]?.terminate()
    const other = openForRequests(path, 5) // As another process that looks for dead owners.
    expect(other.run([requestsOf().claim(1, { now: Date.now() + HOURS_3 })])).toMatchObject([{ value: { jobs: [] } }])
    other.close()
    expect(await queue.counts()).toMatchObject({ active: 1 }) // Starts another thread.
    held.resolve({ deadLetter: 'finished' })
    await queue.drain()
    expect(await queue.deadLetters()).toMatchObject([{ reason: 'finished' }])
    expect([seen.length, threads.length]).toEqual([1, 2])
  })

  it('that does not answer: closing does not wait for it, and it keeps no process alive', async () => {
    const { path } = setUp()
    const calls: string[] = []
    const note = (call: string) => () => void calls.push(call)
    const listeners = new Map<string, () => void>()
    const on = (event: string, listener: () => void) => listeners.set(event, listener)
    const thread = { on, postMessage: note('postMessage'), ref: note('ref'), unref: note('unref') }
    const connection = connect(path, 'q', () => thread as never)
    const queue = { name: 'q', dedupeWindowMs: 1, maxJobs: 1, timeoutMs: 1 }
    connection.send({ kind: 'nextDueAt', queue } as never).catch(() => {})
    await new Promise((resolve) => setImmediate(resolve))
    await connection.close()
    expect(calls).toEqual(['unref', 'ref', 'postMessage', 'unref'])
    listeners.get('exit')?.() // Now it lets go of the files.
  })
})

describe('queues of one file in one process', () => {
  it('share a thread, a side file and the commits of calls that are made together', async () => {
    const { path } = setUp()
    const threads: ThreadSettings[] = []
    const start = (settings: ThreadSettings) => {
      threads.push(settings)
      return serveHere(settings)
    }
    const queues = Array.from({ length: 20 }, (_, index) => sqliteQueueWith({ path, name: `queue ${index}` }, start))
    await Promise.all(queues.map((queue) => queue.counts())) // Adds them to the file.
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
    onTestFinished(() => exec.mockRestore())
    await Promise.all(queues.map((queue, index) => queue.push([jobOf(`${index}`)])))
    expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT')).toHaveLength(1)
    const seen = await Promise.all(
      queues.map(async (queue) => {
        const jobs = work(queue)
        await queue.drain()
        return bodiesOf(jobs)
      }),
    )
    expect(seen).toEqual(queues.map((_, index) => [`${index}`]))
    expect(threads).toHaveLength(1)
    expect(sideFilesOf(path)).toHaveLength(1)
    const [last, ...others] = queues
    await Promise.all(others.map((queue) => queue.close({ graceMs: 0 })))
    expect(await last?.counts()).toMatchObject({ waiting: 0 })
    expect(sideFilesOf(path)).toHaveLength(1)
    await last?.close({ graceMs: 0 })
    expect(readdirSync(dirname(path))).toEqual(['jobs.db'])
  })

  it('store a job and claim it in one commit, and record its outcome in the next', async () => {
    const { open } = setUp({ isHere: true })
    const queue = open()
    const seen = work(queue)
    await queue.drain()
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
    onTestFinished(() => exec.mockRestore())
    await queue.push([jobOf('a'), jobOf('b')])
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['a', 'b'])
    expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT')).toHaveLength(2)
  })

  it('are the same by any path that leads to the file', needs('POSIX'), async () => {
    const { path, open } = setUp({ isHere: true })
    open()
    symlinkSync(path, `${path}-link`)
    symlinkSync(dirname(path), join(dirname(path), 'folder'))
    const links = [open({ path: `${path}-link` }), open({ path: join(dirname(path), 'folder', 'jobs.db') })]
    await Promise.all(links.map((queue) => queue.push([jobOf()])))
    expect(sideFilesOf(path)).toHaveLength(1)
    expect(await links[0]?.counts()).toMatchObject({ waiting: 2 })
  })

  it('one that is full fails alone, without a commit for each call', async () => {
    const { open } = setUp({ isHere: true })
    const [full, other] = [open({ name: 'full', maxJobs: 1 }), open({ name: 'other' })]
    await Promise.all([full.push([jobOf()]), other.push([jobOf()])])
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
    onTestFinished(() => exec.mockRestore())
    const results = await Promise.allSettled([other.push([jobOf()]), full.push([jobOf()]), other.push([jobOf()])])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(results[1]).toMatchObject({ reason: { code: 'queue_full' } })
    expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT')).toHaveLength(1)
    expect([await full.counts(), await other.counts()]).toMatchObject([{ waiting: 1 }, { waiting: 3 }])
  })

  it('one that closes while the file is locked: its jobs are released as soon as the file is free', async () => {
    const { open, connect, errors } = setUp({ isHere: true })
    const [closing, other] = [open(), open()]
    const held = Promise.withResolvers<Outcome>()
    const seen = work(closing, () => held.promise)
    await closing.push([jobOf('a')])
    await until(() => seen.length === 1)
    const locking = connect()
    locking.exec('BEGIN IMMEDIATE')
    held.resolve({ complete: true })
    await until(() => errors.length > 0)
    await closing.close({ graceMs: 0 })
    locking.exec('ROLLBACK')
    expect(await other.counts()).toMatchObject({ active: 1 }) // Sent before the release.
    expect(await other.counts()).toMatchObject({ waiting: 1, active: 0 })
    const again = work(other)
    await other.drain()
    expect(again).toMatchObject([{ claimCount: 2 }])
  })

  it('one that closes while the folder is gone ends nonetheless', async () => {
    const { path } = setUp({ isWhole: false })
    const { queue, push } = requestsOf()
    const connection = connect(path, queue.name, serveHere)
    rmSync(dirname(path), { recursive: true, maxRetries: 9 })
    const refused = connection.send(push('a'))
    refused.catch(() => {})
    await connection.close()
    await expect(refused).rejects.toThrow('does not exist. Got')
  })

  it('opened while the last one closes: with a thread and an owner of its own', async () => {
    const { path } = setUp()
    const { queue, counts, push } = requestsOf()
    const first = connect(path, queue.name, serveHere)
    await first.send(push('a'))
    const [before] = sideFilesOf(path)
    const closing = first.close()
    const second = connect(path, queue.name, serveHere)
    await second.send(push('b'))
    await closing
    expect(await second.send(counts())).toMatchObject({ waiting: 2 })
    expect(sideFilesOf(path)).toEqual([expect.not.stringMatching(`${before}`)])
    await second.close()
    expect(sideFilesOf(path)).toEqual([])
  })
})

describe('calls that share a commit', () => {
  it('one that fails does not fail the others, and is not counted', async () => {
    const { open, connect } = setUp({ isHere: true })
    const queue = open()
    await queue.counts() // A file with a trigger is not opened.
    connect().exec(`
      CREATE TRIGGER refuse BEFORE INSERT ON hookline_queue_bodies WHEN length(NEW.body) = 3
      BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
    const bad = jobOf('bad')
    const pushes = [[jobOf('good')], [jobOf('before bad'), bad], [jobOf('good too')], [jobOf('good 3')]]
    const results = await Promise.allSettled(pushes.map((jobs) => queue.push(jobs)))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(results[1]).toMatchObject({ reason: { code: 'queue_unavailable' } })
    expect(`${(results[1] as PromiseRejectedResult).reason}`).toContain('not this one')
    expect(await queue.counts()).toMatchObject({ waiting: 3, active: 0, deadLetters: 0 })
    await queue.push([{ ...bad, body: Buffer.from('mended') }])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['good', 'good too', 'good 3', 'mended'])
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
  })

  it('one whose failure undoes the transaction: the others are carried out', async () => {
    const { open, connect } = setUp({ isHere: true })
    const queue = open()
    await queue.counts() // A file with a trigger is not opened.
    connect().exec(`
      CREATE TRIGGER refuse BEFORE INSERT ON hookline_queue_bodies WHEN length(NEW.body) = 3
      BEGIN SELECT RAISE(ROLLBACK, 'not this one'); END`)
    const results = await Promise.allSettled([queue.push([jobOf('good')]), queue.push([jobOf('bad')])])
    expect(results).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected' }])
    expect(`${(results[1] as PromiseRejectedResult).reason}`).toContain('not this one')
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('wait once, together, while another process locks the file', () => {
    const { path, connect } = setUp()
    const file = openForRequests(path, 1)
    file.run([requestsOf().counts()])
    connect().exec('BEGIN IMMEDIATE')
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
    onTestFinished(() => exec.mockRestore())
    const replies = file.run(Array.from({ length: 4 }, () => requestsOf().push('job')))
    expect(replies).toEqual(Array(4).fill({ failure: expect.objectContaining({ code: 'queue_unavailable' }) }))
    expect(exec.mock.calls.filter(([sql]) => sql === 'BEGIN IMMEDIATE')).toHaveLength(1)
    file.close()
  })

  it('wait for the disk, unless all of them may be lost with the power', () => {
    const { path } = setUp()
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
    onTestFinished(() => exec.mockRestore())
    const file = openForRequests(path, 1)
    const { push, claim, counts } = requestsOf()
    function lastCommit() {
      const statements = exec.mock.calls.map(([sql]) => sql)
      const modes = statements
        .slice(0, statements.lastIndexOf('COMMIT'))
        .join('\n')
        .match(/synchronous = \w+/g)
      return modes?.at(-1)
    }
    file.run([push('a', 'b')])
    expect(lastCommit()).toBe('synchronous = FULL')
    file.run([claim(1), counts()])
    expect(lastCommit()).toBe('synchronous = NORMAL')
    file.run([claim(2), push('c')])
    expect(lastCommit()).toBe('synchronous = FULL')
    file.close()
  })
})
