import fs, { cpSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { StatementSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { openTables } from '../../../src/store/sqlite/sqlite-tables.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import {
  bodiesIn,
  bodiesOf,
  damage,
  hurryTime,
  jobOf,
  newFile,
  pageInside,
  setUp,
  sideFilesOf,
  start,
  truncateLog,
  unavailable,
  work,
} from './set-up.ts'

/** A copy drops the locks, too: the message names what is looked for first, which depends on the time. */
const removedOrUnlocked = /was removed or replaced|drops all locks|this process copied or opened it/

describe('a file that cannot be used is refused when the queue is created', () => {
  function refusal(path: string): Error {
    try {
      sqliteQueue({ path })
    } catch (error) {
      expect(error).toEqual(unavailable)
      return error as Error
    }
    throw new Error('it was not refused')
  }

  it.each<[string, (path: string) => unknown, (folder: string) => string]>([
    ['no database', (path) => writeFileSync(path, 'Dear diary, '.repeat(100)), () => 'it is not a SQLite database'],
    ['a folder', (path) => mkdirSync(path), () => 'of a file, not of a directory'],
    [
      'in a folder that is missing',
      (path) => rmSync(dirname(path), { recursive: true }),
      (folder) => `the directory ${folder} does not exist`,
    ],
  ])('one that is %s', (_what, prepare, found) => {
    const path = newFile()
    prepare(path)
    expect(refusal(path).message).toContain(found(dirname(path)))
  })

  it('that another process keeps locked', async () => {
    const { path, open, connect } = setUp()
    await open().close({ graceMs: 0 })
    connect().exec('BEGIN IMMEDIATE')
    hurryTime()
    expect(refusal(path).message).toMatch(
      /: another process keeps it locked\. Got 'database is locked'\. End that .*[^.]\.$/,
    )
  })

  it('damaged', async () => {
    const { path, open, connect } = setUp({ isWhole: false })
    await open().close({ graceMs: 0 })
    const database = connect()
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    damage(path, pageInside(database, 'hookline_queues'))
    database.close()
    expect(refusal(path).message).toMatch(
      /: it is damaged\. Got 'database disk image is malformed'\. Move it .*[^.]\.$/,
    )
  })

  it(
    'mounted alone, as a container mounts one file of its host: its WAL would lie elsewhere',
    needs('Linux'),
    async () => {
      const path = join(dirname(newFile()), 'a name.db')
      await sqliteQueue({ path }).close({ graceMs: 0 })
      const escaped = path.replace(' ', '\\040')
      replaceInFs('readFileSync', () => `29 28 8:1 /jobs.db ${escaped} rw,relatime - ext4 /dev/sda rw\n`)
      expect(refusal(path).message).toBe(
        `Queue default cannot use ${path}: the file is mounted alone, so its WAL would lie outside of the mount, and be lost. Mount its folder.`,
      )
      replaceInFs('readFileSync', () => `29 28 8:1 ${escaped} /elsewhere rw,relatime - ext4 /dev/sda rw\n`)
      await sqliteQueue({ path }).close({ graceMs: 0 })
    },
  )

  it('not where the system lists neither mounts nor locks', async () => {
    const { open } = setUp()
    await open().close({ graceMs: 0 })
    replaceInFs('readFileSync', () => {
      throw new Error('ENOENT')
    })
    const queue = open()
    await queue.push([jobOf()])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it.each(['hookline_queue_jobs', 'hookline_queues', 'hookline_log'])(
    'with a trigger on %s, which could delete what is acknowledged',
    async (table) => {
      const { path, open, connect } = setUp()
      await open().close({ graceMs: 0 })
      connect().exec(`CREATE TRIGGER gone AFTER INSERT ON ${table} BEGIN DELETE FROM hookline_queue_jobs; END`)
      expect(refusal(path).message).toContain(
        'must have no trigger, which could delete or copy messages. Got the trigger gone',
      )
    },
  )

  it('where SQLite can keep no WAL beside it', () => {
    expect(() => openTables(':memory:')).toThrow('Pass the path of a file on a disk of this machine.')
  })

  it.each<[string, unknown]>([
    ['lacks node:sqlite', undefined],
    ['has its names alone', { DatabaseSync: class {} }],
  ])('on a runtime that %s', (_case, module) => {
    const path = newFile()
    const spy = vi.spyOn(process, 'getBuiltinModule').mockReturnValue(module as object)
    onTestFinished(() => spy.mockRestore())
    const advice =
      /: this runtime has no SQLite\. Got one without the module node:sqlite\. Run on Node 22\.19, Bun .* another engine\.$/
    expect(refusal(path).message).toMatch(advice)
  })

  it.each([
    ['a newer version', 'UPDATE hookline_queue_schema SET version = 6', '6'],
    ['release 0.3', 'UPDATE hookline_queue_schema SET version = 2', '2'],
    ['no version', 'DELETE FROM hookline_queue_schema', 'none'],
    ['no table of their version', 'DROP TABLE hookline_queue_schema', 'none'],
  ])('with tables of %s', async (_case, change, found) => {
    const { path, connect, open } = setUp()
    await open().close({ graceMs: 0 })
    connect().exec(change)
    expect(refusal(path).message).toBe(
      `Queue default cannot use ${path}: this Hookline knows version 5 of its tables. Got version ${found}. Use the Hookline that wrote it, or pass the path of a new file.`,
    )
  })
})

function replaceInFs(
  name: 'existsSync' | 'readFileSync' | 'statSync',
  fake: (path: unknown) => never | boolean | string,
): void {
  const spy = vi.spyOn(fs, name).mockImplementation(fake as never)
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
}

it.each(['', '.link'])('is for this user alone, and so are the files beside it: %j', needs('POSIX'), async (end) => {
  const path = newFile()
  if (end !== '') symlinkSync(path, path + end) // To a file that does not exist.
  const queue = sqliteQueue({ path: path + end })
  await queue.push([jobOf('{}')])
  const names = readdirSync(dirname(path))
  expect(names).toEqual(expect.arrayContaining(['jobs.db', 'jobs.db-wal', 'jobs.db-shm']))
  for (const name of names.filter((each) => !each.endsWith('.link')))
    expect([name, statSync(join(dirname(path), name)).mode & 0o777]).toEqual([name, 0o600])
  await queue.close({ graceMs: 0 })
})

describe('a file that goes away', needs('POSIX'), () => {
  it('with its folder: each call says what to do, until it is there', async () => {
    const { path, open } = setUp()
    const queue = open({ name: 'outbox' })
    const folder = dirname(path)
    rmSync(folder, { recursive: true })
    await expect(queue.push([jobOf()])).rejects.toThrow('was removed')
    const error = await queue.push([jobOf()]).catch((reason) => reason)
    expect(error).toEqual(unavailable)
    expect(error.message).toBe(
      `Queue outbox cannot use ${path}: the directory ${folder} does not exist. Got 'unable to open database file'. Create it first.`,
    )
    mkdirSync(folder)
    await queue.push([jobOf()])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('while it is open: a call is refused, and the next one creates another', async () => {
    const { path, open } = setUp()
    const queue = open()
    await queue.push([jobOf()])
    for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`)
    const error = await queue.push([jobOf()]).catch((reason) => reason)
    expect(error).toEqual(unavailable)
    expect(error.message).toBe(
      `Queue default cannot use ${path}: it, or its WAL, was removed or replaced while it was in use. Call again: the next call opens it anew.`,
    )
    await queue.push([jobOf()])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it.each([[['-wal']], [['-shm']], [['-wal', '-shm']]])(
    'but for %j of it: a call is refused, and nothing is lost that was pushed before and after',
    async (ends) => {
      const { path, open } = setUp()
      const queue = open()
      await queue.push([jobOf('before')])
      for (const end of ends) rmSync(`${path}${end}`)
      await expect(queue.push([jobOf()])).rejects.toThrow('it, or its WAL, was removed or replaced while it was in use')
      await queue.push([jobOf('after')])
      expect(bodiesIn(path)).toEqual(['after', 'before'])
    },
  )

  it('with what was in its WAL, which is truncated: a call is refused, and nothing is lost that is acknowledged after', async () => {
    const { path, queue } = await truncateLog()
    await expect(queue.push([jobOf('refused')])).rejects.toThrow(
      'its WAL was truncated while it was in use, and what was in the WAL is lost',
    )
    await queue.push([jobOf('after')])
    await queue.close({ graceMs: 0 })
    expect(bodiesIn(path)).toEqual(['after', 'before'])
  })

  it('with its WAL, which another process deletes because a copy dropped all locks of this one: the same', async () => {
    const { path, open } = setUp()
    const queue = open()
    await queue.push([jobOf('before')])
    cpSync(dirname(path), join(dirname(newFile()), 'copy'), { recursive: true })
    expect(bodiesIn(path)).toEqual(['before'])
    expect(fs.existsSync(`${path}-wal`)).toBe(false)
    await expect(queue.push([jobOf()])).rejects.toThrow(removedOrUnlocked)
    await queue.push([jobOf('after')])
    expect(bodiesIn(path)).toEqual(['after', 'before'])
  })

  it(
    'for this process alone, by a copy: a call is refused, and the next one locks it again',
    needs('Linux'),
    async () => {
      const { path, open } = setUp()
      const queue = open()
      await queue.push([jobOf('before')])
      cpSync(path, `${path}.copy`)
      hurryTime()
      await expect(queue.push([jobOf()])).rejects.toThrow('this process copied it, or opened it by other means')
      await queue.push([jobOf('after')])
      expect(bodiesIn(path)).toEqual(['after', 'before'])
      expect(fs.existsSync(`${path}-wal`)).toBe(true)
    },
  )

  it('not, while this process has no file descriptor left to look at it', needs('Linux'), async () => {
    const { path, open } = setUp()
    const queue = open()
    await queue.push([jobOf('before')])
    const sideFiles = sideFilesOf(path)
    const cannotLook = () => {
      throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
    }
    replaceInFs('readFileSync', cannotLook)
    replaceInFs('statSync', cannotLook)
    hurryTime()

    for (const body of ['one', 'two', 'three']) await queue.push([jobOf(body)])

    expect(await queue.counts()).toMatchObject({ waiting: 4 })
    expect(sideFilesOf(path)).toEqual(sideFiles)
  })

  it('in the middle of a claim: the jobs are claimed again', async () => {
    const { path, open, drained } = setUp()
    const queue = open()
    await queue.push([jobOf('a')])
    const { run } = StatementSync.prototype
    let isRemoved = false
    const spy = vi.spyOn(StatementSync.prototype, 'run').mockImplementation(function (this: StatementSync, ...values) {
      const result = run.apply(this, values as never)
      if (this.sourceSQL === 'COMMIT' && !isRemoved) {
        isRemoved = true
        rmSync(`${path}-wal`)
      }
      return result
    })
    onTestFinished(() => spy.mockRestore())
    const seen = work(queue)
    await drained(queue)
    expect([bodiesOf(seen), isRemoved]).toEqual([['a'], true])
  })

  it('but for its side file: a call is refused, and the next one takes a new owner', async () => {
    const { path, open } = setUp()
    const queue = open()
    await queue.push([jobOf('before')])
    const [first = ''] = sideFilesOf(path)
    rmSync(join(dirname(path), first))
    await expect(queue.push([jobOf()])).rejects.toThrow(
      `the lock on ${first}, which tells other processes that this one lives, is gone`,
    )
    await queue.push([jobOf('after')])
    expect(sideFilesOf(path)).toEqual([expect.not.stringMatching(first)])
    const seen = work(queue)
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['before', 'after'])
  })

  it(
    'but for the lock on its side file, which a copy drops: a call is refused, and no other process gets its jobs',
    needs('Linux'),
    async () => {
      const { path, open } = setUp()
      const queue = open()
      const [held, other] = [jobOf(), jobOf()]
      await queue.push([held])
      const seen = work(queue, () => new Promise(() => {}), 1)
      await until(() => seen.length === 1)
      const [first = ''] = sideFilesOf(path)
      fs.readFileSync(join(dirname(path), first))
      const later = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000)
      await expect(queue.push([other])).rejects.toThrow(`the lock on ${first}`)
      later.mockRestore()
      await queue.push([other])
      expect(sideFilesOf(path)).toEqual([first])

      const { child, lines } = start(path, 'work')
      child.stdin?.write('go\n')
      await until(() => lines.includes(`got ${other.id}`)) // It has looked for dead owners.
      await until(async () => (await queue.counts()).active === 1)
      expect([lines.includes(`got ${held.id}`), await queue.counts()]).toEqual([
        false,
        expect.objectContaining({ active: 1 }),
      ])
    },
  )

  it('by a backup while it runs: what was claimed then is claimed again', async () => {
    const { path, open } = setUp()
    const queue = open()
    await queue.push([jobOf('a')])
    const seen = work(queue, () => new Promise(() => {}))
    await until(() => seen.length === 1)
    await queue.backup(`${path}.backup`)
    for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`)
    fs.renameSync(`${path}.backup`, path)
    await expect(queue.push([jobOf('b')])).rejects.toThrow(removedOrUnlocked)
    await queue.push([jobOf('c')])
    await until(() => seen.length === 3)
    expect(bodiesOf(seen)).toEqual(['a', 'a', 'c'])
  })

  it('in part: a queue that is no longer in it says so', async () => {
    const { open, connect } = setUp()
    const queue = open()
    await queue.push([jobOf()])
    connect().exec('DELETE FROM hookline_queues')
    await expect(queue.push([jobOf()])).rejects.toThrow('does not exist there. Got no queues.')
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

  it('for queues of other names', async () => {
    const { open } = setUp()
    const [orders, users] = [open({ name: 'orders' }), open({ name: 'users' })]
    const job = jobOf('the same id')
    await Promise.all([orders.push([job]), users.push([job, jobOf('another')])])
    const seen = work(users)
    await users.drain()
    expect(bodiesOf(seen).sort()).toEqual(['another', 'the same id'])
    expect(await orders.counts()).toMatchObject({ waiting: 1 })
    expect(await users.counts()).toMatchObject({ waiting: 0, active: 0 })
  })
})

describe('a file that another process keeps locked', () => {
  it('a push is refused, and one after that is taken', async () => {
    const { open, connect } = setUp()
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
})
