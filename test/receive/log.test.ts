/** What a receiver prints: one line for each event, bounded, and nothing of a message. */

import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { createReceiver, type DeadLetterMessage, type Logger, type ReceiverOptions } from '../../src/index.ts'
import { idOfDigest } from '../../src/protocol/id.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { watchConsole } from '../support/console.ts'
import { hmac } from '../support/hmac.ts'
import { deliver, hostRequest, refusing, secret } from '../support/receive.ts'

function setUp(options: Partial<ReceiverOptions> = {}) {
  const clock = manualClock()
  const printed = watchConsole()
  const receiver = createReceiver({ secret, clock, ...options } as ReceiverOptions)
  const lines = () => printed.map(({ text }) => text)
  return { clock, printed, lines, receiver }
}

function setUpInbox(options: Partial<ReceiverOptions> = {}) {
  const clock = manualClock()
  const queue = memoryQueue({ clock })
  return { ...setUp({ clock, inbox: { queue, concurrency: 1, retries: [1_000] }, ...options }), clock, queue }
}

const idOf = (message: object) => idOfDigest(hmac(Buffer.from(JSON.stringify(message)), secret))

describe('by default a receiver prints', () => {
  it('for 500 forged requests two lines of at most 500 bytes in all', async () => {
    const { clock, printed, lines, receiver } = setUp()

    for (let index = 0; index < 500; index++) await deliver(receiver, { ...fixtures.track, index }, 'a guess')
    await clock.advance(60_000)

    expect(lines().join('\n').length).toBeLessThan(500)
    expect(printed).toEqual([
      { level: 'warn', text: expect.stringMatching(/^hookline: signature_mismatch: /) },
      { level: 'warn', text: expect.stringMatching(/^hookline: 499 .*signature_mismatch/) },
    ])
  })

  it('an authentic message that does not match its schema: which one, and how to keep it where nothing does', async () => {
    const { printed, receiver } = setUp({ events: { 'Order Completed': refusing } })
    const kept = createReceiver({ secret, events: { 'Order Completed': refusing }, onRejected: () => {} })

    for (const each of [receiver, kept]) await deliver(each, fixtures.track)

    const line = `^hookline: schema_mismatch in delivery ${idOf(fixtures.track)} \\(track\\): [^\n]+$`
    const expected = { level: 'warn', text: expect.stringMatching(line) }
    expect(printed).toEqual([expected, expected])
    expect(printed.map(({ text }) => text.includes('`onRejected`'))).toEqual([true, false])
  })

  it('handlers that fail: the delivery, its type, the stack of the first error, and how many more', async () => {
    const { printed, receiver } = setUp()
    receiver.on('page', () => Promise.reject(new Error('down'))).on('*', () => Promise.reject('text'))
    await receiver.handle(hostRequest({}, fixtures.page))
    expect(printed).toMatchObject([{ level: 'error' }])
    expect(printed[0]?.text).toContain(
      `handler_failed at /webhooks in delivery ${idOf(fixtures.page)} (page): Error: down (and 1`,
    )
    expect(printed[0]?.text).toMatch(/\n {4}Error: down\n {8}at .*log\.test\.ts/)
  })

  it('the path of a request, the method and the media type that it refuses, each on one line', async () => {
    const { lines, receiver } = setUp()
    const path = `/hooks/\u202e\n${'x'.repeat(200)}`

    await receiver.handle(hostRequest({ method: 'PUT' }))
    await receiver.handle(hostRequest({ headers: { 'content-type': `TEXT/\u009b;token=s3cret` }, path }))

    const [method = '', type = ''] = lines()
    expect(method).toMatch(/^hookline: method_not_allowed at \/webhooks: .* 'PUT'/)
    expect(type).toMatch(
      /^hookline: content_type_unsupported at \/hooks\/\\u\{202e\}\\u\{a\}x{91}: .* 'text\/\\u\{9b\}'/,
    )
    expect(type).not.toContain('s3cret')
  })

  it('what it left out in the last minute when it closes, and nothing for a request that comes after', async () => {
    const { lines, receiver } = setUp()
    for (let index = 0; index < 3; index++) await deliver(receiver, fixtures.page, 'a guess')
    await receiver.close()
    await deliver(receiver, fixtures.page)
    expect(lines().slice(1)).toEqual([expect.stringMatching(/^hookline: 2 .*signature_mismatch/)])
  })
})

it('with an inbox it prints one line for an authentic message that is unusable: that of its dead letter', async () => {
  const { clock, printed, receiver } = setUpInbox()
  await deliver(receiver, { type: 'page' })
  receiver.on('page', () => {}).start()
  await clock.advance(0)
  const line = `^hookline: dead letter: message_invalid in delivery ${idOf({ type: 'page' })}: .*redrive`
  expect(printed).toEqual([{ level: 'error', text: expect.stringMatching(line) }])
})

