/** A header in place of a signature, and methods other than POST: inline, and with an inbox. */

import { inspect } from 'node:util'
import { describe, expect, it, vi } from 'vitest'
import type { EndpointHeaders } from '../../src/host/endpoint.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { Delivery } from '../../src/receive/delivery.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { HeaderKey } from '../../src/receive/secrets.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { hostRequest, setUp } from '../support/receive.ts'

const value = 'the-right-value'
const header: HeaderKey = { name: 'X-Webhook-Key', value }
const body = JSON.stringify(fixtures.track)

function setUpHeader(options: Partial<ReceiverOptions> = {}) {
  const { receiver, errors, failed } = setUp({ secret: undefined, header, ...options })
  const seen: Delivery[] = []
  receiver.on('*', (_message, delivery) => void seen.push(delivery))
  const send = (headers: EndpointHeaders, text = body, method = 'POST') =>
    receiver.handle(hostRequest({ method, headers: { 'content-type': 'application/json', ...headers } }, text))
  return { receiver, send, seen, errors, failed }
}

describe('a header', () => {
  it('with the right value: the message is handled, and nothing has the value any more', async () => {
    const { receiver, send, seen } = setUpHeader()
    const events: unknown[] = []
    receiver.observe({ answered: (event) => events.push(event), handled: (event) => events.push(event) })
    expect(await send({ 'x-webhook-key': value })).toMatchObject({ status: 200, ok: true })
    expect(seen).toMatchObject([
      { verified: 'header', secretIndex: 0, headers: { 'content-type': 'application/json' } },
    ])
    expect(events).toHaveLength(2)
    expect(inspect([seen, events], { depth: 9, showHidden: true })).not.toContain(value)
  })

  it.each<[string, EndpointHeaders, string]>([
    ['a wrong one', { 'x-webhook-key': 'the-right-valuE' }, 'header_mismatch'],
    ['two, as Node joins them', { 'x-webhook-key': `${value}, ${value}` }, 'header_mismatch'],
    ['an empty list', { 'x-webhook-key': [] }, 'header_missing'],
    ['a signature in its place', { 'x-signature': '0'.repeat(40) }, 'header_missing'],
  ])('%s: 401, and no handler', async (_what, headers, code) => {
    const { send, seen, errors, failed } = setUpHeader()
    expect(await send(headers)).toMatchObject({ status: 401, ok: false, error: { code } })
    expect(seen).toEqual([])
    expect(errors).toHaveLength(1)
    expect(inspect([errors, failed], { depth: 9 })).not.toContain('the-right')
  })

  it('sent twice, of which a host keeps the first: 401, whichever is right', async () => {
    const onError = vi.fn()
    const { receiver, failed } = setUpHeader({ header: { name: 'Authorization', value }, onError })
    const send = (...values: readonly string[]) => {
      const headers = { 'content-type': 'application/json', authorization: values[0] }
      const rawHeaders = ['Content-Type', 'application/json', ...values.flatMap((each) => ['Authorization', each])]
      return receiver.handle(hostRequest({ headers, rawHeaders }))
    }

    const statuses = [await send(value), await send(value, value), await send(value, 'x'), await send('x', value)]

    expect(statuses.map(({ status }) => status)).toEqual([200, 401, 401, 401])
    const refused = [{ code: 'header_mismatch' }, { path: '/webhooks', remoteAddress: '192.0.2.1' }]
    expect(onError.mock.calls).toMatchObject(Array(3).fill(refused))
    expect(inspect([onError.mock.calls, failed], { depth: 9, showHidden: true })).not.toContain(value)
  })

  it('of a list: each value is right, and the delivery says which; a copy with the other one has the same id', async () => {
    const { send, seen } = setUpHeader({ header: { ...header, value: ['newer', value] } })
    await send({ 'x-webhook-key': 'newer' })
    await send({ 'x-webhook-key': value })
    expect(seen.map(({ secretIndex }) => secretIndex)).toEqual([0, 1])
    expect(seen[0]?.id).toBe(seen[1]?.id)
  })

  it('in an inbox: the delivery says it, an invalid message becomes a dead letter, and the value is not stored', async () => {
    const queue = memoryQueue()
    const { receiver, send, seen } = setUpHeader({ inbox: queue })
    await send({ 'x-webhook-key': value })
    expect(await send({ 'x-webhook-key': value }, '{"type":"track"}')).toMatchObject({ status: 200, ok: false })
    receiver.start()
    await queue.drain()
    expect(seen).toMatchObject([{ verified: 'header', secretIndex: 0 }])
    const letters = await receiver.deadLetters()
    expect(letters).toMatchObject([{ verified: 'header', reason: 'message_invalid' }])
    expect(inspect([seen, letters], { depth: 9, showHidden: true })).not.toContain(value)
  })
})

it('methods are kept with a message in an inbox, and with each of a batch', async () => {
  const queue = memoryQueue()
  const { receiver, send, seen } = setUpHeader({ inbox: queue, batches: true, methods: ['POST', 'PUT', 'DELETE'] })
  const headers = { 'x-webhook-key': value }
  expect((await send(headers, body, 'DELETE')).status).toBe(200)
  expect(await send(headers, body, 'DELETE')).toMatchObject({ body: '{"ok":true,"duplicate":true}' })
  expect((await send(headers, body)).body).toBe('{"ok":true}')
  expect((await send(headers, `[${JSON.stringify(fixtures.page)}]`, 'DELETE')).status).toBe(200)
  receiver.start()
  await queue.drain()
  expect(seen.map(({ method }) => method)).toEqual(['DELETE', 'POST', 'DELETE'])
})
