/** `hookline queue` on SQLite: counts, dead letters, what changes them, and what cannot be looked into. */

import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { createFolder, expectUsage, hookline, jsonLines } from './command.ts'
import { createEmptyQueue, fillInbox } from './inbox.ts'

const folder = await createFolder(afterAll)

interface Letter {
  readonly id: string
  readonly reason: string
}

function commandOn(path: string, name?: string) {
  const named = name === undefined ? [] : ['--name', name]
  const run = (...action: string[]) => hookline(['queue', path, ...action, ...named])
  return {
    path,
    run,
    json: async (...action: string[]) => JSON.parse((await run(...action, '--json')).stdout),
    letters: async () => jsonLines<Letter>((await run('dead', '--json')).stdout),
  }
}

let files = 0
async function newInbox() {
  const path = join(folder, `${files++}.sqlite`)
  await fillInbox(() => sqliteQueue({ path, name: 'inbox' }))
  return commandOn(path)
}

describe('an inbox', () => {
  let inbox: Awaited<ReturnType<typeof newInbox>>
  beforeAll(async () => {
    inbox = await newInbox()
  })

  it('is counted: what waits, and the dead letters by reason', async () => {
    const { code, stdout, stderr } = await inbox.run()
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^QUEUE .*\ninbox +1 +0 +\d+ s ago +3: 2 handler_failed, 1 message_type_unknown\n$/)
    expect(await inbox.json('counts')).toMatchObject({ queue: 'inbox', waiting: 1, active: 0, deadLetters: 3 })
  })

  it('lists dead letters by their errors, the newest where --limit leaves some out, and escapes what strangers sent', async () => {
    const { code, stdout } = await inbox.run('dead')

    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^handler_failed: RangeError: no \\u\{1b\}\[31mstock\n {2}2, .*\n {2}[0-9a-f-]{36} {2}\d+ s/m,
    )
    expect(stdout).toContain('track Order\\u{1b}]0;Completed, user u1\n')
    expect(stdout).not.toContain('\u001b')
    const [older, newer] = (await inbox.letters()) as [Letter, Letter]
    const limited = (await inbox.run('dead', '--limit', '1')).stdout
    expect(limited).toMatch(new RegExp(`${newer.id}.*\n.*1 more.*--limit`))
    expect(limited).not.toContain(older.id)
  })

  it('shows a dead letter, without what could log someone in', async () => {
    const [{ id }] = (await inbox.letters()) as [Letter]

    const { code, stdout } = await inbox.run('show', id)
    const shown = await inbox.json('show', id.slice(0, 12))

    expect(code).toBe(0)
    const texts = [
      'track Order\\u{1b}]0;Completed, user u1\n',
      'RangeError: no \\u{1b}[31mstock\n',
      'x-team: (hidden)\n',
    ]
    for (const text of texts) expect(stdout).toContain(text)
    expect(stdout).not.toContain('Bearer')
    expect(stdout).not.toContain('\u001b')
    expect(shown).toMatchObject({ id, reason: 'handler_failed', attempts: 1, verified: 'signature', userId: 'u1' })
    expect(JSON.parse(shown.body)).toMatchObject({ type: 'track' })
  })

  it.each(['show', 'drop'])('%s needs 4 characters of an id, and one that is there', async (action) => {
    const id = randomUUID()
    expect(await inbox.run(action, 'b44')).toMatchObject({ code: 1, stderr: expect.stringContaining("'b44'") })
    expect(await inbox.run(action, id)).toMatchObject({ code: 1, stderr: expect.stringContaining(id) })
  })
})

it('redrive says what it would do, needs a yes for more than one, and does it', async () => {
  const { run, json, letters } = await newInbox()
  const [{ id }] = (await letters()) as [Letter]
  const what = '3 dead letters of queue inbox: 2 handler_failed, 1 message_type_unknown'

  const dry = await run('redrive', '--dry-run')
  expectUsage(await run('redrive'), what, '--yes')
  const before = await json('counts')
  const one = await run('redrive', id)
  const again = await run('redrive', id)
  const others = await json('redrive', '--reason', 'message_type_unknown')

  expect(dry).toEqual({ code: 0, stdout: expect.stringContaining(what), stderr: '' })
  expect(before).toMatchObject({ deadLetters: 3 })
  const what1 = '1 dead letter of queue inbox: 1 handler_failed'
  expect(one).toMatchObject({ code: 0, stdout: expect.stringContaining(what1) })
  expect(again).toMatchObject({ code: 1 })
  expect(others).toMatchObject({ found: 1, done: 1 })
  expect(await json('counts')).toMatchObject({ waiting: 3, deadLetters: 1 })
})

