/** `hookline queue … history` and `replay`, beside a receiver that runs. */

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import type { Handler } from '../../../src/receive/selection.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { needs } from '../../../test/support/needs.ts'
import { deliver, secret } from '../../../test/support/receive.ts'
import { until } from '../../../test/support/until.ts'
import { hookline, jsonLines, runAlone, start } from './command.ts'

const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-history-'))
afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

const DAY_MS = 86_400_000
let files = 0

/** A receiver that has handled three messages and runs. */
async function setUp(retries?: readonly number[]) {
  const path = join(folder, `${files++}.sqlite`)
  const queue = sqliteQueue({ path, name: 'inbox', pollMs: 20 })
  const inbox = { queue, history: { maxAgeMs: DAY_MS }, ...(retries && { retries }) }
  const receiver = createReceiver({ secret, inbox, onError: () => {} })
  const [crm, mail] = [vi.fn<Handler>(), vi.fn<Handler>()]
  receiver.on('track', crm, { name: 'crm' }).on('track', mail, { name: 'mail' }).on('identify', vi.fn()).start()
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })))
  await deliver(receiver, { ...fixtures.track, event: 'Order Completed', userId: 'ada' })
  await deliver(receiver, { ...fixtures.track, event: 'Order \u001b[31mRefunded', userId: 'bob' })
  await deliver(receiver, { ...fixtures.page, userId: 'ada' })
  await queue.drain()
  const ids = (await queue.log?.list())?.map(({ id }) => id) ?? []
  return { path, queue, receiver, crm, mail, ids, run: (...words: string[]) => hookline(['queue', path, ...words]) }
}

describe('history', () => {
  it('lists what was handled, and by which handlers', async () => {
    const { run, ids } = await setUp()
    const lines = (await run('history')).stdout.split('\n')
    expect(lines[0]).toMatch(/^\d{4}-\S+Z {2}/)
    expect(lines.map((line) => line.slice(26))).toEqual([
      `${ids[0]}  track Order Completed, user ada  (by crm, mail)`,
      `${ids[1]}  track Order \\u{1b}[31mRefunded, user bob  (by crm, mail)`,
      `${ids[2]}  page, user ada  (ignored)`,
      '',
    ])
  })

  it('is filtered, as JSON and as text', async () => {
    const { path, run, ids } = await setUp()
    const listed = async (...words: string[]) =>
      jsonLines<{ id: string }>((await run('history', '--json', ...words)).stdout).map(({ id }) => ids.indexOf(id))
    expect(await listed()).toEqual([0, 1, 2])
    expect(await listed('--user', 'ada')).toEqual([0, 2])
    expect(await listed('--type', 'page')).toEqual([2])
    expect(await listed('--event', 'Order Completed')).toEqual([0])
    expect(await listed('--handler', 'crm')).toEqual([0, 1])
    expect(await listed('--since', '1h')).toEqual([0, 1, 2])
    expect(await listed('--until', '2026-01-01')).toEqual([])
    const { stdout, stderr } = await run('history', '--limit', '2')
    expect([stdout.split('\n').length, stderr]).toEqual([3, 'Only the first 2 are listed: see --limit.\n'])
    expect((await run('history', '--user', 'eve')).stderr).toBe('No message in the history matches.\n')
    const empty = 'The history of this queue is empty. It keeps what is handled once `inbox.history` is set.\n'
    const unused = sqliteQueue({ path, name: 'empty' })
    await unused.counts()
    await unused.close({ graceMs: 0 })
    expect((await run('history', '--name', 'empty')).stderr).toBe(empty)
    expect((await run('replay', '--name', 'empty')).stdout).toBe(empty)
  })
})

it('a handled message is shown like a dead letter', async () => {
  const { run, ids } = await setUp()
  const { code, stdout } = await run('show', ids[0]?.toUpperCase() ?? '')
  expect([code, stdout.replaceAll(/\S+Z, \d+ s ago/g, 'TIME')]).toEqual([
    0,
    expect.stringContaining(
      [
        `id        ${ids[0]}`,
        'message   track Order Completed, user ada',
        'handled   TIME',
        'handlers  Done: crm, mail.',
        'received  TIME, with a right signature',
        '',
        'headers',
        '',
      ].join('\n'),
    ),
  ])
  expect(stdout).toContain('\n    "total": 39.95,\n')
  expect((await run('show', ids[2] ?? '')).stdout).toContain('\nhandlers  None matched.\n')
  const [json] = jsonLines<{ body: string }>((await run('show', ids[0] ?? '', '--json')).stdout)
  expect(json).toMatchObject({
    id: ids[0],
    userId: 'ada',
    handlers: ['crm', 'mail'],
    ignored: false,
    verified: 'signature',
  })
  expect(JSON.parse(json?.body ?? '')).toMatchObject({ event: 'Order Completed' })
  expect(await run('show', ids[0]?.slice(0, 8) ?? '')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^No dead letter has the id .{8}\. Pass the whole id of a handled message\.\n$/),
  })
})

