/** What an inspector keeps in a file. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createJournal, type JournalWriter } from '../../src/inspector/journal.ts'
import { addStep, setBody } from '../../src/inspector/logged-message.ts'
import { createLog } from '../../src/options/log.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { needs } from '../support/needs.ts'

const bounds = { messages: 5, bytes: 1_000_000, refused: 2, refusedBytes: 100_000 }

function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-journal-'))
  onTestFinished(() => rm(folder, { recursive: true, maxRetries: 9 }))
  const path = join(folder, 'inspector.sqlite')
  const lines: string[] = []
  const write = (_: object, text: string): unknown => lines.push(text)
  const machine = manualClock()
  const log = createLog({ error: write, warn: write, info: write }, undefined, machine)
  const open = (keep = bounds) => createJournal({ ...keep, path }, machine, log, machine)
  return { path, lines, machine, open }
}

function add(journal: JournalWriter, user: string, isRefused = false): number {
  const head = { kind: 'received', at: 1, isRefused, deliveryId: isRefused ? undefined : user } as const
  const entry = journal.add(journal.part('shop'), head)
  entry.headers = { 'content-type': 'application/json', authorization: 'Basic c2VjcmV0' }
  setBody(entry, Buffer.from(JSON.stringify({ type: 'track', event: 'Viewed', userId: user })))
  addStep(entry, { at: 1, what: 'arrived', bytes: 10, isCopy: false })
  journal.update(entry)
  return entry.id
}

it('messages survive the process: rows, steps, bodies, headers and the ids of their deliveries', () => {
  const { open } = setUp()
  const first = open()
  const id = add(first, 'user-1')
  const before = first.detail(id)
  first.close()
  const second = open()
  expect(second.detail(id)).toEqual(before)
  expect(before?.body.text).toContain('user-1')
  expect(second.rowOf('shop', 'user-1')).toBe(id)
  expect(add(second, 'user-2')).toBeGreaterThan(id)
  second.close()
})

it('writes what has changed together, a quarter of a second later', async () => {
  const { open, machine, path } = setUp()
  const journal = open()
  const size = () => statSync(`${path}-wal`).size
  const before = size()
  const entry = journal.add(journal.part('shop'), { kind: 'received', at: 1, deliveryId: 'a' })
  setBody(entry, Buffer.from('{"userId":"user-1"}'))
  journal.update(entry)
  await machine.advance(249)
  expect(size()).toBe(before)
  await machine.advance(1)
  expect(size()).toBeGreaterThan(before)
  entry.headers = { host: 'localhost' }
  entry.state = 'done'
  journal.update(entry)
  await machine.advance(250)
  journal.close()
  const again = open()
  expect(again.detail(entry.id)).toMatchObject({
    row: { state: 'done' },
    request: { headers: [['host', 'localhost']] },
    body: { text: '{"userId":"user-1"}' },
  })
  again.close()
})

it('the file is for this user alone', needs('POSIX'), () => {
  const { open, path } = setUp()
  open().close()
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

it('secret headers are not in the file', () => {
  const { open, path } = setUp()
  const journal = open()
  add(journal, 'user-1')
  journal.close()
  const database = new DatabaseSync(path)
  const { fields } = database.prepare('SELECT fields FROM messages').get() ?? {}
  expect(JSON.parse(String(fields)).headers).toEqual({ 'content-type': 'application/json', authorization: '' })
  database.close()
})

it('has the same bounds as memory, also when they are smaller than before', () => {
  const { open, path } = setUp()
  const journal = open()
  for (let index = 0; index < 9; index += 1) add(journal, `user-${index}`)
  for (let index = 0; index < 9; index += 1) add(journal, `stranger-${index}`, true)
  journal.close()
  const smaller = open({ ...bounds, messages: 3 })
  expect(smaller.changesSince(undefined).rows.map(({ id }) => id)).toEqual([18, 17, 9, 8, 7])
  smaller.close()
  const database = new DatabaseSync(path)
  expect(
    database
      .prepare('SELECT id FROM messages ORDER BY id')
      .all()
      .map(({ id }) => id),
  ).toEqual([7, 8, 9, 17, 18])
  database.close()
})

it('forget leaves nothing of a user in the file', async () => {
  const { open, path, machine } = setUp()
  const journal = open()
  add(journal, 'user-1')
  add(journal, 'user-2')
  await machine.advance(250)
  add(journal, 'user-1')
  expect(journal.forget('user-1')).toBe(2)
  for (const file of [path, `${path}-wal`]) expect(readFileSync(file).includes('user-1')).toBe(false)
  journal.close()
  const again = open()
  expect(again.changesSince(undefined).rows).toMatchObject([{ id: 2 }])
  again.close()
})

it('forget leaves nothing in the files beside it, also when the disk works again later', async () => {
  const { open, path, machine, lines } = setUp()
  const journal = open()
  add(journal, 'user-1')
  await machine.advance(250)
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(() => {
    throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
  })
  onTestFinished(() => void exec.mockRestore())
  expect(journal.forget('user-1')).toBe(1)
  exec.mockRestore()
  await machine.advance(5_000)
  for (const file of [path, `${path}-wal`]) expect(readFileSync(file).includes('user-1')).toBe(false)
  expect(lines).toHaveLength(1)
  journal.close()
})

it('a process that is killed loses at most a quarter of a second', needs('POSIX'), async () => {
  const { open, path } = setUp()
  const program = `
    import { createJournal } from '${new URL('../../src/inspector/journal.ts', import.meta.url).href}'
    import { statSync } from 'node:fs'
    import { setBody } from '${new URL('../../src/inspector/logged-message.ts', import.meta.url).href}'
    import { systemClock } from '${new URL('../../src/time/clock.ts', import.meta.url).href}'
    const keep = ${JSON.stringify({ ...bounds, path })}
    const journal = createJournal(keep, systemClock, { write: console.log })
    const size = () => statSync(keep.path + '-wal').size
    const before = size()
    const entry = journal.add(journal.part('shop'), { kind: 'received', at: 1, deliveryId: 'a' })
    setBody(entry, Buffer.from('{}'))
    journal.update(entry)
    setInterval(() => size() > before && process.kill(process.pid, 'SIGKILL'), 1)`
  const { signal, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  expect({ signal, stdout }).toEqual({ signal: 'SIGKILL', stdout: '' })
  const journal = open()
  expect(journal.changesSince(undefined).rows).toMatchObject([{ part: 'shop', bytes: 2 }])
  journal.close()
})

it('a disk that fails is reported once; messages are kept in memory, and written when it works again', async () => {
  const { open, lines, machine, path } = setUp()
  const journal = open()
  const id = add(journal, 'user-1')
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(() => {
    throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
  })
  onTestFinished(() => void exec.mockRestore())
  await machine.advance(250)
  await machine.advance(5_000)
  expect(lines).toEqual([expect.stringContaining(`The inspector cannot use ${path}: the disk is full or failed.`)])
  expect(journal.detail(id)?.body.text).toContain('user-1')
  exec.mockRestore()
  await machine.advance(5_000)
  journal.close()
  const again = open()
  expect(again.detail(id)?.body.text).toContain('user-1')
  again.close()
  expect(lines).toHaveLength(1)
})

it('a file that is closed takes nothing more', async () => {
  const { open, machine, lines } = setUp()
  const journal = open()
  journal.close()
  add(journal, 'user-1')
  await machine.advance(10_000)
  expect(lines).toEqual([])
})

it.each([
  ['other bytes', 'not a database, and longer than its header'.repeat(9), 'it is not a SQLite database'],
  ['a database of another program', 'CREATE TABLE other (id)', 'it was not written by an inspector'],
  [
    'a newer version',
    'CREATE TABLE messages (id); PRAGMA application_id = 1751869806; PRAGMA user_version = 9',
    'Got version 9',
  ],
])('%s: an error that names the file and says what to do', (_, content, found) => {
  const { path, open } = setUp()
  if (content.startsWith('not')) writeFileSync(path, content)
  else {
    const database = new DatabaseSync(path)
    database.exec(content)
    database.close()
  }
  const before = readFileSync(path)
  expect(() => open()).toThrow(TypeError)
  expect(() => open()).toThrow(new RegExp(`^.keep.path.: the inspector cannot use ${path}: .*${found}`))
  expect(readFileSync(path)).toEqual(before) // It belongs to others.
})

it('skips and deletes an entry that no journal wrote', () => {
  const { path, open } = setUp()
  const journal = open()
  add(journal, 'user-1')
  journal.close()
  const database = new DatabaseSync(path)
  database.exec("INSERT INTO messages VALUES (9, 'null', x'00'), (10, '{', x'00'), (11, '{}', x'00')")
  database.close()
  const again = open()
  expect(again.changesSince(undefined).rows.map(({ id }) => id)).toEqual([1])
  again.close()
})
