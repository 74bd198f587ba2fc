/** Tests of the orders app, with Vitest: supertest for single requests, Hookline's own sender for deliveries and retries. */

import { EventEmitter, on, once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDestination, createSender, type DeliveryReport, type Sender } from 'hookline/sender'
import { fixtures, manualClock, signedRequest } from 'hookline/testing'
import request from 'supertest'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { apps } from './apps.ts'
import { createOrderReceiver, createOrderStore, type OrderStore } from './orders.ts'

const sharedSecret = 'the secret of the tests'
const order = { userId: 'user-1', orderId: 'order-1', total: 39.95 }

describe.each(Object.entries(apps))('the orders app in %s', (_name, createApp) => {
  let orders: OrderStore
  let server: Server
  let webhooks: [{ url: string }]
  let sender: Sender

  beforeEach(async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    orders = createOrderStore()
    server = await createApp(createOrderReceiver(sharedSecret, orders))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    webhooks = [{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` }]
    sender = createSender({ webhooks, sharedSecret })
  })

  afterEach(async () => {
    vi.restoreAllMocks()
    await sender.close()
    server.close()
  })

  test('saves a signed order', async () => {
    const { headers, body } = signedRequest(fixtures.track, sharedSecret)

    await request(server).post('/webhooks').set(headers).send(body).expect(200, { ok: true })

    expect(orders.all()).toEqual([order])
  })

  test('refuses an order that is signed with another secret', async () => {
    const { headers, body } = signedRequest(fixtures.track, 'another secret')

    const answer = await request(server).post('/webhooks').set(headers).send(body).expect(401)

    expect(answer.body).toMatchObject({ code: 'signature_mismatch' })
    expect(orders.all()).toEqual([])
  })

  test.each(['bad-signature', 'wrong-secret', 'no-signature', 'truncated'] as const)(
    'refuses an order with tamper: %s',
    async (tamper) => {
      const round = await sender.send(fixtures.track, { tamper })

      expect(round.attempts).toMatchObject([{ ok: false, status: 401 }])
      expect(orders.all()).toEqual([])
    },
  )

  test('saves an order that is sent twice once', async () => {
    const round = await sender.send(fixtures.track, { tamper: 'repeated' })

    expect(round.attempts).toMatchObject([{ status: 200 }, { status: 200 }])
    expect(orders.all()).toEqual([order])
  })

  test('gets an order again that it failed to save twice', async () => {
    vi.spyOn(orders, 'save').mockRejectedValueOnce(new Error('disk full')).mockRejectedValueOnce(new Error('disk full'))
    const clock = manualClock() // Retries wait seconds to minutes. This clock advances when the test says so.
    const reports = new EventEmitter()
    const queued = on(reports, 'report') // Keeps each report until the test asks for it.
    const nextReport = async (): Promise<DeliveryReport> => (await queued.next()).value?.[0]
    const onAttempt = (report: DeliveryReport) => reports.emit('report', report)
    const destination = createDestination({ webhooks, sharedSecret, clock, onAttempt })

    await destination.send(fixtures.track)
    const first = await nextReport()
    expect(first).toMatchObject({ status: 'retrying', latest: [{ status: 500 }] })
    expect(orders.all()).toEqual([])

    await clock.advance(msUntil(first, clock.now()))
    const second = await nextReport()
    expect(second).toMatchObject({ status: 'retrying', latest: [{ status: 500 }] })

    await clock.advance(msUntil(second, clock.now()))
    const third = await nextReport()
    expect(third.status).toBe('delivered')
    expect(third.attempts.map(({ status }) => status)).toEqual([500, 500, 200])
    expect(orders.all()).toEqual([order])
    expect(await destination.close()).toEqual([])
  })
})

function msUntil({ retryAt }: DeliveryReport, now: number): number {
  return Number(retryAt) - now
}