describe('replay', () => {
  it('says what it would do, and does it: running workers handle the messages again', async () => {
    const { run, queue, crm, mail } = await setUp()
    const what = '2 messages of queue inbox: 1 track Order Completed, 1 track Order \\u{1b}[31mRefunded'
    const words = ['replay', '--id', 'fix-42', '--since', '3d', '--type', 'track', '--handler', 'crm']
    expect((await run(...words, '--dry-run')).stdout).toBe(`Would replay ${what}.\n`)
    expect(crm).toHaveBeenCalledTimes(2)
    const asked = await run(...words)
    expect([asked.code, asked.stderr]).toEqual([
      2,
      `error: Replay ${what}? There is no terminal to ask on. Pass --yes to go on.\n`,
    ])
    const { stdout, code } = await run(...words, '--yes')
    expect([code, stdout]).toEqual([0, `Queued again: ${what}.\n`])
    await until(() => crm.mock.calls.length === 4)
    await queue.drain()
    expect(mail).toHaveBeenCalledTimes(2)
    expect(crm.mock.calls.at(-1)?.[1].replay?.id).toBe('fix-42')
    const again = await run(...words, '--yes')
    expect([again.stdout, again.stderr]).toEqual([
      `Queued again: 0 of ${what}.\n`,
      'An earlier run with this id queued the others.\n',
    ])
    expect((await run('replay', '--user', 'eve')).stdout).toBe('No message in the history matches.\n')
    expect((await run('history')).stdout.split('\n')).toHaveLength(4)
  })

  it('takes ids, needs no answer for one, and has an id of its own', async () => {
    const { run, crm, ids } = await setUp()
    const { stdout } = await run('replay', ids[0] ?? '', '--json')
    expect(jsonLines(stdout)).toEqual([
      {
        queue: 'inbox',
        action: 'replay',
        dryRun: false,
        id: expect.stringMatching(/^replay-\d{8}-\d{9}$/),
        count: 1,
        types: { track: 1 },
        events: { 'Order Completed': 1 },
        handlers: { crm: 1, mail: 1 },
        done: 1,
      },
    ])
    await until(() => crm.mock.calls.length === 3)
  })

  it('notes that no worker takes what was queued', async () => {
    const { receiver, run } = await setUp()
    await receiver.close()
    const { code, stderr } = await run('replay', '--yes')
    expect([code, stderr]).toEqual([0, 'No worker has taken a message yet. Start the app that handles this queue.\n'])
  })

  it('names an id that is not in the history, and one that is not whole', async () => {
    const { run, ids } = await setUp()
    const unknown = randomUUID()
    const { code, stderr, stdout } = await run('replay', unknown, ids[0]?.toUpperCase() ?? '', '--yes')
    expect([code, stderr]).toEqual([1, `No message in the history has the id ${unknown}.\n`])
    expect(stdout).toContain('Queued again: 1 message')
    const start = ids[1]?.slice(0, 8) ?? ''
    expect((await run('replay', start)).stderr).toBe(
      `error: replay needs whole ids. Got ${start}. Pass an id as history lists it.\n`,
    )
  })

  it('notes that no message was handled by a handler of the name', async () => {
    const { run } = await setUp()
    const { code, stderr } = await run('replay', '--type', 'track', '--handler', 'crm,crmm', '--dry-run')
    expect([code, stderr]).toEqual([
      0,
      "None of these messages was handled by 'crmm'. Named handlers of them: crm, mail. Check the name: workers without such a handler fail them.\n",
    ])
    const { code: refused, stderr: reason } = await run('replay', '--type', 'page', '--handler', 'crm', '--yes')
    expect(refused).toBe(2)
    expect(reason).toContain('of them: none.')
    expect(reason).toContain('Nothing was replayed. --yes does not skip this question.')
    expect((await run('replay', '--handler', 'crm,mail', '--dry-run')).stderr).toBe('')
  })
})

it('a replay that waits for a worker is stopped by Ctrl-C, and goes on with its id', needs('POSIX'), async () => {
  const path = join(folder, 'stopped here.sqlite')
  const filling = sqliteQueue({ path, name: 'inbox' })
  const receiver = createReceiver({ secret, inbox: { queue: filling, history: { maxAgeMs: DAY_MS } } })
  receiver.on('track', () => {}, { name: 'crm' }).start()
  const messages = Array.from({ length: 250 }, () => ({ ...fixtures.track, messageId: randomUUID() }))
  await Promise.all(messages.map((message) => deliver(receiver, message)))
  await filling.drain()
  await receiver.close()
  const words = ['replay', '--id', 'fix-42', '--since', '3d', '--type', 'track', '--event', 'Order Completed']
  const flags = ['--handler', 'crm', '--max-per-second', '1000', '--name', 'inbox']
  const first = await start(['queue', path, ...words, ...flags, '--yes'])
  const queue = sqliteQueue({ path, name: 'inbox' })
  await until(async () => (await queue.counts()).waiting === 100)
  first.child.kill('SIGINT')
  const { stdout } = await first.ended
  const what = '250 messages of queue inbox: 250 track Order Completed'
  const [, since = '', end = ''] = /--since (\S+) --until (\S+)/.exec(stdout) ?? []
  const toGoOn = `replay --id fix-42 --since ${since} --until ${end} --type track --event 'Order Completed' ${flags.join(' ')}`
  expect(stdout).toBe(`Queued again: 100 of ${what}.\nTo go on: npx hookline queue '${path}' ${toGoOn}\n`)
  expect(Date.parse(end) - Date.parse(since)).toBeCloseTo(3 * DAY_MS, -4)
  queue.work(async () => ({ complete: true }), { concurrency: 100 })
  const times = ['--since', since, '--until', end]
  expect((await hookline(['queue', path, ...words, ...times, ...flags, '--yes'])).stdout).toBe(
    `Queued again: 150 of ${what}.\n`,
  )
  await queue.drain()
  await queue.close({ graceMs: 0 })
})

