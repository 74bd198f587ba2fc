import { cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { StatementSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import type { Outcome } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { throwing } from '../../support/throwing.ts'
import { until } from '../../support/until.ts'
import {
  bodiesIn,
  bodiesOf,
  damagePage,
  done,
  hurryTime,
  jobOf,
  newFile,
  replaceInFs,
  setUp,
  sideFilesOf,
  truncateWal,
  unavailable,
  work,
} from './set-up.ts'

type Set = ReturnType<typeof setUp>

describe('a file that cannot be used is refused when the queue is created', () => {
  function expectRefusal(path: string, found: string): void {
    for (const expected of [unavailable, path, found]) expect(() => sqliteQueue({ path })).toThrow(expected)
  }

  /** Changes a file that a queue has created. */
  const changed =
    (change: (set: Set) => unknown) =>
    async (set: Set): Promise<unknown> => {
      await set.open().close({ graceMs: 0 })
      return change(set)
    }
  const executed = (sql: string) => changed(({ connect }) => connect().exec(sql))
  const damaged = changed(({ path, connect }) => damagePage(path, connect(), 'hookline_queues'))
  const triggerOn = (table: string) =>
    `CREATE TRIGGER gone AFTER INSERT ON ${table} BEGIN DELETE FROM hookline_queues; END`

  it.each<[string, (set: Set) => unknown, string]>([
    ['is no database', ({ path }) => writeFileSync(path, 'Dear diary, '.repeat(100)), 'file is not a database'],
    ['is a folder', ({ path }) => mkdirSync(path), 'unable to open database file'],
    ['is in a folder that is missing', ({ path }) => rmSync(dirname(path), { recursive: true }), 'does not exist'],
    ['is locked by another process', executed('BEGIN IMMEDIATE'), 'database is locked'],
    ['is damaged', damaged, 'database disk image is malformed'],
    ['has a trigger on the jobs', executed(triggerOn('hookline_queue_jobs')), 'trigger gone'],
    ['has a trigger on the log', executed(triggerOn('hookline_log')), 'trigger gone'],
    ['has tables of a newer version', executed('UPDATE hookline_queue_schema SET version = 6'), 'version 6'],
    ['has tables of an older version', executed('UPDATE hookline_queue_schema SET version = 2'), 'version 2'],
    ['has tables without a version', executed('DROP TABLE hookline_queue_schema'), 'no version'],
  ])('one that %s', async (_what, prepare, found) => {
    const set = setUp({ isWhole: false })
    await prepare(set)
    hurryTime()
    expectRefusal(set.path, found)
    if (existsSync(dirname(set.path))) expect(sideFilesOf(set.path)).toEqual([])
  })

  it('one that is mounted alone, as a container may do it: its WAL would lie elsewhere', needs('Linux'), async () => {
    const path = join(dirname(newFile()), 'a name.db')
    await sqliteQueue({ path }).close({ graceMs: 0 })
    const escaped = path.replace(' ', '\\040')
    replaceInFs('readFileSync', () => `29 28 8:1 /jobs.db ${escaped} rw,relatime - ext4 /dev/sda rw\n`)
    expectRefusal(path, 'mount')
    replaceInFs('readFileSync', () => `29 28 8:1 ${escaped} /elsewhere rw,relatime - ext4 /dev/sda rw\n`)
    await sqliteQueue({ path }).close({ graceMs: 0 })
  })

  it('but none is where the system lists neither mounts nor locks', async () => {
    const { open } = setUp()
    await open().close({ graceMs: 0 })
    replaceInFs('readFileSync', throwing('ENOENT'))
    const queue = open()
    await queue.push([jobOf()])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('on a runtime that has the names of node:sqlite alone', () => {
    const spy = vi.spyOn(process, 'getBuiltinModule').mockReturnValue({ DatabaseSync: class {} })
    onTestFinished(() => spy.mockRestore())
    expectRefusal(newFile(), 'has no SQLite')
  })
})

it.each(['', '.link'])(
  'a file is for this user alone, and so are the files beside it: %j',
  needs('POSIX'),
  async (end) => {
    const path = newFile()
    if (end !== '') symlinkSync(path, path + end) // To a file that does not exist.
    const queue = sqliteQueue({ path: path + end })
    await queue.push([jobOf('{}')])
    const files = [path, `${path}-wal`, `${path}-shm`, ...sideFilesOf(path).map((name) => join(dirname(path), name))]
    expect(files.map((file) => statSync(file).mode & 0o777)).toEqual(Array(4).fill(0o600))
    await queue.close({ graceMs: 0 })
  },
)

describe('a file that goes away', needs('POSIX'), () => {
  const endsOf = (path: string, ...ends: string[]) => {
    for (const end of ends) rmSync(path + end)
  }

  it.each<[string, (path: string) => unknown, kept: readonly string[]]>([
    ['itself', (path) => endsOf(path, '', '-wal', '-shm'), ['after']],
    ['its WAL', (path) => endsOf(path, '-wal'), ['after', 'before']],
    ['its index', (path) => endsOf(path, '-shm'), ['after', 'before']],
    ['its WAL and its index', (path) => endsOf(path, '-wal', '-shm'), ['after', 'before']],
    ['its side file', (path) => endsOf(join(dirname(path), sideFilesOf(path)[0] ?? ''), ''), ['after', 'before']],
    ['its locks, by a copy', (path) => cpSync(path, `${path}.copy`), ['after', 'before']],
  ])(
    'while it is open, %s: a call is refused, the next one opens it anew, and nothing else is lost',
    async (what, remove, kept) => {
      if (what.includes('lock') && process.platform !== 'linux') return
      const { path, open } = setUp()
      const queue = open()
      await queue.push([jobOf('before')])
      const before = sideFilesOf(path)
      remove(path)
      hurryTime()

      await expect(queue.push([jobOf('refused')])).rejects.toThrow(unavailable)
      await queue.push([jobOf('after')])

      expect(bodiesIn(path)).toEqual(kept)
      expect(existsSync(`${path}-wal`)).toBe(true)
      if (what.includes('side')) expect(sideFilesOf(path)).not.toEqual(before)
    },
  )

  it('with its folder: calls are refused, with its name, until it is there', async () => {
    const { path, open } = setUp()
    const queue = open()
    const folder = dirname(path)
    rmSync(folder, { recursive: true })
    await expect(queue.push([jobOf()])).rejects.toThrow(unavailable)
    await expect(queue.push([jobOf()])).rejects.toThrow(`${folder} does not exist`)
    mkdirSync(folder)
    await queue.push([jobOf()])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('with what was in its WAL, which is truncated: a call is refused, and nothing is lost that is acknowledged after', async () => {
    const { path, queue } = await truncateWal()
    await expect(queue.push([jobOf('refused')])).rejects.toThrow('truncated')
    await queue.push([jobOf('after')])
    await queue.close({ graceMs: 0 })
    expect(bodiesIn(path)).toEqual(['after', 'before'])
  })

  it('in favour of a backup: what was claimed when that was made is claimed again', async () => {
    const { path, open, see } = setUp()
    const queue = open()
    const seen = work(queue, () => new Promise(() => {}))
    await queue.push([jobOf('a')])
    await see(() => seen.length === 1)
    await queue.backup(`${path}.1`)
    endsOf(path, '', '-wal', '-shm')
    renameSync(`${path}.1`, path)
    await see(() => seen.length === 2)
    expect(seen.map(({ claimCount }) => claimCount)).toEqual([1, 2])
  })

  it('in the middle of a claim: the jobs are claimed again', async () => {
    const { path, open, drained } = setUp()
    const queue = open()
    await queue.push([jobOf('a')])
    const { run } = StatementSync.prototype
    const remove = vi.fn(() => rmSync(`${path}-wal`))
    const spy = vi.spyOn(StatementSync.prototype, 'run').mockImplementation(function (this: StatementSync, ...values) {
      const result = run.apply(this, values as never)
      if (this.sourceSQL === 'COMMIT' && remove.mock.calls.length === 0) remove()
      return result
    })
    onTestFinished(() => spy.mockRestore())

    const seen = work(queue)
    await drained(queue)

    expect([bodiesOf(seen), remove.mock.calls.length]).toEqual([['a'], 1])
  })
})

describe('a file that others use too', () => {
  it('for something else keeps their tables and their version', async () => {
    const { connect, open } = setUp()
    connect().exec('CREATE TABLE theirs (a); INSERT INTO theirs VALUES (5); PRAGMA user_version = 7')
    await open().push([jobOf()])
    expect(connect().prepare('SELECT a FROM theirs').all()).toEqual([{ a: 5 }])
    expect(connect().prepare('PRAGMA user_version').get()).toEqual({ user_version: 7 })
  })

  it('and one of whom keeps it locked: a push is refused, one after that is accepted, and outcomes are recorded then', async () => {
    const { open, connect, errors, drained } = setUp()
    const queue = open()
    const held = Promise.withResolvers<Outcome>()
    const seen = work(queue, () => held.promise)
    await queue.push([jobOf('before')])
    await until(() => seen.length === 1)
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    held.resolve(done)

    await expect(queue.push([jobOf('meanwhile')])).rejects.toThrow('database is locked')
    await until(() => errors.length > 0)
    other.exec('ROLLBACK')
    await queue.push([jobOf('after')])

    await drained(queue)
    expect(bodiesOf(seen)).toEqual(['before', 'after'])
  })
})
