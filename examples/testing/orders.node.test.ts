/** The same tests with Node's own runner: npm exec -- node --test examples/testing/orders.node.test.ts */

import assert from 'node:assert/strict'
import { EventEmitter, on, once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { createDestination, createSender, type DeliveryReport, type Sender } from 'hookline/sender'
import { fixtures, manualClock, signedRequest } from 'hookline/testing'
import request from 'supertest'
import { apps } from './apps.ts'
import { createOrderReceiver, createOrderStore, type OrderStore } from './orders.ts'

const sharedSecret = 'the secret of the tests'
const order = { userId: 'user-1', orderId: 'order-1', total: 39.95 }

for (const [name, createApp] of Object.entries(apps)) {
  describe(`the orders app in ${name}`, () => {
    let orders: OrderStore
    let server: Server
    let webhooks: [{ url: string }]
    let sender: Sender

    beforeEach(async () => {
      mock.method(console, 'warn', () => {})
      orders = createOrderStore()
      server = await createApp(createOrderReceiver(sharedSecret, orders))
      await once(server.listen(0, '127.0.0.1'), 'listening')
      webhooks = [{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` }]
      sender = createSender({ webhooks, sharedSecret })
    })

    afterEach(async () => {
      mock.restoreAll()
      await sender.close()
      server.close()
    })

    test('saves a signed order', async () => {
      const { headers, body } = signedRequest(fixtures.track, sharedSecret)

      await request(server).post('/webhooks').set(headers).send(body).expect(200, { ok: true })

      assert.deepEqual(orders.all(), [order])
    })

    test('refuses an order that is signed with another secret', async () => {
      const { headers, body } = signedRequest(fixtures.track, 'another secret')

      const answer = await request(server).post('/webhooks').set(headers).send(body).expect(401)

      assert.equal(answer.body.code, 'signature_mismatch')
      assert.deepEqual(orders.all(), [])
    })

    for (const tamper of ['bad-signature', 'wrong-secret', 'no-signature', 'truncated'] as const) {
      test(`refuses an order with tamper: ${tamper}`, async () => {
        const { ok, attempts } = await sender.send(fixtures.track, { tamper })

        assert.equal(ok, false)
        assert.deepEqual(statusesOf(attempts), [401])
        assert.deepEqual(orders.all(), [])
      })
    }

    test('saves an order that is sent twice once', async () => {
      const { attempts } = await sender.send(fixtures.track, { tamper: 'repeated' })

      assert.deepEqual(statusesOf(attempts), [200, 200])
      assert.deepEqual(orders.all(), [order])
    })

    test('gets an order again that it failed to save twice', async () => {
      const save = mock.method(orders, 'save')
      save.mock.mockImplementationOnce(() => Promise.reject(new Error('disk full')), 0)
      save.mock.mockImplementationOnce(() => Promise.reject(new Error('disk full')), 1)
      const clock = manualClock() // Retries wait seconds to minutes. This clock advances when the test says so.
      const reports = new EventEmitter()
      const queued = on(reports, 'report') // Keeps each report until the test asks for it.
      const nextReport = async (): Promise<DeliveryReport> => (await queued.next()).value?.[0]
      const onAttempt = (report: DeliveryReport) => reports.emit('report', report)
      const destination = createDestination({ webhooks, sharedSecret, clock, onAttempt })

      await destination.send(fixtures.track)
      const first = await nextReport()
      assert.equal(first.status, 'retrying')
      assert.deepEqual(orders.all(), [])

      await clock.advance(msUntil(first, clock.now()))
      const second = await nextReport()
      assert.equal(second.status, 'retrying')

      await clock.advance(msUntil(second, clock.now()))
      const third = await nextReport()
      assert.equal(third.status, 'delivered')
      assert.deepEqual(statusesOf(third.attempts), [500, 500, 200])
      assert.deepEqual(orders.all(), [order])
      assert.deepEqual(await destination.close(), [])
    })
  })
}

function statusesOf(attempts: DeliveryReport['attempts']): unknown[] {
  return attempts.map(({ status }) => status)
}

function msUntil({ retryAt }: DeliveryReport, now: number): number {
  return Number(retryAt) - now
}
