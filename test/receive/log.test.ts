/** What a receiver prints: one line for each event, bounded, and nothing of a message. */

import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { fastify } from 'fastify'
import { describe, expect, it, vi } from 'vitest'
import type { Logger } from '../../src/kit/log.ts'
import { idOfDigest } from '../../src/protocol/id.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { DeadLetterMessage } from '../../src/receive/stored-message.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { watchConsole } from '../support/console.ts'
import { deliver, hostRequest, refusing, secret, watchWarnings } from '../support/receive.ts'

function setUp(options: Partial<ReceiverOptions> = {}) {
  const clock = manualClock()
  const printed = watchConsole()
  const receiver = createReceiver({ secret, clock, ...options } as ReceiverOptions)
  const lines = () => printed.map(({ text }) => text)
  return { clock, printed, lines, receiver }
}

function setUpInbox(options: Partial<ReceiverOptions> = {}, overrides: Partial<Queue> = {}) {
  const clock = manualClock()
  const memory = memoryQueue({ clock })
  const queue = { ...memory, ...overrides }
  return { ...setUp({ clock, inbox: { queue, retries: [1_000] }, ...options }), clock, queue, memory }
}

const idOf = (message: object) => idOfDigest(createHmac('sha1', secret).update(JSON.stringify(message)).digest('hex'))

describe('by default a receiver prints', () => {
  it('for 500 forged requests two lines of at most 500 bytes in all, with the likely causes', async () => {
    const { clock, printed, lines, receiver } = setUp()
    for (let index = 0; index < 500; index++) await deliver(receiver, { ...fixtures.track, index }, 'a guess')
    await clock.advance(60_000)
    const [first = '', last] = lines()
    expect(lines()).toHaveLength(2)
    expect(lines().join('\n').length).toBeLessThan(500)
    for (const cause of ['same secret', 'parser or proxy', 'another', 'forged']) expect(first).toContain(cause)
    expect(first).toMatch(/^hookline: signature_mismatch: X-Signature does not match the body\. /)
    expect(last).toBe('hookline: 499 more signature_mismatch in the last minute.')
    expect(printed.map(({ level }) => level)).toEqual(['warn', 'warn'])
  })

  it('for an authentic message that does not match its schema: which one, and that it is lost', async () => {
    const { printed, receiver } = setUp({ events: { 'Order Completed': refusing } })
    await deliver(receiver, fixtures.track)
    const what = `schema_mismatch in delivery ${idOf(fixtures.track)} (track): \`properties\` must match its schema.`
    const lost = 'The sender does not send it again: `onRejected` or an `inbox` keeps such messages.'
    expect(printed).toEqual([{ level: 'warn', text: expect.stringMatching(/^hookline: [^\n]+$/) }])
    expect(printed[0]?.text).toContain(what)
    expect(printed[0]?.text).toContain(lost)
  })

  it('for a handler that fails: the delivery, its type and the stack', async () => {
    const { printed, receiver } = setUp()
    receiver.on('page', () => Promise.reject(new Error('down')))
    await deliver(receiver, fixtures.page)
    expect(printed).toHaveLength(1)
    expect(printed[0]?.level).toBe('error')
    expect(printed[0]?.text).toContain(`handler_failed in delivery ${idOf(fixtures.page)} (page): Error: down.`)
    expect(printed[0]?.text).toMatch(/\n {4}Error: down\n {8}at .*log\.test\.ts/)
  })

  it('for handlers that fail: the first error, also when it cannot be read, and how many more', async () => {
    const { printed, receiver } = setUp()
    const unreadable = new Error('down')
    Object.defineProperty(unreadable, 'name', {
      get() {
        throw new Error('no name')
      },
    })
    receiver.on('page', () => Promise.reject(unreadable)).on('*', () => Promise.reject('text'))
    await deliver(receiver, fixtures.page)
    expect(printed[0]?.text).toContain('(page): Error: down (and 1 more).')
  })

  it('the path of a request, the method and the media type that it refuses, each on one line', async () => {
    const { lines, receiver } = setUp()
    const path = `/hooks/\u202e\n${'x'.repeat(200)}`
    await receiver.handle(hostRequest({ method: 'PUT' }))
    await receiver.handle(hostRequest({ headers: { 'content-type': `TEXT/\u009b;token=s3cret` }, path }))
    await receiver.handle(hostRequest({ headers: {} }))
    const [method = '', type = '', none = ''] = lines()
    expect(method).toMatch(/^hookline: method_not_allowed at \/webhooks: .* Got 'PUT'\. /)
    expect(type).toMatch(
      /^hookline: content_type_unsupported at \/hooks\/\\u\{202e\}\\u\{a\}x{91}: .* Got 'text\/\\u\{9b\}'\. /,
    )
    expect(type).not.toContain('s3cret')
    expect(none).toContain('The request has none.')
  })

  it('nothing for a request that comes while it closes, or after', async () => {
    const { printed, receiver } = setUp()
    await receiver.close()
    await deliver(receiver, fixtures.page)
    expect(printed).toEqual([])
  })

  it('what it left out in the last minute when it closes', async () => {
    const { lines, receiver } = setUp()
    for (let index = 0; index < 3; index++) await deliver(receiver, fixtures.page, 'a guess')
    await receiver.close()
    expect(lines()[1]).toBe('hookline: 2 more signature_mismatch in the last minute.')
  })
})

