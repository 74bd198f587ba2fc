import { once } from 'node:events'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type SqliteDedupeOptions, sqliteDedupe } from '../../../src/dedupe/sqlite/index.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { claimed, LEASE_MS, testDedupe, WINDOW_MS } from '../../contracts/dedupe.ts'
import { needs } from '../../support/needs.ts'
import { startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'

testDedupe('sqlite', () => {
  const clock = manualClock()
  const dedupe = sqliteDedupe({ path: newFile(), dedupeWindowMs: WINDOW_MS, leaseMs: LEASE_MS, clock })
  return { dedupe, advance: clock.advance }
})

function newFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'hookline-dedupe-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 9 }))
  return join(directory, 'handled.db')
}

function setUp(path = newFile()) {
  const clock = manualClock(Date.now())
  let shift = 0
  const open = (options: Partial<SqliteDedupeOptions> = {}) => {
    const shifted = { ...clock, now: () => clock.now() + shift }
    const times = { dedupeWindowMs: WINDOW_MS, leaseMs: LEASE_MS, timeoutMs: 0, clock: shifted }
    const dedupe = sqliteDedupe({ path, ...times, ...options })
    onTestFinished(() => void dedupe.close())
    return dedupe
  }
  const setClock = (ms: number) => {
    shift += ms
  }
  const connect = () => {
    const database = new DatabaseSync(path)
    onTestFinished(() => (database.isOpen ? database.close() : undefined))
    return database
  }
  return { path, clock, open, setClock, connect }
}

const unavailable = expect.objectContaining({ name: 'HooklineError', code: 'dedupe_unavailable', status: 503 })

describe('a file', () => {
  it('remembers when it is opened again', async () => {
    const { open } = setUp()
    const first = open()
    claimed(await first.claim('handled')).confirm()
    first.claim('begun')
    first.close()
    const second = open()
    expect([second.claim('handled'), second.claim('begun')]).toEqual(['done', 'in_progress'])
  })

  it('is shared: what one claims and confirms, the other knows', async () => {
    const { open } = setUp()
    const [here, there] = [open(), open()]
    const claim = claimed(await here.claim('a'))
    expect(there.claim('a')).toBe('in_progress')
    claim.confirm()
    expect(there.claim('a')).toBe('done')
  })

  it('keeps names apart', async () => {
    const { open } = setUp()
    const [orders, users] = [open({ name: 'orders' }), open({ name: 'users' })]
    claimed(await orders.claim('a')).confirm()
    claimed(await users.claim('a')).release()
    expect(orders.claim('a')).toBe('done')
    expect(users.claim('a')).toBeTypeOf('object')
  })

  it('forgets what ended, some at each of many claims, and nothing else', async () => {
    const { open, clock, connect } = setUp()
    const dedupe = open()
    const rows = () => connect().prepare('SELECT count(*) AS rows FROM hookline_dedupe').get()?.rows
    for (let index = 0; index < 320; index += 1) claimed(await dedupe.claim(`old ${index}`)).confirm()
    await clock.advance(WINDOW_MS)
    dedupe.claim('new 0')
    expect(rows()).toBe(320 - 64 + 1)
    for (let index = 1; index < 320; index += 1) claimed(await dedupe.claim(`new ${index}`)).confirm()
    expect(rows()).toBe(320)
    expect([dedupe.claim('new 1'), dedupe.claim('new 319'), dedupe.claim('new 0')]).toEqual([
      'done',
      'done',
      'in_progress',
    ])
  })
})

it('a path that SQLite reads as a URL is refused', () => {
  const open = () => sqliteDedupe({ path: 'file:handled.sqlite' })
  expect(open).toThrow("Got a path that begins with 'file:'. Pass the path of a file.")
})

describe('a clock that is set', () => {
  it.each([
    ['a claim holds no longer than its lease', LEASE_MS, false, 'in_progress'],
    ['a message is known no longer than the window', WINDOW_MS, true, 'done'],
  ])('back: %s from then on', async (_what, ms, isHandled, answer) => {
    const { open, clock, setClock } = setUp()
    const dedupe = open()
    const claim = claimed(await dedupe.claim('a'))
    if (isHandled) claim.confirm()
    setClock(-100 * ms)
    expect(dedupe.claim('a')).toBe(answer)
    await clock.advance(ms - 1)
    expect(dedupe.claim('a')).toBe(answer)
    await clock.advance(1)
    expect(dedupe.claim('a')).toBeTypeOf('object')
  })

  it('back, between stores whose leases differ: each claim keeps its own', async () => {
    const { open, clock } = setUp()
    open({ leaseMs: 10 * LEASE_MS }).claim('a')
    const other = open()
    expect(other.claim('a')).toBe('in_progress')
    await clock.advance(10 * LEASE_MS - 1)
    expect(other.claim('a')).toBe('in_progress')
  })

  it('forward: a claim ends early, and its confirm is not lost', async () => {
    const { open, setClock } = setUp()
    const dedupe = open()
    const claim = claimed(await dedupe.claim('a'))
    setClock(100 * LEASE_MS)
    claim.confirm()
    expect(dedupe.claim('a')).toBe('done')
  })
})

