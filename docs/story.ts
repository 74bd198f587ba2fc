/** Two hours of an app with a clock of its own, always the same ones: what the pictures of the inspector and its recording show. */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createReceiver } from 'hookline'
import { createClient } from 'hookline/client'
import { createCollector } from 'hookline/collector'
import { serve } from 'hookline/express'
import { createInspector } from 'hookline/inspector'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination, createSender } from 'hookline/sender'
import { manualClock, startEndpoint } from 'hookline/testing'
import { z } from 'zod'
import { until } from '../test/support/until.ts'

const HOOKLINE_SECRET = 'only for pictures'
const WRITE_KEY = 'demo-write-key'
const HOUR_MS = 3_600_000
const STEP_MS = 5_000
const STEPS = 1_440
const EVENTS = [
  'Order Completed',
  'Product Viewed',
  'Product Added',
  'Checkout Started',
  'Order Refunded',
  'Coupon Used',
]
const USERS = ['ada', 'grace', 'alan', 'katherine', 'edsger', 'barbara', 'donald', 'radia']

export interface Story {
  /** The URL of the app, without a path. */
  readonly origin: string
  /** The origin of the endpoint that the destination `crm` posts to. */
  readonly crmOrigin: string
  /** The URL that opens the inspector, with its token. */
  readonly url: string
  /** The end of the two hours, at which the clock stands. */
  readonly now: number
}

/** Runs the app on these ports of this machine, until the two hours are over. Then its clock stands still, and the app runs until its process ends. */
export async function tellStory(port: number, crmPort: number): Promise<Story> {
  const clock = manualClock(Date.UTC(2026, 0, 15, 7, 30))
  const logger = { error() {}, warn() {}, info() {} }
  const shared = { sharedSecret: HOOKLINE_SECRET, random: chance(7), logger, clock }
  const app = express()
  const server = app.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const takes = chance(3)
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  /** How many requests the CRM has not answered yet. */
  let answering = 0
  // The endpoint of the CRM cannot take invoices yet, and refuses what it does not know.
  const crmEndpoint = await startEndpoint({
    port: crmPort,
    script: [
      async ({ bytes }) => {
        answering += 1
        await pause(60 + takes() ** 4 * 900)
        answering -= 1
        const body = bytes.toString()
        if (body.includes('Invoice Issued')) return { status: 503, body: 'The ledger is closed for maintenance.' }
        return body.includes('Coupon Used') ? { status: 422, body: '{"error":"unknown event"}' } : 200
      },
    ],
  })

  // One order of a hundred is larger than its schema allows, and coupons are in no plan yet.
  const order = z.looseObject({ order_id: z.string(), total: z.number().max(99) })
  const product = z.looseObject({ currency: z.string() })
  const receiver = createReceiver({
    secret: HOOKLINE_SECRET,
    events: {
      'Order Completed': order,
      'Order Refunded': z.looseObject({ total: z.number() }),
      'Product Viewed': product,
      'Product Added': product,
      'Checkout Started': product,
      'Basket Emptied': z.looseObject({}),
    },
    inbox: {
      queue: memoryQueue({ name: 'inbox', clock }),
      retries: [1_000, 5_000, 30_000],
      history: { maxAgeMs: 4 * HOUR_MS },
    },
    logger,
    clock,
  })
  receiver
    .on('*', async function writeToWarehouse() {
      await pause(4 + takes() ** 4 * 90)
    })
    .on('track', 'Order Completed', async function sendReceipt() {
      await pause(20 + takes() * 30)
    })
    .on('track', 'Order Refunded', async function refundCard(message) {
      await pause(35)
      if (Number(message.properties?.total) > 80) throw new Error('The card has expired.')
    })

  const shop = createDestination({
    webhooks: [{ url: `${origin}/webhooks` }],
    queue: memoryQueue({ name: 'shop', clock }),
    ...shared,
  })
  const crm = createDestination({
    webhooks: [{ url: crmEndpoint.url }],
    queue: memoryQueue({ name: 'crm', clock }),
    ...shared,
  })
  const collector = createCollector({
    sources: [{ name: 'shop', writeKey: WRITE_KEY, destinations: [shop] }],
    logger,
    clock,
  })
  app.use('/analytics', serve(collector))
  const sender = createSender({ webhooks: [{ url: `${origin}/webhooks` }], sharedSecret: HOOKLINE_SECRET, clock })
  const inspector = createInspector({
    receiver: { app: receiver },
    destinations: { shop, crm },
    collector: { collector },
    senders: { 'to app': sender },
    clock,
  })
  app.use('/hookline', inspector.handler)
  app.use('/webhooks', serve(receiver))
  receiver.start()

  await live()
  return {
    origin,
    crmOrigin: new URL(crmEndpoint.url).origin,
    url: inspector.url(`${origin}/hookline`),
    now: clock.now(),
  }

  /** Two hours of calls, messages, failures and retries. */
  async function live(): Promise<void> {
    const client = createClient(WRITE_KEY, { endpoint: `${origin}/analytics/v1/batch`, clock })
    const next = chance(1)
    const pick = (list: readonly string[]): string => list[Math.floor(next() * list.length)] ?? ''
    for (let step = 0; step < STEPS; step += 1) {
      const calls = Math.floor(next() ** 3 * (2.5 + 1.5 * Math.sin(step / 50)) + 0.5)
      for (let count = 0; count < calls; count += 1) {
        const total = Math.round(next() * 10_000) / 100
        const properties = { order_id: `order-${1_000 + step}`, total, currency: 'EUR' }
        client.track({ userId: pick(USERS), event: pick(EVENTS), properties, messageId: `message-${step}-${count}` })
      }
      if (step % 60 === 0)
        client.identify({ userId: pick(USERS), traits: { plan: 'pro' }, messageId: `message-${step}` })
      await client.flush()
      const isInvoice = step === STEPS / 4 || step === STEPS - 120
      const lead = { userId: pick(USERS), messageId: `lead-${step}`, properties: { number: `2026-${step}` } }
      const message = { version: 1, type: 'track', ...lead } as const
      if (isInvoice) await crm.send({ ...message, event: 'Invoice Issued' })
      else if (step % 36 === 0) await crm.send({ ...message, event: pick(EVENTS) })
      if (step % 270 === 0) await sender.send({ ...message, event: 'Order Completed' }, { tamper: 'reserialised' })
      await passTime(STEP_MS)
    }
  }

  /** Moves the clock from timer to timer, and waits at each for what it brings about. */
  async function passTime(ms: number): Promise<void> {
    const end = clock.now() + ms
    await settle()
    for (let next = clock.nextTimerAt; next !== undefined && next <= end; next = clock.nextTimerAt) {
      await clock.advance(next - clock.now())
      await settle()
    }
    await clock.advance(end - clock.now())
  }

  /** Waits until nothing is being sent, and nothing that is due waits for it. */
  async function settle(): Promise<void> {
    await until(async () => {
      const [toApp, toCrm] = await Promise.all([shop.health(), crm.health()])
      return toApp.active + toApp.waiting + toCrm.oldestDueAgeMs === 0 && toCrm.active === answering
    })
  }
}

/** Numbers from 0 to below 1 that are the same each time. */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}
