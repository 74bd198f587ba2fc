import { readdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { StatementSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import type { Outcome } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, jobOf, replaceInFs, setUp, sideFilesOf, work } from './set-up.ts'

describe('queues of one file in one process', () => {
  it('share a side file and the commits of calls that are made together, and not their jobs and ids', async () => {
    const { path } = setUp()
    const queues = Array.from({ length: 20 }, (_, index) => sqliteQueue({ path, name: `queue ${index}` }))
    const run = vi.spyOn(StatementSync.prototype, 'run')
    onTestFinished(() => run.mockRestore())
    const { id } = jobOf()
    await Promise.all(queues.map((queue, index) => queue.push([jobOf(`${index}`, { id })])))
    const statements = run.mock.contexts.map((statement) => (statement as StatementSync).sourceSQL)
    expect(statements.filter((sql) => sql === 'BEGIN IMMEDIATE')).toHaveLength(1)
    const seen = queues.map((queue) => work(queue))
    await Promise.all(queues.map((queue) => queue.drain()))
    expect(seen.map(bodiesOf)).toEqual(queues.map((_, index) => [`${index}`]))
    expect(sideFilesOf(path)).toHaveLength(1)
    const [last, ...others] = queues
    await Promise.all(others.map((queue) => queue.close({ graceMs: 0 })))
    expect(await last?.counts()).toMatchObject({ waiting: 0 })
    expect(sideFilesOf(path)).toHaveLength(1)
    await last?.close({ graceMs: 0 })
    expect(readdirSync(dirname(path))).toEqual(['jobs.db'])
  })

  it('are the same by any path that leads to the file', needs('POSIX'), async () => {
    const { path, open } = setUp()
    open()
    symlinkSync(path, `${path}-link`)
    symlinkSync(dirname(path), join(dirname(path), 'folder'))
    const links = [open({ path: `${path}-link` }), open({ path: join(dirname(path), 'folder', 'jobs.db') })]
    await Promise.all(links.map((queue) => queue.push([jobOf()])))
    expect(sideFilesOf(path)).toHaveLength(1)
    expect(await links[0]?.counts()).toMatchObject({ waiting: 2 })
  })

  it('one that closes while the file is locked: its jobs are released as soon as the file is free', async () => {
    const { open, connect, errors } = setUp()
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
    expect(await other.counts()).toMatchObject({ waiting: 1, active: 0 })
    const again = work(other)
    await other.drain()
    expect(again).toMatchObject([{ claimCount: 2 }])
  })

  it('opened while the last one closes: stores nonetheless', async () => {
    const { path, open } = setUp()
    const first = open()
    await first.push([jobOf('a')])
    const closing = first.close({ graceMs: 0 })
    const second = open()
    await second.push([jobOf('b')])
    await closing
    expect(await second.counts()).toMatchObject({ waiting: 2 })
    await second.close({ graceMs: 0 })
    expect(sideFilesOf(path)).toEqual([])
  })
})

describe('calls that share a commit', () => {
  it.each(['ABORT', 'ROLLBACK'])('one that fails does not fail the others, and is not counted: %s', async (how) => {
    const { open, connect } = setUp()
    const queue = open()
    await queue.counts() // A file with a trigger is not opened.
    connect().exec(`
      CREATE TRIGGER refuse BEFORE INSERT ON hookline_queue_bodies WHEN length(NEW.body) = 3
      BEGIN SELECT RAISE(${how}, 'not this one'); END`)
    const bad = jobOf('bad')

    const pushes = [[jobOf('good')], [jobOf('before bad'), bad], [jobOf('good too')]]
    const results = await Promise.allSettled(pushes.map((jobs) => queue.push(jobs)))

    const reason = { code: 'queue_unavailable', message: expect.stringContaining('not this one') }
    expect(results).toMatchObject([{ status: 'fulfilled' }, { reason }, { status: 'fulfilled' }])
    expect(await queue.counts()).toMatchObject({ waiting: 2, active: 0, deadLetters: 0 })
    await queue.push([{ ...bad, body: Buffer.from('mended') }])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['good', 'good too', 'mended'])
  })

  it('wait while another process writes, and this process goes on', async () => {
    const { open, connect } = setUp()
    const queue = open({ timeoutMs: 5_000 })
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    const pushes = Promise.all([queue.push([jobOf('a')]), queue.push([jobOf('b')])])
    await new Promise((resolve) => setTimeout(resolve, 20))
    other.exec('COMMIT')
    await pushes
    expect(await queue.counts()).toMatchObject({ waiting: 2 })
  })

  it('wait for the disk where something was promised', async () => {
    const { open, connect } = setUp()
    const queue = open()
    await queue.push([jobOf('first')])
    const sync = replaceInFs('fdatasync', () => {}) // A disk that does not answer.
    const stored = vi.fn()
    const push = queue.push([jobOf('second')]).then(stored)
    const isCommitted = () => connect().prepare('SELECT count(*) AS n FROM hookline_queue_jobs').get()?.n === 2
    await until(isCommitted)
    expect(await queue.counts()).toMatchObject({ waiting: 2 })
    const seen = work(queue)
    await until(() => seen.length === 2)
    expect(stored).not.toHaveBeenCalled()
    const [, answer] = sync.mock.calls[0] as unknown as [number, (error: Error | null) => void]
    answer(null)
    await push
  })
})