describe('a file that fails', () => {
  it('locked by another process: claim, confirm and release throw, and work when it is free', async () => {
    const { open, connect } = setUp()
    const dedupe = open()
    const [a, b] = [claimed(await dedupe.claim('a')), claimed(await dedupe.claim('b'))]
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    expect(() => dedupe.claim('c')).toThrow(unavailable)
    expect(() => a.confirm()).toThrow(unavailable)
    expect(() => b.release()).toThrow(unavailable)
    other.exec('COMMIT')
    a.confirm()
    b.release()
    expect(dedupe.claim('a')).toBe('done')
    expect(dedupe.claim('b')).toBeTypeOf('object')
    expect(dedupe.claim('c')).toBeTypeOf('object')
  })

  it('locked for a moment: a call waits, for as long as the option says', async () => {
    const { open, connect } = setUp()
    const dedupe = open({ timeoutMs: 50 })
    connect().exec('BEGIN IMMEDIATE')
    const before = performance.now()
    expect(() => dedupe.claim('a')).toThrow(unavailable)
    expect(performance.now() - before).toBeGreaterThanOrEqual(40)
    expect(performance.now() - before).toBeLessThan(2000)
  })

  it('that is no database is refused when it is opened', () => {
    const { path, open } = setUp()
    writeFileSync(path, 'This is a letter, and a long one. '.repeat(300))
    expect(() => open()).toThrow(unavailable)
    expect(() => open()).toThrow(
      `The dedupe store cannot use ${path}: it is not a SQLite database. Got 'file is not a database'. Pass the path of a new file.`,
    )
    expect(readFileSync(path, 'utf8')).toMatch(/^This is a letter/)
  })

  it.each([
    [
      'in a directory that does not exist',
      '/nowhere/handled.db',
      "the directory /nowhere does not exist. Got 'unable to open database file'. Create it first.",
    ],
    ['that is no file', ':memory:', 'Pass the path of a file on a disk of this machine.'],
  ])('%s is refused', (_case, path, message) => {
    expect(() => sqliteDedupe({ path })).toThrow(unavailable)
    expect(() => sqliteDedupe({ path })).toThrow(message)
  })

  it('damaged in the middle: a claim throws, and no claim gets what was handled', async () => {
    const { path, open, connect } = setUp()
    const before = open()
    for (let index = 0; index < 200; index += 1) claimed(await before.claim(`${index}`)).confirm()
    before.close()
    const database = connect()
    const pages = database.prepare("SELECT pageno FROM dbstat WHERE name = 'hookline_dedupe'").all()
    database.close()
    const file = readFileSync(path)
    for (const { pageno } of pages) file.fill(7, (Number(pageno) - 1) * 4096, Number(pageno) * 4096)
    writeFileSync(path, file)
    const after = open()
    for (let index = 0; index < 200; index += 1) expect(() => after.claim(`${index}`)).toThrow(unavailable)
  })

  it('damaged from its second page on: it is refused when it is opened', async () => {
    const { path, open } = setUp()
    const before = open()
    claimed(await before.claim('a')).confirm()
    before.close()
    writeFileSync(
      path,
      Buffer.concat([readFileSync(path).subarray(0, 4096), Buffer.alloc(statSync(path).size - 4096, 7)]),
    )
    expect(() => open()).toThrow(unavailable)
    expect(() => open()).toThrow('it is damaged')
  })

  it('without its table any more: claim and confirm throw', async () => {
    const { open, connect } = setUp()
    const dedupe = open()
    const claim = claimed(await dedupe.claim('a'))
    connect().exec('DROP TABLE hookline_dedupe')
    expect(() => dedupe.claim('b')).toThrow(unavailable)
    expect(() => claim.confirm()).toThrow(unavailable)
  })

  it('closed: a confirm throws, and so does a release', async () => {
    const dedupe = setUp().open()
    const claim = claimed(await dedupe.claim('a'))
    dedupe.close()
    expect(() => claim.release()).toThrow(unavailable)
    expect(() => claim.confirm()).toThrow(unavailable)
    expect(() => claim.confirm()).toThrow('The dedupe store is closed. Got a call after close(). Create a new store.')
  })
})