describe('with an inbox it prints', () => {
  it('which attempt failed and when the next follows, and then a dead letter and how to redrive it', async () => {
    const { clock, printed, receiver } = setUpInbox()
    receiver.on('page', () => Promise.reject(new Error('down'))).start()
    await deliver(receiver, fixtures.page)
    await clock.advance(1_000)
    const id = idOf(fixtures.page)
    const [attempt, dead] = printed.map(({ text }) => text.split('\n'))
    expect(attempt?.[0]).toMatch(`hookline: handler_failed in delivery ${id} (page): Error: down. `)
    expect(attempt?.[0]).toMatch(/ Attempt 1; the next follows at 2026-01-15T09:30:01\.000Z\.$/)
    expect(attempt?.[1]).toBe('    Error: down')
    expect(dead?.[0]).toMatch(`hookline: dead letter: handler_failed in delivery ${id} (page): Error: down.`)
    expect(dead?.[0]).toContain(`Attempts: 2. Fix the cause, then call receiver.redrive(['${id}']).`)
    expect(dead?.[1]).toBe('    Error: down')
    expect(printed.map(({ level }) => level)).toEqual(['error', 'error'])
    expect(await receiver.redrive([id])).toBe(1)
  })

  it('one line for an authentic message that is unusable: that of its dead letter', async () => {
    const { clock, printed, receiver } = setUpInbox()
    const message = { type: 'page' }
    await deliver(receiver, message)
    receiver.on('page', () => {}).start()
    await clock.advance(0)
    const id = idOf(message)
    const what = `message_invalid in delivery ${id}`
    expect(printed).toEqual([
      { level: 'error', text: expect.stringMatching(`^hookline: dead letter: ${what}: .*redrive`) },
    ])
  })
})

describe('an inbox that is not started', () => {
  const notStarted =
    'hookline: inbox_not_started: The inbox stores messages and nothing handles them. Call receiver.start(), here or in a worker process.'

  it('says so once, ten seconds after the first message', async () => {
    const { clock, printed, receiver } = setUpInbox()
    await deliver(receiver, fixtures.page)
    await clock.advance(5_000)
    await deliver(receiver, fixtures.track)
    await clock.advance(4_999)
    expect(printed).toEqual([])
    await clock.advance(1)
    expect(printed).toEqual([{ level: 'warn', text: notStarted }])
    await deliver(receiver, fixtures.identify)
    await clock.advance(60_000)
    expect(printed).toHaveLength(1)
  })

  it('is a warning of the process beside onError, which receives errors of requests only', async () => {
    const emit = watchWarnings()
    const onError = vi.fn()
    const { clock, printed, receiver } = setUpInbox({ onError })
    await deliver(receiver, fixtures.page)
    await clock.advance(60_000)
    const text = notStarted.replace('hookline: inbox_not_started: ', '')
    expect(emit.mock.calls).toEqual([[text, { code: 'HOOKLINE_INBOX_NOT_STARTED' }]])
    expect([printed, onError.mock.calls]).toEqual([[], []])
  })

  it('says nothing once it is started', async () => {
    const clock = manualClock()
    const { printed, receiver } = setUp({ clock, inbox: { queue: memoryQueue({ clock }), concurrency: 1 } })
    await deliver(receiver, fixtures.page)
    await deliver(receiver, fixtures.track)
    receiver.on('*', () => new Promise(() => {})).start()
    await clock.advance(10_000)
    expect(await receiver.health()).toMatchObject({ waiting: 1, oldestDueAgeMs: 10_000 })
    expect(printed).toEqual([])
  })

  it('says nothing where another process handles', async () => {
    const { clock, printed, receiver, queue } = setUpInbox()
    queue.work(async () => ({ complete: true }), { concurrency: 1 }) // As a worker process does.
    await deliver(receiver, fixtures.page)
    await clock.advance(10_000)
    expect(printed).toEqual([])
  })

  it('says nothing while the queue cannot be asked', async () => {
    const { clock, printed, receiver } = setUpInbox({}, { counts: () => Promise.reject(new Error('away')) })
    await deliver(receiver, fixtures.page)
    await clock.advance(10_000)
    expect(printed).toEqual([])
  })

  it('does not keep the process alive', async () => {
    const timers: number[] = []
    const setTimeout = (_callback: () => void, ms: number) => ({ unref: () => void timers.push(ms) })
    const { receiver } = setUp({ clock: { ...manualClock(), setTimeout }, inbox: memoryQueue() })
    await deliver(receiver, fixtures.page)
    expect(timers).toContain(10_000)
  })
})

