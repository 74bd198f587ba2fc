/**
 * An app with an inspector: a client, a collector, two destinations, a receiver with an inbox, one without, and senders. A test starts
 * it with a channel, sends it commands, and ends it by closing the channel.
 */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import express from 'express'
import { createReceiver, type Message, type Receiver } from 'hookline'
import { createClient } from 'hookline/client'
import { createCollector } from 'hookline/collector'
import { serve } from 'hookline/express'
import { createInspector } from 'hookline/inspector'
import { memoryQueue } from 'hookline/queues/memory'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { createDestination, createSender } from 'hookline/sender'
import { manualClock, startEndpoint } from 'hookline/testing'
import { z } from 'zod'

export interface AppOptions {
  readonly port?: number
  readonly isManual?: boolean
  /** What whoever comes may do, without a token. */
  readonly open?: 'read' | 'write'
  readonly token?: string
  readonly data?: string
}

/** What a test may ask for: the arguments and the answer of each command. */
export interface Commands {
  /** Records calls of the client, and waits until the collector has them. */
  record(calls: readonly Message[]): Promise<void>
  queue(messages: readonly Message[]): Promise<void>
  partner(script: readonly number[]): Promise<void>
  counts(): Promise<{ readonly handled: number; readonly deadLetters: number }>
}

export interface Started {
  readonly url: string
  readonly origin: string
}

const SECRET = 'the secret of the app'
const WRITE_KEY = 'the write key of the shop'
const { port = 0, isManual, open, token, data }: AppOptions = JSON.parse(process.env.APP ?? '{}')

const clock = isManual ? { clock: manualClock() } : {}
const logger = { error() {}, warn() {}, info() {} }
const queueNamed = (name: string) =>
  data === undefined ? memoryQueue({ name, ...clock }) : sqliteQueue({ path: join(data, `${name}.sqlite`) })

const server = createServer().listen(port, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const partner = await startEndpoint({ path: '/partner' })

const retries = isManual ? [1_000, 5_000, 30_000, 120_000] : [100, 200]
const inbox = { queue: queueNamed('inbox'), retries, history: { maxAgeMs: 60 * 60_000 } }
const receiver = createReceiver({ secret: SECRET, inbox, logger, ...clock })
const priced = z.object({ items: z.array(z.object({ price: z.number() })) })
const inline = createReceiver({
  secret: ['a newer secret', SECRET],
  batches: true,
  events: { 'Order Priced': priced, 'Order Planned': priced },
  logger,
  ...clock,
})
let handled = 0
const receivers: readonly Receiver[] = [receiver, inline]
for (const each of receivers) {
  each
    .on('*', function count() {
      handled += 1
    })
    .on('track', 'Order Failed', function chargeCard() {
      throw new Error('The card was declined.')
    })
}

const signed = { sharedSecret: SECRET, logger, ...clock }
const shop = createDestination({
  webhooks: [{ url: `${origin}/webhooks` }],
  queue: queueNamed('shop'),
  filter: (message) => message.type !== 'track' || message.event !== 'Order Internal',
  ...signed,
})
const toPartner = createDestination({
  webhooks: [{ url: partner.url }],
  queue: queueNamed('partner'),
  circuit: false,
  random: () => 0.5,
  ...signed,
})
const sources = [{ name: 'shop', writeKey: WRITE_KEY, destinations: [shop] }]
const collector = createCollector({ sources, logger, ...clock })
const senderTo = (path: string) =>
  createSender({ webhooks: [{ url: `${origin}${path}` }], sharedSecret: SECRET, ...clock })
const inspector = createInspector({
  receiver: { app: receiver, inline },
  destinations: { shop, partner: toPartner },
  collector: { collector },
  senders: { 'to app': senderTo('/webhooks'), 'to inline': senderTo('/inline') },
  ...(open === undefined ? { token } : { authorize: () => open }),
  ...clock,
})

const app = express()
app.use('/webhooks', serve(receiver))
app.use('/inline', serve(inline))
app.use('/analytics', serve(collector))
app.use('/hookline', inspector.handler)
server.on('request', app)
receiver.start()

const client = createClient(WRITE_KEY, { endpoint: `${origin}/analytics/v1/batch` })
const commands: Commands = {
  async record(calls) {
    for (const { type, ...call } of calls) client[type as 'track'](call as never)
    await client.flush()
  },
  async queue(messages) {
    await toPartner.submit(messages.map((message) => ({ message })))
  },
  async partner(script) {
    partner.script(script)
  },
  async counts() {
    const { deadLetters } = await receiver.health()
    return { handled, deadLetters }
  },
}

process.on('disconnect', () => process.exit())
process.on('message', async ({ id, command, args }: { id: number; command: keyof Commands; args: never[] }) => {
  try {
    process.send?.({ id, answer: await (commands[command] as (...args: never[]) => Promise<unknown>)(...args) })
  } catch (error) {
    process.send?.({ id, error: String(error) })
  }
})
const url = open === undefined ? inspector.url(`${origin}/hookline`) : `${origin}/hookline/`
process.send?.({ origin, url } satisfies Started)