it('tries again while another process opens the file', () => {
  const busy = Object.assign(new Error('database is locked'), { errcode: 5 | (2 << 8) })
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementationOnce(() => {
    throw busy
  })
  onTestFinished(() => exec.mockRestore())
  expect(setUp().open().claim('a')).toBeTypeOf('object')
})

describe('processes', () => {
  it('that race for a thousand copies, two on one file, get one claim; for fifty messages, fifty', async () => {
    const { path, open } = setUp()
    const children = [start(path, 50, 500), start(path, 50, 500)]
    await until(() => children.every(({ lines }) => lines.includes('open')))
    for (const { child } of children) child.stdin?.write('go\n')
    await until(() => children.every(({ lines }) => lines.includes('done')))
    const said = children.flatMap(({ lines }) => lines).filter((line) => /^(got|failed)/.test(line))
    expect(said.sort()).toEqual(Array.from({ length: 50 }, (_, key) => `got ${key}`).sort())
    const dedupe = open()
    expect(Array.from({ length: 50 }, (_, key) => dedupe.claim(`${key}`))).toEqual(Array(50).fill('done'))
  }, 60_000)

  it('that open a new file at once all get it', async () => {
    const [threads, rounds] = [3, 30]
    const directory = dirname(newFile())
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const program = new URL('opener.ts', import.meta.url)
    const workers = Array.from({ length: threads }, () => {
      return new Worker(program, { workerData: { gate, threads, rounds, directory } })
    })
    const errors = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]))
    expect(errors.flat()).toEqual([])
  }, 60_000)

  it('whose disk is full get an error, no claim, and lose nothing', {
    ...needs('POSIX'),
    timeout: 60_000,
  }, async () => {
    const { path, open } = setUp()
    const before = open()
    claimed(await before.claim('0')).confirm()
    before.close()
    // A file may grow to so many blocks and no more, in this process: a write past them fails as on a full disk.
    const { child, lines } = start(path, 2000, 1, ['sh', '-c', `trap '' XFSZ; ulimit -f 200; exec "$@"`, 'sh'])
    child.stdin?.write('go\n')
    await until(() => lines.includes('done'))
    const got = lines.filter((line) => line.startsWith('got')).map((line) => line.slice(4))
    expect(lines).toContain('failed dedupe_unavailable')
    expect(got.length).toBeGreaterThan(0)
    expect(got).not.toContain('0')
    const after = open()
    for (const key of got) expect(after.claim(key)).toBeTypeOf('string')
  })
})

function start(path: string, keys: number, copies: number, under: readonly string[] = []) {
  return startProgram(new URL('claimer.ts', import.meta.url), [path, `${keys}`, `${copies}`], under)
}

it.each([
  [undefined, '`sqliteDedupe: options` must be an object. Got undefined.'],
  [{}, '`path` must be a non-empty string. Got undefined.'],
  [{ path: 'x', name: '' }, '`name` must be a non-empty string.'],
  [{ path: 'x', maxKeys: 5 }, '`maxKeys` is not an option.'],
  [{ path: 'x', dedupeWindowMs: -1 }, '`dedupeWindowMs` must be a whole number'],
  [{ path: 'x', leaseMs: '5' }, '`leaseMs` must be a whole number'],
  [{ path: 'x', timeoutMs: -1 }, '`timeoutMs` must be a whole number'],
])('refuses options that make no sense: %j', (options, message) => {
  expect(() => sqliteDedupe(options as never)).toThrow(TypeError)
  expect(() => sqliteDedupe(options as never)).toThrow(message)
})

it.each([
  ['a newer version', 'UPDATE hookline_dedupe_schema SET version = 2', '2'],
  ['no version', 'DELETE FROM hookline_dedupe_schema', 'none'],
  ['no table of its version', 'DROP TABLE hookline_dedupe_schema', 'none'],
])('refuses a file with %s', (_case, change, found) => {
  const { path, open, connect } = setUp()
  open().close()
  connect().exec(change)
  expect(() => open()).toThrow(
    `The dedupe store cannot use ${path}: this Hookline knows version 1 of its tables. Got version ${found}. Use the Hookline that wrote it, or pass the path of a new file.`,
  )
})