describe('an inbox that is not started', () => {
  it('says so once, ten seconds after the first message', async () => {
    const { clock, printed, receiver } = setUpInbox()
    await deliver(receiver, fixtures.page)
    await clock.advance(5_000)
    await deliver(receiver, fixtures.track)
    await clock.advance(4_999)
    expect(printed).toEqual([])

    await clock.advance(1)
    expect(printed).toEqual([
      { level: 'warn', text: expect.stringMatching(/^hookline: inbox_not_started: .*start\(\)/) },
    ])
    await deliver(receiver, fixtures.identify)
    await clock.advance(60_000)
    expect(printed).toHaveLength(1)
  })

  it.each(['first', 'here', 'in another process'])('says nothing once it is started %s', async (where) => {
    const { clock, printed, receiver, queue } = setUpInbox()
    receiver.on('*', () => new Promise(() => {}))
    if (where !== 'first') await deliver(receiver, fixtures.page)
    if (where !== 'in another process') receiver.start()
    else queue.work(async () => ({ complete: true }), { concurrency: 1 })
    for (const message of [fixtures.track, fixtures.identify]) await deliver(receiver, message)

    await clock.advance(10_000)

    expect(printed).toEqual([])
  })
})

it('nothing is printed beside a logger, which gets the fields; both may be given', async () => {
  const calls: unknown[] = []
  const keep = (...call: unknown[]) => void calls.push(call)
  const onError = vi.fn()
  const { clock, printed, receiver } = setUpInbox({ onError, logger: { error: keep, warn: keep, info() {} } })
  receiver.on('page', () => Promise.reject(new Error('down'))).start()
  await receiver.handle(hostRequest({ method: 'PUT' }))
  await deliver(receiver, fixtures.page)
  await clock.advance(1_000)
  const known = { deliveryId: idOf(fixtures.page), type: 'page', stack: expect.stringContaining('Error: down') }
  const retryAt = new Date('2026-01-15T09:30:01Z')
  expect(calls).toEqual([
    [{ code: 'method_not_allowed', path: '/webhooks' }, expect.any(String)],
    [{ code: 'handler_failed', ...known, attempts: 1, retryAt }, expect.stringMatching(/^handler_failed in delivery/)],
    [{ code: 'dead_letter', ...known, reason: 'handler_failed', attempts: 2 }, expect.stringMatching(/^dead letter/)],
  ])
  expect([onError.mock.calls.length, printed]).toEqual([3, []])
})

it('onDeadLetter is called with each message when it becomes a dead letter', async () => {
  const letters: DeadLetterMessage[] = []
  const { clock, receiver } = setUpInbox({ onDeadLetter: (letter) => void letters.push(letter), onError: () => {} })
  receiver.on('page', () => Promise.reject(new Error('down'))).start()
  await deliver(receiver, fixtures.page)
  await deliver(receiver, { type: 'page' })
  await clock.advance(999)
  expect(letters.map(({ reason }) => reason)).toEqual(['message_invalid'])
  await clock.advance(1)
  expect(letters[1]).toMatchObject({ message: fixtures.page, reason: 'handler_failed', attempts: 2 })
  expect(letters).toEqual(await receiver.deadLetters())
})

const marked = fc.constantFrom('u5er', 'b0dy', 'h3ader', 's3cret', 'quer1')
const MARKS = /u5er|b0dy|h3ader|s3cret|quer1|f0rged/

it('no output holds anything of a message, a secret or a stranger, for any message, however it fails', async () => {
  const printed = watchConsole()
  const logged: unknown[] = []
  const keep = (...call: unknown[]) => void logged.push(call)
  const logger: Logger = { error: keep, warn: keep, info: keep }
  const events = { 'b0dy event': refusing }
  const key = 's3cret'
  const message = fc.record(
    {
      type: fc.constantFrom('track', 'page', 'identify', 'other type', 5),
      userId: fc.constantFrom('u5er', '', null, ['u5er']),
      event: fc.constantFrom('b0dy event', 'b0dy other', 7),
      properties: fc.dictionary(marked, marked),
      traits: fc.oneof(fc.dictionary(marked, marked), marked),
      timestamp: marked,
    },
    { requiredKeys: [] },
  )
  const fault = fc.constantFrom('none', 'forged', 'unsigned', 'malformed', 'parser', 'not json', 'closed')
  await fc.assert(
    fc.asyncProperty(message, fault, fc.boolean(), fc.boolean(), async (sent, how, hasInbox, hasLogger) => {
      const clock = manualClock()
      const inbox = hasInbox ? { inbox: { queue: memoryQueue({ clock }), retries: [1] } } : {}
      const receiver = createReceiver({ secret: key, clock, events, ...inbox, ...(hasLogger && { logger }) })
      receiver.on('*', () => Promise.reject(new Error('down')))
      if (hasInbox) receiver.start()
      const body = how === 'not json' ? 'b0dy {' : JSON.stringify(sent)
      const signature = hmac(Buffer.from(body), how === 'forged' ? 'f0rged' : key)
      const shown = how === 'malformed' ? 'f0rged' : signature
      const headers = { 'content-type': 'application/json', 'x-team': 'h3ader', authorization: 's3cret' }
      if (how === 'closed') await receiver.close()
      const { status } = await receiver.handle({
        ...hostRequest(),
        query: 'token=quer1',
        headers: how === 'unsigned' ? headers : { ...headers, 'x-signature': shown },
        readBody: async () => ({ bytes: Buffer.from(body), source: how === 'parser' ? 'body-text' : 'stream' }),
      })
      await clock.advance(60_000)
      const output = JSON.stringify([printed, logged])
      expect(output).not.toMatch(MARKS)
      if (how === 'forged') expect(output).not.toContain(signature)
      if (status !== 200 && how !== 'closed') expect(printed.length + logged.length).toBeGreaterThan(0)
      printed.length = 0
      logged.length = 0
    }),
  )
})
