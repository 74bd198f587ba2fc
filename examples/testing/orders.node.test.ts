/** The same integration test of an Express app, with Node's own runner: node --test examples/testing/orders.node.test.ts */

import assert from 'node:assert/strict'
import { EventEmitter, on, once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { createDestination, createSender, type DeliveryReport, type Sender } from 'hookline/sender'
import { fixtures, manualClock } from 'hookline/testing'
import { createOrderStore, createOrdersApp, type OrderStore } from './orders-app.ts'

const sharedSecret = 'the secret of the tests'
const order = { userId: 'user-1', orderId: 'order-1', total: 39.95 }

let orders: OrderStore
let server: Server
let webhooks: [{ url: string }]
let sender: Sender

beforeEach(async () => {
  mock.method(console, 'warn', () => {})
  orders = createOrderStore()
  server = createServer(createOrdersApp(sharedSecret, orders)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  webhooks = [{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` }]
  sender = createSender({ webhooks, sharedSecret })
})

afterEach(async () => {
  mock.restoreAll()
  await sender.close()
  server.close()
})

test('a signed order is kept', async () => {
  const { ok, attempts } = await sender.send(fixtures.track)

  assert.equal(ok, true)
  assert.deepEqual(statusesOf(attempts), [200])
  assert.deepEqual(orders.all(), [order])
})

for (const tamper of ['bad-signature', 'wrong-secret', 'no-signature', 'truncated'] as const) {
  test(`an order with tamper: ${tamper} is refused`, async () => {
    const { ok, attempts } = await sender.send(fixtures.track, { tamper })

    assert.equal(ok, false)
    assert.deepEqual(statusesOf(attempts), [401])
    assert.deepEqual(orders.all(), [])
  })
}

test('an order that is sent twice is kept once', async () => {
  const { attempts } = await sender.send(fixtures.track, { tamper: 'repeated' })

  assert.deepEqual(statusesOf(attempts), [200, 200])
  assert.deepEqual(orders.all(), [order])
})

test('an order that fails twice is sent again, and kept', async () => {
  const save = mock.method(orders, 'save')
  save.mock.mockImplementationOnce(() => Promise.reject(new Error('disk full')), 0)
  save.mock.mockImplementationOnce(() => Promise.reject(new Error('disk full')), 1)
  const clock = manualClock() // Retries wait seconds to minutes. This clock goes on when the test says so.
  const reports = new EventEmitter()
  const heard = on(reports, 'report') // Keeps each until it is asked for.
  const nextReport = async (): Promise<DeliveryReport> => (await heard.next()).value?.[0]
  const onAttempt = (report: DeliveryReport) => reports.emit('report', report)
  const destination = createDestination({ webhooks, sharedSecret, clock, onAttempt })

  await destination.send(fixtures.track)
  const first = await nextReport()
  assert.equal(first.status, 'retrying')
  assert.deepEqual(orders.all(), [])

  await clock.advance((first.retryAt as number) - clock.now())
  const second = await nextReport()
  assert.equal(second.status, 'retrying')

  await clock.advance((second.retryAt as number) - clock.now())
  const third = await nextReport()
  assert.equal(third.status, 'delivered')
  assert.deepEqual(statusesOf(third.attempts), [500, 500, 200])
  assert.deepEqual(orders.all(), [order])
  assert.deepEqual(await destination.close(), [])
})

function statusesOf(attempts: DeliveryReport['attempts']): unknown[] {
  return attempts.map(({ status }) => status)
}
