/** `hookline queue` on SQLite: counts, dead letters, what changes them, and what cannot be looked into. */

import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Message } from 'hookline'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { fixtures } from 'hookline/testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { setUp } from '../../../test/send/set-up.ts'
import { until } from '../../../test/support/until.ts'
import { ageOf } from '../src/queue/dead-letters.ts'
import { createFolder, expectUsage, hookline, jsonLines, like } from './command.ts'
import { createEmptyQueue, fillInbox } from './inbox.ts'

const folder = await createFolder(afterAll)

interface Letter {
  readonly id: string
  readonly reason: string
}

function commandOn(path: string) {
  const run = (...action: string[]) => hookline(['queue', path, ...action])
  return {
    ...{ path, run },
    json: async (...action: string[]) => JSON.parse((await run(...action, '--json')).stdout),
    letters: async () => jsonLines<Letter>((await run('dead', '--json')).stdout),
  }
}

/** The lines, with no id, and no time of today. */
function shownOf(stdout: string): readonly string[] {
  const noId = stdout.trimEnd().replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID')
  return noId
    .replace(/\d{4}-\S+Z\b/g, 'AT')
    .replace(/\b\d+ s ago/g, 'N s ago')
    .split('\n')
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
    const database = new DatabaseSync(inbox.path)
    const first = '(SELECT min(seq) FROM hookline_queue_jobs)'
    database.exec(`UPDATE hookline_queue_jobs SET at = at - 7200000 WHERE seq = ${first}`)
    database.close()
  })

  it('is counted: what waits, and the dead letters by reason', async () => {
    const { code, stdout, stderr } = await inbox.run()
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^QUEUE .*\ninbox +1 +0 +\d+ s ago +3: 2 handler_failed, 1 message_type_unknown\n$/)
    const reasons = ['handler_failed', 'message_type_unknown'].map((reason, at) => ({ reason, count: 2 - at }))
    const oldest = { oldestDueAt: expect.any(String), oldestDueAgeMs: expect.any(Number), asOf: expect.any(String) }
    const counts = { queue: 'inbox', waiting: 1, retrying: 0, active: 0, deadLetters: 3, paused: false }
    expect(await inbox.json('counts')).toEqual({ ...counts, ...oldest, reasons })
  })

  it('lists dead letters by their errors, the newest where --limit leaves some out, and escapes what strangers sent', async () => {
    const { code, stdout } = await inbox.run('dead')

    expect([code, ...shownOf(stdout)]).toEqual([
      ...[0, like(/^message_type_unknown: ./), '  1, the oldest N s ago, the newest N s ago', '  ID  N s ago  ?'],
      ...['handler_failed: RangeError: no \\u{1b}[31mstock', '  2, the oldest 2 h ago, the newest N s ago'],
      '  ID  N s ago  track Order Completed, user user-1',
      '  ID  2 h ago  track Order\\u{1b}]0;Completed, user u1',
    ])
    const [older, newer] = (await inbox.letters()) as [Letter, Letter]
    const limited = (await inbox.run('dead', '--limit', '1')).stdout
    expect(limited).toMatch(new RegExp(`${newer.id}.*\n.*1 more.*--limit`))
    expect(limited).not.toContain(older.id)
    expect(await inbox.letters()).toContainEqual({
      ...{ id: older.id, reason: 'handler_failed', error: 'RangeError: no \u001b[31mstock', type: 'track' },
      ...{ failedAt: expect.any(String), event: 'Order\u001b]0;Completed', userId: 'u1' },
    })
  })

  it('shows a dead letter, without what could log someone in', async () => {
    const [{ id }] = (await inbox.letters()) as [Letter]

    const { code, stdout } = await inbox.run('show', id)
    const shown = await inbox.json('show', id.slice(0, 12))

    const agent = { 'content-type': 'application/json', 'user-agent': 'Hookline/1.0' }
    const headers = { ...agent, 'x-signature': like(/^\w{40}$/), 'x-team': '(hidden)' }
    const [what, error] = ['track Order\\u{1b}]0;Completed, user u1', 'RangeError: no \\u{1b}[31mstock']
    expect([code, ...shownOf(stdout).join('\n').split('\n\n').slice(0, 2)]).toEqual([
      0,
      `id        ID\nmessage   ${what}\nreason    handler_failed\nfailed    AT, 2 h ago\nattempts  1\nerror     ${error}\nhandlers  Failed: crm. Done: those without a name.\nreceived  AT, N s ago, with a valid signature`,
      like(/^headers\n {2}content-type: .*\n {2}user-agent: .*\n {2}x-signature: \w{40}\n {2}x-team: \(hidden\)$/),
    ])
    const message = 'RangeError: no \u001b[31mstock'
    expect(shown).toEqual({
      ...{ id, reason: 'handler_failed', failedAt: expect.any(String), attempts: 1, type: 'track', userId: 'u1' },
      ...{ error: expect.objectContaining({ code: 'handler_failed', message }), event: 'Order\u001b]0;Completed' },
      ...{ handlers: { done: [''], failed: ['crm'] }, body: expect.stringContaining('"userId":"u1"') },
      ...{ receivedAt: expect.any(String), verified: 'signature', headers },
    })
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
  const reasons = [{ reason: 'message_type_unknown', count: 1 }]
  expect(others).toEqual({ queue: 'inbox', action: 'redrive', dryRun: false, found: 1, reasons, done: 1 })
  expect(await json('counts')).toMatchObject({ waiting: 3, deadLetters: 1 })
})

