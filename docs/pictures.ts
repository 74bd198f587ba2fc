/**
 * `npm run docs:pictures`, after a build: takes the pictures of the inspector that the guide shows. An app with a clock of its own
 * lives through two hours, always the same ones, and Chromium opens its real page.
 */

import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import express from 'express'
import { createReceiver } from 'hookline'
import { createClient } from 'hookline/client'
import { createCollector } from 'hookline/collector'
import { serve } from 'hookline/express'
import { createInspector } from 'hookline/inspector'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination, createSender } from 'hookline/sender'
import { manualClock, startEndpoint } from 'hookline/testing'
import type { Page } from 'playwright-core'
import { z } from 'zod'
import { launchChromium, openPage } from '../test/browser/chromium.ts'
import { until } from '../test/support/until.ts'

const FOLDER = join(import.meta.dirname, 'pictures')
const MOST_BYTES = 120_000
const HOOKLINE_SECRET = 'only for pictures'
const WRITE_KEY = 'demo-write-key'
/** The addresses are in the pictures. */
const [PORT, CRM_PORT] = [3000, 4000]
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

const clock = manualClock(Date.UTC(2026, 0, 15, 7, 30))
const logger = { error() {}, warn() {}, info() {} }
const shared = { sharedSecret: HOOKLINE_SECRET, random: chance(7), logger, clock }
const app = express()
const server = app.listen(PORT, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${PORT}`

const takes = chance(3)
const pause = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
/** How many requests the CRM has not answered yet. */
let answering = 0
// The endpoint of the CRM cannot take invoices yet, and refuses what it does not know.
const crmEndpoint = await startEndpoint({
  port: CRM_PORT,
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
  inbox: { queue: memoryQueue({ name: 'inbox', clock }), retries: [1_000, 5_000, 30_000] },
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
  development: true,
  clock,
})
app.use('/hookline', serve(inspector))
app.use('/webhooks', serve(inspector.withFaults(receiver)))
receiver.start()

await live()
await takePictures()
process.exit() // The clock stands still: nothing else would end.

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
    if (step % 60 === 0) client.identify({ userId: pick(USERS), traits: { plan: 'pro' }, messageId: `message-${step}` })
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

async function takePictures(): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  const browser = await launchChromium()
  const url = inspector.url(`${origin}/hookline`)
  for (const colorScheme of ['light', 'dark'] as const) {
    const look = { colorScheme, timezoneId: 'UTC', locale: 'en-GB' } as const
    const { page, faults } = await openPage(browser, { ...look, viewport: { width: 1_440, height: 900 } })
    await page.goto(url)
    const row = (...texts: readonly string[]) =>
      texts.reduce((rows, hasText) => rows.filter({ hasText }), page.getByRole('option')).first()
    const view = (name: string) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).click()

    await row('app', 'Order Refunded').click()
    await page.locator('.timeline').first().waitFor()
    await take(page, `messages-${colorScheme}`)
    await page.getByRole('searchbox').fill('Invoice')
    await row('crm').click()
    await page.getByText('Next attempt:').waitFor()
    await take(page, `retries-${colorScheme}`)
    await view('Events')
    await page.getByText('Basket Emptied').waitFor()
    await take(page, `events-${colorScheme}`)
    await view('Queues')
    await page.getByRole('button', { name: '4 hours' }).first().click()
    await page.locator('.queue-body svg').first().waitFor()
    await take(page, `queues-${colorScheme}`)
    await view('Dead letters')
    await page.locator('.letter').first().waitFor()
    await take(page, `dead-letters-${colorScheme}`)
    await view('Faults and time')
    await page.locator('.clock').waitFor()
    await take(page, `time-${colorScheme}`)

    await page.setViewportSize({ width: 360, height: 740 })
    await view('Messages')
    await page.getByRole('option').first().waitFor()
    await take(page, `narrow-${colorScheme}`)
    if (faults.length > 0) throw new Error(faults.join('\n'))
  }
  await browser.close()
}

async function take(page: Page, name: string): Promise<void> {
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 700))') // Its plots and numbers have come.
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 75 })
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length > MOST_BYTES) throw new RangeError(`${name} has ${bytes.length} bytes. The most is ${MOST_BYTES}.`)
  await writeFile(join(FOLDER, `${name}.webp`), bytes)
  console.log(`${name}.webp: ${Math.round(bytes.length / 1_000)} KB`)
}

/** Numbers from 0 to below 1 that are the same each time. */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}
