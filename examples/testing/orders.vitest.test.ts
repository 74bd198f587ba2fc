/** An integration test of an Express app, with Vitest: real requests, signed as the destination signs them. */

import { EventEmitter, on, once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDestination, createSender, type DeliveryReport, type Sender } from 'hookline/sender'
import { fixtures, manualClock } from 'hookline/testing'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createOrderStore, createOrdersApp, type OrderStore } from './orders-app.ts'

const sharedSecret = 'the secret of the tests'
const order = { userId: 'user-1', orderId: 'order-1', total: 39.95 }

let orders: OrderStore
let server: Server
let webhooks: [{ url: string }]
let sender: Sender

beforeEach(async () => {
  vi.spyOn(console, 'warn').mockReturnValue()
  orders = createOrderStore()
  server = createServer(createOrdersApp(sharedSecret, orders)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  webhooks = [{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` }]
  sender = createSender({ webhooks, sharedSecret })
})

afterEach(async () => {
  vi.restoreAllMocks()
  await sender.close()
  server.close()
})

test('a signed order is kept', async () => {
  const round = await sender.send(fixtures.track)

  expect(round.attempts).toMatchObject([{ ok: true, status: 200 }])
  expect(orders.all()).toEqual([order])
})

test.each(['bad-signature', 'wrong-secret', 'no-signature', 'truncated'] as const)(
  'an order with tamper: %s is refused',
  async (tamper) => {
    const round = await sender.send(fixtures.track, { tamper })

    expect(round.attempts).toMatchObject([{ ok: false, status: 401 }])
    expect(orders.all()).toEqual([])
  },
)

test('an order that is sent twice is kept once', async () => {
  const round = await sender.send(fixtures.track, { tamper: 'repeated' })

  expect(round.attempts).toMatchObject([{ status: 200 }, { status: 200 }])
  expect(orders.all()).toEqual([order])
})

test('an order that fails twice is sent again, and kept', async () => {
  vi.spyOn(orders, 'save').mockRejectedValueOnce(new Error('disk full')).mockRejectedValueOnce(new Error('disk full'))
  const clock = manualClock() // Retries wait seconds to minutes. This clock goes on when the test says so.
  const reports = new EventEmitter()
  const heard = on(reports, 'report') // Keeps each until it is asked for.
  const nextReport = async (): Promise<DeliveryReport> => (await heard.next()).value?.[0]
  const onAttempt = (report: DeliveryReport) => reports.emit('report', report)
  const destination = createDestination({ webhooks, sharedSecret, clock, onAttempt })

  await destination.send(fixtures.track)
  const first = await nextReport()
  expect(first).toMatchObject({ status: 'retrying', latest: [{ status: 500 }] })
  expect(orders.all()).toEqual([])

  await clock.advance((first.retryAt as number) - clock.now())
  const second = await nextReport()
  expect(second).toMatchObject({ status: 'retrying', latest: [{ status: 500 }] })

  await clock.advance((second.retryAt as number) - clock.now())
  const third = await nextReport()
  expect(third.status).toBe('delivered')
  expect(third.attempts.map(({ status }) => status)).toEqual([500, 500, 200])
  expect(orders.all()).toEqual([order])
  expect(await destination.close()).toEqual([])
})
