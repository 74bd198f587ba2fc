/** `hookline queue … history` and `replay`, beside a receiver that runs. */

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { createReceiver, type Handler } from 'hookline'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { fixtures } from 'hookline/testing'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { deliver, secret } from '../../../test/support/receive.ts'
import { until } from '../../../test/support/until.ts'
import { createFolder, expectUsage, hookline, jsonLines, like, start } from './command.ts'
import { handle } from './inbox.ts'

const folder = await createFolder(afterAll)

const DAY_MS = 86_400_000
let files = 0

/** An inbox that handled three messages. Its receiver runs until the test ends; given `afterAll`, until the file does. */
async function setUp(onEnd: (close: () => Promise<void>) => void = onTestFinished) {
  const path = join(folder, `${files++}.sqlite`)
  const queue = sqliteQueue({ path, name: 'inbox', pollMs: 20 })
  const receiver = createReceiver({ secret, inbox: { queue, history: { maxAgeMs: DAY_MS } }, onError: () => {} })
  onEnd(async () => void (await receiver.close({ graceMs: 0 })))
  const [crm, mail] = [vi.fn<Handler>(), vi.fn<Handler>()]
  receiver.on('track', crm, { name: 'crm' }).on('track', mail, { name: 'mail' }).on('identify', vi.fn()).start()
  const [first, second] = [42, '42'].map((order_id) => ({ ...fixtures.track, properties: { order_id, total: 39.95 } }))
  await deliver(receiver, { ...first, event: 'Order Completed', userId: 'ada' })
  await deliver(receiver, { ...second, event: 'Order \u001b[31mRefunded', userId: 'bob' })
  await deliver(receiver, { ...fixtures.page, userId: 'ada' })
  await queue.drain()
  const ids = ((await queue.log?.list())?.map(({ id }) => id) ?? []) as [string, string, string]
  const run = (...words: string[]) => hookline(['queue', path, ...words])
  return { path, queue, crm, mail, ids, run }
}

const inbox = await setUp(afterAll)

describe('history', () => {
  it('lists what was handled, and by which handlers', async () => {
    const { run, ids } = inbox

    const lines = (await run('history')).stdout.split('\n')

    expect(lines[0]).toMatch(/^\d{4}-\S+Z {2}/)
    const [identity, handlers] = [
      { id: ids[0], type: 'track', event: 'Order Completed', userId: 'ada' },
      ['crm', 'mail'],
    ]
    const times = { handledAt: expect.any(String), receivedAt: expect.any(String) }
    const [json] = jsonLines((await run('history', '--json')).stdout)
    expect(json).toEqual({ ...identity, ...times, handlers, ignored: false })
    expect(lines.map((line) => line.slice(26))).toEqual([
      `${ids[0]}  track Order Completed, user ada  (by crm, mail)`,
      `${ids[1]}  track Order \\u{1b}[31mRefunded, user bob  (by crm, mail)`,
      `${ids[2]}  page, user ada  (ignored)`,
      '',
    ])
  })

  it.each<[string, number[]]>([
    ['--user ada', [0, 2]],
    ['--where userId="ada" --where type=page', [2]],
    ['--where properties.order_id=42', [0]],
    ['--where properties.order_id="42"', [1]],
    ['--type page', [2]],
    ['--event Order\u00a0Completed', [0]],
    ['--handler crm', [0, 1]],
    ['--since 1h', [0, 1, 2]],
    ['--until 2026-01-01', []],
  ])('is filtered by %s', async (filter, expected) => {
    const words = filter.split(' ').map((word) => word.replace('\u00a0', ' '))
    const { stdout, stderr } = await inbox.run('history', '--json', ...words)
    expect(stderr.split('\n')).toHaveLength(expected.length === 0 ? 2 : 1)
    expect(jsonLines<{ id: string }>(stdout).map(({ id }) => inbox.ids.indexOf(id))).toEqual(expected)
  })

  it('shows a handled message like a dead letter, by its whole id', async () => {
    const { run, ids } = inbox
    const { code, stdout } = await run('show', ids[0].toUpperCase())
    const [json] = jsonLines<{ body: string }>((await run('show', ids[0], '--json')).stdout)
    const short = await run('show', ids[0].slice(0, 8))
    expect([code, stdout]).toEqual([0, like(/track Order Completed, user ada\n.*crm, mail.*"total": 39\.95/s)])
    const handlers = ['crm', 'mail']
    expect(json).toMatchObject({ id: ids[0], userId: 'ada', handlers, ignored: false, verified: 'signature' })
    expect(JSON.parse(json?.body ?? '')).toMatchObject({ event: 'Order Completed' })
    expect(short).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(ids[0].slice(0, 8)) })
  })

  it.each([
    ['replay --since 1d --until 2d', '--since --until'],
    ['history --handler crm,mail', "--handler 'crm,mail'"],
    ['replay --id a+b', '--id'],
    ['replay no-id', 'no-id'],
  ])('%s is wrong usage, and named: %s', async (words, names) => {
    expectUsage(await inbox.run(...words.split(' ')), ...names.split(' '))
  })
})

const words = ['replay', '--id', 'fix-42', '--since', '3d', '--type', 'track', '--handler', 'crm']
const what = '2 messages of queue inbox: 1 track Order Completed, 1 track Order \\u{1b}[31mRefunded'