describe('nothing is printed', () => {
  it('beside `onError`', async () => {
    const onError = vi.fn()
    const { printed, receiver } = setUp({ onError })
    await deliver(receiver, fixtures.page, 'a guess')
    expect([onError.mock.calls.length, printed]).toEqual([1, []])
  })

  it('beside a logger, which gets the fields; both may be given', async () => {
    const calls: unknown[] = []
    const keep = (...call: unknown[]) => void calls.push(call)
    const onError = vi.fn()
    const { clock, printed, receiver } = setUpInbox({ onError, logger: { error: keep, warn: keep, info: keep } })
    receiver.on('page', () => Promise.reject(new Error('down'))).start()
    await deliver(receiver, fixtures.page)
    await clock.advance(1_000)
    const known = { deliveryId: idOf(fixtures.page), type: 'page', stack: expect.stringContaining('Error: down') }
    const retryAt = new Date('2026-01-15T09:30:01Z')
    expect(calls).toEqual([
      [
        { code: 'handler_failed', ...known, attempts: 1, retryAt },
        expect.stringMatching(/^handler_failed in delivery/),
      ],
      [{ code: 'dead_letter', ...known, reason: 'handler_failed', attempts: 2 }, expect.stringMatching(/^dead letter/)],
    ])
    expect([onError.mock.calls.length, printed]).toEqual([2, []])
  })
})

it('pino is a logger: its lines hold the fields', async () => {
  const lines: string[] = []
  const app = fastify({ logger: { stream: { write: (line) => void lines.push(line) } } })
  const { receiver } = setUp({ logger: app.log })
  receiver.on('page', () => Promise.reject(new Error('down')))
  await deliver(receiver, fixtures.page, 'a guess')
  await deliver(receiver, fixtures.page)
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, code: 'signature_mismatch', msg: expect.stringMatching(/^signature_mismatch: /) },
    {
      level: 50,
      code: 'handler_failed',
      deliveryId: idOf(fixtures.page),
      stack: expect.stringMatching(/^Error: down/),
    },
  ])
})

describe('onDeadLetter', () => {
  it('is called with each message when it becomes a dead letter', async () => {
    const letters: DeadLetterMessage[] = []
    const { clock, receiver } = setUpInbox({ onDeadLetter: (letter) => void letters.push(letter), onError: () => {} })
    receiver.on('page', () => Promise.reject(new Error('down'))).start()
    await deliver(receiver, fixtures.page)
    await deliver(receiver, { type: 'page' })
    await clock.advance(999)
    expect(letters.map(({ reason }) => reason)).toEqual(['message_invalid'])
    await clock.advance(1)
    expect(letters[1]).toMatchObject({
      message: fixtures.page,
      reason: 'handler_failed',
      error: { code: 'handler_failed', causes: [{ name: 'Error', message: 'down' }] },
      attempts: 2,
    })
    expect(letters).toEqual(await receiver.deadLetters())
  })

  it('that fails is a warning, and the message a dead letter', async () => {
    const warn = watchWarnings()
    const { clock, receiver } = setUpInbox({ onDeadLetter: () => Promise.reject(new Error('mine')), onError: () => {} })
    receiver.on('page', () => {}).start()
    await deliver(receiver, { type: 'page' })
    await clock.advance(0)
    expect(await receiver.deadLetters()).toHaveLength(1)
    const warning = { code: 'HOOKLINE_ON_DEAD_LETTER', detail: 'mine' }
    expect(warn).toHaveBeenCalledExactlyOnceWith('onDeadLetter failed', warning)
  })
})

describe('no output holds anything of a message, a secret or a stranger', () => {
  const marked = fc.constantFrom('u5er', 'b0dy', 'h3ader', 's3cret', 'quer1')
  const MARKS = /u5er|b0dy|h3ader|s3cret|quer1|f0rged/

  it('for any message, however it fails', async () => {
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
        const signature = createHmac('sha1', how === 'forged' ? 'f0rged' : key)
          .update(body)
          .digest('hex')
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
})