it('drop forgets dead letters: of a reason, a user, a handler, or all', async () => {
  const { run, json, path } = await newInbox()
  const reason = ['--reason', 'handler_failed']

  expect(await json('drop', ...reason, '--dry-run')).toMatchObject({ dryRun: true, found: 2, done: 0 })
  expect(await json('drop', '--user', 'u1', '--dry-run')).toMatchObject({ found: 1 })
  expect(await json('drop', '--handler', 'crm', '--dry-run')).toMatchObject({ found: 2 })
  const { stdout } = await hookline(['queue', path, 'drop', ...reason], { isTerminal: true, input: 'Yes\n' })
  expect(stdout).toContain('2 dead letters of queue inbox: 2 handler_failed')
  expect(await json('counts')).toMatchObject({ waiting: 1, deadLetters: 1 })
  expect(await json('drop')).toMatchObject({ found: 1, done: 1 })
  expect(await run('dead')).toEqual({ code: 0, stdout: '', stderr: like(/.\n$/) })
  expect(await json('drop')).toMatchObject({ found: 0, done: 0 })
})

describe('a file of two queues', () => {
  const { run, path, json } = commandOn(join(folder, 'two.sqlite'))
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
    expect(await json('backup', `${copy}.json`)).toEqual({ action: 'backup', path: `${copy}.json` })
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

it('shows what failed at a destination: each attempt, or what was thrown', async () => {
  const { path, run, letters, json } = commandOn(join(folder, 'outbox.sqlite'))
  const queue = sqliteQueue({ path, name: 'outbox', pollMs: 10 })
  const transform = (message: Message) =>
    message.type === 'page' ? Promise.reject(new RangeError('no \u001b[2J')) : message
  const { destination } = setUp([{ status: 404, body: '\u001b[3J' }], { queue, transform, concurrency: 1 })
  for (const message of [fixtures.track, fixtures.page]) await destination.submit([{ message }])
  await queue.drain()

  const [refused, thrown] = (await letters()) as [Letter, Letter]
  const attempts = [{ at: '2026-01-15T09:30:00.000Z', durationMs: 0, ok: false, status: 404, body: '\u001b[3J' }]
  expect([refused, thrown]).toMatchObject([{ error: 'HTTP 404' }, { error: 'no \u001b[2J' }])
  expect(await json('show', refused.id)).toMatchObject({ reason: 'refused', failedAt: expect.any(String), attempts })
  const error = { message: 'no \u001b[2J', stack: expect.stringContaining('RangeError: no') }
  expect(await json('show', thrown.id)).toMatchObject({ reason: 'transform_failed', attempts: [], error })
  expect(shownOf((await run('show', refused.id)).stdout)[4]).toBe('attempt   AT  status 404, after 0 ms: \\u{1b}[3J')
  const lines = shownOf((await run('show', thrown.id)).stdout).slice(4, 6)
  expect(lines).toEqual(['error     no \\u{1b}[2J', like(/^ {10}at /)])
})

it('the age of what waits or failed is told in the unit that suits it', () => {
  const seconds = [-5, 119, 120, 7_199, 7_200, 172_799, 172_800]
  const ages = ['0 s', '119 s', '2 min', '120 min', '2 h', '48 h', '2 days']
  expect(seconds.map((each) => ageOf(each * 1_000))).toEqual(ages)
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

  expect(paused).toMatchObject({ code: 0, stderr: '', stdout: like(/^Paused: queue inbox\./) })
  expect(counts).toEqual([expect.stringContaining('inbox (paused)'), expect.objectContaining({ paused: true })])
  expect(resumed).toEqual({ queue: 'inbox', action: 'resume' })
  expect(await json('counts')).toMatchObject({ paused: false, waiting: 0 })
  expectUsage(await run('pause', 'inbox'), 'pause')
})