it('replay says what it would do, needs a yes, and does it once: running workers handle the messages again', async () => {
  const { path, run, queue, crm, mail } = await setUp()

  const dry = await run(...words, '--dry-run')
  expectUsage(await run(...words), what, '--yes')
  expect(crm).toHaveBeenCalledTimes(2)
  const done = await hookline(['queue', path, ...words, '--yes'], { isTerminal: true })
  await until(() => crm.mock.calls.length === 4)
  await queue.drain()
  const again = await run(...words, '--yes')

  expect([dry, done, again]).toMatchObject([
    { code: 0, stdout: expect.stringContaining(what) },
    { code: 0, stdout: expect.stringContaining(`: ${what}`), stderr: like(/█ 2 of 2\n$/) },
    { code: 0, stdout: expect.stringContaining(`: 0 of ${what}`) },
  ])
  expect(mail).toHaveBeenCalledTimes(2)
  expect(crm.mock.calls.at(-1)?.[1].replay?.id).toBe('fix-42')
  expect((await run('history')).stdout.split('\n')).toHaveLength(4)
})

it('replay takes ids, needs no answer for one, and has an id of its own', async () => {
  const { run, crm, ids } = await setUp()
  const { stdout } = await run('replay', ids[0], '--json')
  await until(() => crm.mock.calls.length === 3)
  const events = { types: { track: 1 }, events: { 'Order Completed': 1 }, handlers: { crm: 1, mail: 1 } }
  const done = { queue: 'inbox', action: 'replay', dryRun: false, count: 1, done: 1 }
  expect(jsonLines(stdout)).toEqual([{ ...done, ...events, id: like(/^replay-\d{8}-\d{9}$/) }])
})

it('replay names an id that is not in the history, and handlers that handled none of the messages', async () => {
  const { run, ids } = await setUp()
  const unknown = randomUUID()

  const ran = await run('replay', unknown, ids[0].toUpperCase(), '--yes')
  const misspelt = await run('replay', '--type', 'track', '--handler', 'crm,crmm', '--dry-run')
  const refused = await run('replay', '--type', 'page', '--handler', 'crm', '--yes')
  const fine = await run('replay', '--handler', 'crm,mail', '--dry-run')

  expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining(unknown) })
  expect(ran.stdout).toContain('1 message')
  expect(misspelt).toMatchObject({ code: 0, stderr: like(/'crmm'.*: crm, mail\./) })
  expect(refused).toMatchObject({ code: 2, stdout: '', stderr: like(/'crm'.*\n.*--yes/) })
  expect(fine).toMatchObject({ code: 0, stderr: '' })
  const none = { types: {}, events: {}, handlers: {} }
  const report = { queue: 'inbox', action: 'replay', dryRun: true, count: 0, done: 0, ...none, id: 'fix-42' }
  const { stdout } = await run('replay', '--type', 'group', '--id', 'fix-42', '--dry-run', '--json')
  expect(jsonLines(stdout)).toEqual([report])
})

it('replay names the eight most frequent kinds of messages, and history lists the first hundred, or --limit', async () => {
  const path = join(folder, `${files++}.sqlite`)
  const events = Array.from({ length: 102 }, (_, at) => `E${at < 93 ? 0 : at}`)
  const messages = events.map((event) => ({ ...fixtures.track, event, messageId: randomUUID() }))
  await handle(sqliteQueue({ path, name: 'inbox' }), messages)
  const actions = [['replay', '--dry-run'], ['history'], ['history', '--limit', '101']]
  const [replay, history, longer] = actions.map((words) => hookline(['queue', path, ...words]))
  expect((await replay)?.stdout).toMatch(/: 93 track E0(, 1 track E\d+){7}, others\.\n$/)
  expect(await history).toEqual({ code: 0, stdout: like(/^(.*\n){100}$/), stderr: like(/--limit/) })
  expect(await longer).toEqual({ code: 0, stdout: like(/^(.*\n){101}$/), stderr: like(/--limit/) })
})

it('replay is stopped by Ctrl-C, and goes on with its id', async () => {
  const path = join(folder, 'stopped here.sqlite')
  const messages = Array.from({ length: 150 }, () => ({ ...fixtures.track, messageId: randomUUID() }))
  await handle(sqliteQueue({ path, name: 'inbox' }), messages)
  const idle = sqliteQueue({ path, name: 'inbox' })
  const filters = ['--id', 'fix-42', '--since', '3d', '--type', 'track', '--event', 'Order Completed']
  const flags = ['--handler', 'crm', '--max-per-second', '1000', '--name', 'inbox', '--where', 'type=track']

  const first = await start(['queue', path, 'replay', ...filters, ...flags, '--yes'])
  await until(async () => (await idle.counts()).waiting === 100) // More wait until these are handled.
  first.interrupt()
  const { stdout } = await first.ended
  idle.work(async () => ({ complete: true }), { concurrency: 100 })
  const [, since = '', end = ''] = /--since (\S+) --until (\S+)/.exec(stdout) ?? []
  const times = ['--since', since, '--until', end]
  const second = await hookline(['queue', path, 'replay', ...filters, ...times, ...flags, '--yes'])

  const all = '150 messages of queue inbox: 150 track Order Completed'
  const toGoOn = `queue '${path}' replay --id fix-42 --since ${since} --until ${end} --type track --event 'Order Completed'`
  expect(stdout).toContain(`100 of ${all}`)
  expect(stdout).toContain(`${toGoOn} ${flags.slice(0, -1).join(' ')} 'type="track"'\n`)
  expect(Date.parse(end) - Date.parse(since)).toBeCloseTo(3 * DAY_MS, -4)
  expect(second.stdout).toContain(`50 of ${all}`)
  await idle.drain()
  await idle.close({ graceMs: 0 })
})