it('on a terminal it shows how far it is', needs('util-linux'), async () => {
  const { path, crm } = await setUp()
  const { stdout } = await runAlone(['queue', path, 'replay', '--type', 'track', '--yes'], { isTerminal: true })
  expect(stdout).toContain(`${'█'.repeat(30)} 2 of 2\r\n`)
  expect(stdout).toMatch(/Queued again: 2 messages of queue inbox: .*\.\r\n$/)
  await until(() => crm.mock.calls.length === 4)
})

it('a dead letter of a replay says so', async () => {
  const { run, crm, queue } = await setUp([])
  crm.mockRejectedValue(new Error('no'))
  await run('replay', '--id', 'fix-42', '--user', 'bob')
  await until(async () => (await queue.counts()).deadLetters === 1)

  const [{ id }] = jsonLines<{ id: string }>((await run('dead', '--json')).stdout) as [{ id: string }]
  const { stdout } = await run('show', id)

  expect(stdout).toMatch(/\nreplay {4}fix-42, of what was handled \S+Z, \d+ s ago\n/)
})

describe('dead letters', () => {
  it('are listed, counted and redriven by the same filters', async () => {
    const { path, run } = await setUp()
    const queue = sqliteQueue({ path, name: 'dead' })
    const receiver = createReceiver({ secret, inbox: { queue, retries: [] }, onError: () => {} })
    receiver.on('track', () => Promise.reject(new Error('no')), { name: 'crm' }).start()
    await deliver(receiver, { ...fixtures.track, userId: 'ada' })
    await deliver(receiver, { ...fixtures.track, userId: 'bob' })
    await queue.drain()
    await receiver.close()
    const dead = async (...words: string[]) =>
      jsonLines((await run('dead', '--name', 'dead', '--json', ...words)).stdout)
    expect(await dead('--user', 'ada', '--handler', 'crm', '--since', '1h')).toMatchObject([{ userId: 'ada' }])
    expect(await dead('--handler', 'mail')).toEqual([])
    expect(await dead('--until', '1h')).toEqual([])
    const { stdout } = await run('redrive', '--name', 'dead', '--user', 'bob', '--dry-run')
    expect(stdout).toBe('Would redrive 1 dead letter of queue dead: 1 handler_failed.\n')
    expect((await run('drop', '--name', 'dead', '--user', 'bob')).stdout).toContain('Dropped: 1 dead letter')
    expect(await dead()).toMatchObject([{ userId: 'ada' }])
  })
})

it.each([
  [['history', '--since', 'yesterday'], 'It must be an age such as 3d, 12h or 30m, or a date such as'],
  [['history', '--since', '2026-99-99'], 'It must be an age such as'],
  [['history', '--since', '2026-02-30'], 'It must be an age such as'],
  [['replay', '--since', '1d', '--until', '2d'], '--until must be after --since.'],
  [['replay', '--type', 'tracks'], 'Did you mean track?'],
  [['history', '--type', 'page', '--event', 'x'], '--event needs track messages.'],
  [['history', '--reason', 'x'], '--reason is for dead, redrive and drop. Got history.'],
  [['dead', '--id', 'x'], '--id is for replay. Got dead.'],
  [['history', '--limit', '0'], '--limit of history must be 1 or more. Got 0.'],
  [
    ['history', '--handler', 'crm,mail'],
    "--handler must be 1 to 64 of the characters a-z0-9._-, beginning with a letter or a digit. Got 'crm,mail'.",
  ],
  [['dead', '--handler', ''], '--handler must be a non-empty string.'],
  [['replay', '--handler', 'crm,'], '--handler must be a non-empty string.'],
  [['replay', '--handler', 'crm, mail'], "Got ' mail'."],
  [['replay', '--id', 'a b'], '--id must be 1 to 100 of the characters'],
  [['replay', 'no-id'], 'replay needs whole ids. Got no-id.'],
  [['history', 'x'], 'history takes no ids.'],
])('%j is wrong usage', async (words, sentence) => {
  const { run } = await setUp()
  const { code, stderr, stdout } = await run(...words)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr.split('\n')[0]).toContain(sentence)
})
