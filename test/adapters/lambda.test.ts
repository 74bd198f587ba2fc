/** What is particular to Lambda: the gateways' events and answers, its time limit, and what may not go on after an answer. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { type LambdaEvent, serve } from '../../adapters/lambda.ts'
import { createCollector } from '../../src/collector.ts'
import { createReceiver, type Delivery, type ReceiverOptions } from '../../src/index.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createDestination } from '../../src/sender.ts'
import { fixtures } from '../../src/testing.ts'
import { secret, signed } from '../contracts/adapter.ts'
import { newFile } from '../store/sqlite/set-up.ts'
import { GATEWAYS, requestOf } from '../support/lambda.ts'
import { setUp as createParts } from '../support/receive.ts'
import { until } from '../support/until.ts'
import type { Wire } from '../support/wire.ts'

const track = JSON.stringify({ ...fixtures.track, event: 'Commande passée 🎉' })
const context = (ms: number) => ({ getRemainingTimeInMillis: () => ms })

type Gateway = keyof typeof GATEWAYS

function setUp(options: Partial<ReceiverOptions> = {}) {
  const set = createParts(options)
  const handled: Delivery[] = []
  set.receiver.on('*', (_message, delivery) => handled.push(delivery))
  return { ...set, handler: serve(set.receiver), handled }
}

function eventOf(gateway: Gateway, wire: Wire, isBase64 = true): LambdaEvent {
  return JSON.parse(JSON.stringify(GATEWAYS[gateway](requestOf(wire), isBase64)))
}

const codeOf = ({ body }: { readonly body: string }): unknown => JSON.parse(body).code

describe.each(Object.keys(GATEWAYS) as Gateway[])('%s', (gateway) => {
  // In base64: the contract of adapters.
  it('has a body that comes as text verified, and handed on byte by byte', async () => {
    const { handler, handled } = setUp()
    for (const body of [track, `\ufeff${track}`, `${track}\n`]) {
      const answer = await handler(eventOf(gateway, signed(body), false), context(30_000))
      expect([answer.statusCode, answer.body, answer.isBase64Encoded]).toEqual([200, '{"ok":true}', false])
      const delivery = handled.pop()
      expect(Buffer.from(delivery?.bytes ?? []).toString()).toBe(body)
      expect([delivery?.bodySource, delivery?.verified]).toEqual(['body', 'signature'])
    }
  })

  it('has a body over the limit refused with a 413, and one at the limit not', async () => {
    const length = Buffer.byteLength(track)
    const event = eventOf(gateway, signed(track), false)
    expect((await setUp({ limit: length }).handler(event)).statusCode).toBe(200)
    expect((await setUp({ limit: length - 1 }).handler(event)).statusCode).toBe(413)
  })

  it('has its headers answered in the form that it takes', async () => {
    const { handler } = setUp()
    const answer = await handler(eventOf(gateway, { headers: {}, chunks: [], method: 'GET' }))
    const isMulti = gateway === 'load balancer, multi-value headers'
    const names = { 'content-type': 'application/problem+json', allow: 'POST' }
    const lists = { 'content-type': ['application/problem+json'], allow: ['POST'] }
    const { headers, multiValueHeaders } = answer
    expect({ headers, multiValueHeaders }).toEqual(isMulti ? { multiValueHeaders: lists } : { headers: names })
  })

  it('says who connected, where the gateway does', async () => {
    const { handler, failed } = setUp()
    await handler(eventOf(gateway, signed(track, { 'x-signature': '' })))
    const remoteAddress = gateway.startsWith('load balancer') ? undefined : '203.0.113.7'
    expect(failed).toMatchObject([{ remoteAddress }])
  })
})

describe('the bytes of a body', () => {
  const base64 = Buffer.from(track).toString('base64')
  const changed: readonly (readonly [string, unknown])[] = [
    ['base64 without its padding', base64.replace(/=+$/, '')],
    ['base64 with a line break', `${base64}\n`],
    ['base64 of base64url', Buffer.from('{"a":"???>>>"}').toString('base64url')],
    ['text that a middleware decoded', track],
    ['an object that a middleware parsed', JSON.parse(track)],
  ]

  it.each(changed)('that are %s are not guessed: body_consumed', async (_what, body) => {
    const { handler, errors, handled } = setUp()
    const event = { ...eventOf('HTTP API', signed(track)), body: body as string }
    const answer = await handler(event)
    expect([answer.statusCode, codeOf(answer), handled]).toEqual([500, 'body_consumed', []])
    expect(errors[0]?.message).not.toContain(track)
  })

  it.each([
    ['were no UTF-8', Buffer.from('{"type":"track","userId":"u","event":"\xff"}', 'latin1'), {}],
    ['have another length than was sent', Buffer.from(track), { 'content-length': '9999' }],
  ])('that %s do not blame the secret: body_consumed', async (_what, body, headers) => {
    const { handler } = setUp()
    const event = eventOf('HTTP API', signed(body, { 'x-signature': '0'.repeat(40) }), false)
    expect(codeOf(await handler({ ...event, headers: { ...event.headers, ...headers } }))).toBe('body_consumed')
  })

  it('may hold a replacement character', async () => {
    const { handler, handled } = setUp()
    const answer = await handler(eventOf('HTTP API', signed(track.replace('🎉', '\ufffd')), false))
    expect([answer.statusCode, handled[0]?.bodySource]).toEqual([200, 'body-text'])
  })
})

it.each([
  ['of one name in two cases', { 'X-Signature': ['a'], 'x-signature': ['b'] }],
  ['of one name twice', { 'X-Signature': ['a', 'b'] }],
])('headers %s are joined', async (_what, multiValueHeaders) => {
  const { handler, errors } = setUp()
  const event = eventOf('REST API', signed(track))
  const { 'X-Signature': _, ...others } = event.multiValueHeaders ?? {}
  const answer = await handler({ ...event, multiValueHeaders: { ...others, ...multiValueHeaders } })
  expect(codeOf(answer)).toBe('signature_malformed')
  expect(errors).toHaveLength(1)
})

describe('the time that is left', () => {
  it.each([
    ['less than the deadline', 3000, 2800],
    ['more than the deadline', 30_000, 4500],
    ['hardly any', 150, 0],
  ])('%s: answers before Lambda ends the function', async (_what, remainingMs, answeredMs) => {
    const { receiver, handler, handled, errors, clock } = setUp()
    receiver.on('track', () => new Promise(() => {}))
    const answering = handler(eventOf('HTTP API', signed(track)), context(remainingMs))
    await until(() => handled.length === 1)
    if (answeredMs > 0) await clock.advance(answeredMs - 1)
    expect(errors).toEqual([])
    await clock.advance(1)
    const answer = await answering
    expect([answer.statusCode, codeOf(answer), handled[0]?.signal.aborted]).toEqual([503, 'handler_timeout', true])
  })

  it.each([[undefined], [{}]])("without it in the context (%j), the deadline is the receiver's", async (context) => {
    const { handler } = setUp()
    expect((await handler(eventOf('HTTP API', signed(track)), context)).statusCode).toBe(200)
  })

  it('keeps nothing running after the answer', async () => {
    const { handler } = setUp({ clock: systemClock })
    const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    await handler(eventOf('HTTP API', signed(track)), context(1000))
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length).toBe(before)
  })
})

it.each([
  ['undefined', undefined],
  ['null', null],
  ['a string', '{}'],
  ['an object', { Records: [{ messageId: 'id', body: '{}', eventSource: 'aws:sqs' }] }],
  ['an object', { requestContext: { eventType: 'MESSAGE', connectionId: 'id' }, body: '{}' }],
  ['an object', { requestContext: { http: { method: 'POST' } } }],
])('an event that is no HTTP request is refused: %s', async (found, event) => {
  await expect(setUp().handler(event as never)).rejects.toThrow(new RegExp(`^\`event\`.*Got ${found}\\.`))
})

describe('what would work on after the answer', () => {
  const rule = (found: string) => new RegExp(`^\`serve: endpoint\`.* ${found}`)
  const event = eventOf('HTTP API', signed(track))

  it('is refused: a started inbox, also when that was after serve', async () => {
    const inbox = sqliteQueue({ path: newFile() })
    const { receiver, handler, handled } = setUp({ inbox })
    onTestFinished(async () => void (await receiver.close()))

    expect((await handler(event)).statusCode).toBe(200)
    expect((await inbox.counts()).waiting).toBe(1)
    expect(handled).toEqual([])

    receiver.start()
    await expect(handler(event)).rejects.toThrow(rule('a started inbox'))
    await expect(handler(event)).rejects.toThrow('`receiver.work()` in a scheduled function, not with `start()`')
    expect(() => serve(receiver)).toThrow(TypeError)
  })

  it('is refused: an inbox in memory, and a collector whose destinations deliver', async () => {
    expect(() => serve(createReceiver({ secret, inbox: memoryQueue() }))).toThrow(rule('an inbox in memory'))

    const destination = createDestination({ webhooks: [{ url: 'https://shop.example/webhooks' }] })
    onTestFinished(() => void destination.close())
    const sources = [{ name: 'shop', writeKey: 'a write key', destinations: [destination] }]
    const own = { submit: async () => [] }
    expect(() => serve(createCollector({ sources }))).toThrow(rule('a collector whose destinations deliver afterwards'))
    serve(createCollector({ sources: [{ name: 'shop', writeKey: 'a write key', destinations: [own] }] }))
    destination.disable()
    serve(createCollector({ sources }))
  })
})