it('drop forgets dead letters: of a reason, a user, a handler, or all', async () => {
  const { run, json } = await newInbox()
  const reason = ['--reason', 'handler_failed']

  expect(await json('drop', ...reason, '--dry-run')).toMatchObject({ dryRun: true, found: 2, done: 0 })
  expect(await json('drop', '--user', 'u1', '--dry-run')).toMatchObject({ found: 1 })
  expect(await json('drop', '--handler', 'crm', '--dry-run')).toMatchObject({ found: 2 })
  expect((await run('drop', ...reason, '--yes')).stdout).toContain('2 dead letters of queue inbox: 2 handler_failed')
  expect(await json('counts')).toMatchObject({ waiting: 1, deadLetters: 1 })
  expect(await json('drop')).toMatchObject({ found: 1, done: 1 })
  expect(await run('dead')).toMatchObject({ code: 0, stdout: '' })
})

describe('a file of two queues', () => {
  const { run, path } = commandOn(join(folder, 'two.sqlite'))
  beforeAll(async () => {
    await fillInbox(() => sqliteQueue({ path, name: 'outbox' }))
    await createEmptyQueue(path)
  })

  it('has counts of each, and needs a name for all else', async () => {
    const { stdout } = await run()
    expect(stdout).toMatch(/\noutbox .* 3: 2 handler_failed, .*\ninbox +0 /)
    expectUsage(await run('dead'), '--name', path, "'outbox', 'inbox'")
  })

  it('is copied once', async () => {
    const copy = join(folder, 'copy.sqlite')
    expect((await run('backup', copy)).stdout).toContain(copy)
    expect((await commandOn(copy).run()).stdout).toMatch(/\noutbox .* 3: /)
    expectUsage(await run('backup', copy), copy)
  })
})

it('an id may be shortened, as long as one dead letter is meant', async () => {
  const { path, run } = commandOn(join(folder, 'shortened.sqlite'))
  const queue = sqliteQueue({ path, name: 'jobs' })
  const ids = ['aaaa1111', 'aaaa2222', 'bbbb3333'].map((start) => `${start}-0000-4000-8000-000000000000`)
  const others = Array.from({ length: 600 }, (_, at) => `${at}`.padStart(8, '0').concat('-0000-4000-8000-000000000000'))
  await queue.push([...ids, ...others].map((id) => ({ id, body: Buffer.from('{}') })))
  queue.work(async () => ({ deadLetter: 'refused' }), { concurrency: 1 })
  await queue.drain()
  await queue.close({ graceMs: 0 })

  for (const action of ['show', 'drop', 'redrive']) expectUsage(await run(action, 'aaaa'), 'aaaa')
  expect((await run('show', 'AAAA2')).stdout).toContain(ids[1])
  expectUsage(await run('drop', 'bbbb', 'aaaa1'), '--yes')
  expect((await run('drop', 'bbbb', 'aaaa1', '--yes')).stdout).toContain('2 dead letters')
  expect((await run('dead', '--json')).stdout).toContain(ids[1])
  expect((await run('drop', '--yes')).stdout).toMatch(/^\w+: 601 dead letters/)
})

it('a file that does not exist is wrong usage, and not created', async () => {
  expectUsage(await hookline(['queue', join(folder, 'missing.sqlite')]), 'missing.sqlite')
  expect(await readdir(folder)).not.toContain('missing.sqlite')
})

it('pause has all processes wait, resume has them go on; both say so, and so do the counts', async () => {
  const { path, run, json } = await newInbox()
  const worker = sqliteQueue({ path, name: 'inbox' })
  onTestFinished(async () => void (await worker.close({ graceMs: 0 })))

  const handle = vi.fn(async () => ({ complete: true }) as const)

  const paused = await run('pause')
  worker.work(handle, { concurrency: 1 })
  const counts = [(await run()).stdout, await json('counts')]
  expect(handle).not.toHaveBeenCalled()
  const resumed = await json('resume')
  await until(() => handle.mock.calls.length === 1)

  expect(paused).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^Paused: queue inbox\./) })
  expect(counts).toEqual([expect.stringContaining('inbox (paused)'), expect.objectContaining({ paused: true })])
  expect(resumed).toEqual({ queue: 'inbox', action: 'resume' })
  expect(await json('counts')).toMatchObject({ paused: false, waiting: 0 })
  expectUsage(await run('pause', 'inbox'), 'pause')
})
