/**
 * The demo behind `npm start` and `npx hookline demo`, on loopback: a client records calls, a collector takes them, two destinations
 * post them, a receiver handles them, and an inspector shows it all on a page.
 */

import type { RequestListener } from 'node:http'
import { createReceiver } from 'hookline'
import { createClient } from 'hookline/client'
import { type CollectorDestination, createCollector } from 'hookline/collector'
import { createInspector } from 'hookline/inspector'
import { serve } from 'hookline/node'
import { createDestination, createSender } from 'hookline/sender'
import { fixtures } from 'hookline/testing'
import { expectations, findFaults, toAnswer } from './demo/expectations.ts'
import { createJournal } from './demo/journal.ts'
import { chargeCard, createWarehouse, isOfLife, sendReceipt, startLife } from './demo/life.ts'
import { listen } from './demo/listen.ts'
import { openStorage } from './demo/storage.ts'
import { head, toCurl, toLine } from './demo/table.ts'

const TIMEOUT_MS = 3_000
const isOnce = process.argv.includes('--once')
const unknown = process.argv.slice(2).find((option) => option !== '--once')
if (unknown !== undefined) {
  console.error(`${unknown} is not an option. Valid options: --once.`)
  process.exit(1)
}
/** A header of what is forged to be seen on the page. */
const MADE_UP = 'x-made-up'
const sharedSecret = process.env.HOOKLINE_SECRET || 'only-for-this-demo'
const writeKey = 'demo-write-key'

/** By the first part of the path. */
const routes = new Map<string, RequestListener>()
const { server, origin } = await listen((request, response) => {
  const route = routes.get(/^\/\w*/.exec(request.url ?? '')?.[0] ?? '')
  if (route === undefined) response.writeHead(404).end()
  else route(request, response)
})

const { folder, inbox, outbox, warehouse, left } = await openStorage() // With the port: without it, no folder is made.
const journal = createJournal(Date.now())

// The receiver verifies messages, stores them in its inbox, answers, and calls the handlers of their types. With names, they are retried alone.
const receiver = createReceiver({
  secret: sharedSecret,
  inbox: { queue: inbox, history: { maxAgeMs: 60 * 60_000 } }, // Messages can be replayed for an hour.
  onError({ status, code, message }, { headers }) {
    // What is forged to be seen, and handlers that fail, are on the page.
    if (status < 500 && headers[MADE_UP] === undefined) journal.refuse('receiver', `${status} ${code}: ${message}`)
  },
})
receiver
  .on('page', (message) => journal.pass('receiver', message, `${message.userId} looked at ${message.properties?.path}`))
  .on('screen', (message) => {
    const { userId, name, context } = message
    journal.pass('receiver', message, `${userId} opened ${name} on a ${context?.device?.model}`)
  })
  .on('identify', (message) => {
    const { userId, traits } = message
    if (traits?.name !== undefined) journal.pass('receiver', message, `${userId} is ${traits.name}`)
  })
  .on('track', (message) => {
    const { userId, event, properties } = message
    journal.pass('receiver', message, `${userId}: ${event}, ${properties?.total} ${properties?.currency}`)
  })
  .on('track', 'Order Placed', chargeCard, { name: 'payment' })
  .on('track', 'Order Paid', sendReceipt, { name: 'receipt' })
  .on('alias', (message) => journal.pass('receiver', message, `${message.previousId} is ${message.userId}`))
  .on('group', (message) => journal.pass('receiver', message, `${message.userId} belongs to ${message.traits?.name}`))
  .on('delete', (message) => journal.pass('receiver', message, `${message.userId} wants to be forgotten`))
  .onAudience('High Value Users', {
    entered: (message) => journal.pass('receiver', message, `${message.userId} entered High Value Users`),
  })
routes.set('/health', async (_request, response) => {
  const health = await receiver.health()
  response.writeHead(health.ready ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify(health))
})

// A destination signs messages and posts them to the receiver: again and again for four hours, if need be.
const webhook = { url: `${origin}/webhooks` }
const webhooks = [webhook]
const destination = createDestination({
  webhooks,
  sharedSecret,
  queue: outbox,
  onAttempt({ status, message, latest }) {
    if (status === 'delivered') journal.pass('destination', message)
    else journal.fail('destination', message, `${status}, ${latest.map(toAnswer).join()}`)
  },
})

// Another one posts them to a warehouse, which is down now and then.
const stock = createDestination({
  webhooks: [{ url: `${origin}/warehouse` }],
  sharedSecret,
  queue: warehouse,
  onAttempt() {},
  onCircuit() {},
})
routes.set('/warehouse', createWarehouse())

// What the collector gives to its destination passes here. Without the journal, give it the destination itself.
const observed: CollectorDestination = {
  async submit(submissions) {
    const answers = await destination.submit(submissions)
    for (const { message } of submissions) journal.pass('collector', message)
    return answers
  },
}

// The collector takes calls over HTTP, and answers when they are in the destination's queue.
const collector = createCollector({
  sources: [{ name: 'shop', writeKey, destinations: [observed, stock] }],
  onError: ({ status, code, message }) => journal.refuse('collector', `${status} ${code}: ${message}`),
})
routes.set('/analytics', serve(collector, { path: '/analytics' }))

// The client records calls, and sends them to the collector in batches.
const client = createClient(writeKey, {
  endpoint: `${origin}/analytics/v1/batch`,
  flushAfterMs: 2_000,
  onError(error, calls) {
    for (const call of calls) if (!isOfLife(call)) journal.fail('client', call.type, error.message)
  },
})

// The inspector shows what all of them do.
const sender = createSender({ webhooks, sharedSecret })
const inspector = createInspector({
  receiver,
  destinations: { destination, warehouse: stock },
  collector,
  senders: sender,
})
routes.set('/hookline', (request, response) => {
  const { url: originalUrl = '' } = request
  inspector.handler(Object.assign(request, { originalUrl, url: originalUrl.slice('/hookline'.length) }), response)
})
routes.set('/webhooks', serve(receiver, { path: '/webhooks' }))
let endLife = async (): Promise<void> => {}

console.log(`Client, collector, destination and receiver run at ${origin}, for this machine alone`)
console.log(
  left.outbox + left.inbox === 0
    ? `The queues are in ${folder}`
    : `From last time, in ${folder}: ${left.outbox} messages to deliver, ${left.inbox} to handle`,
)
receiver.start()
console.log(`\n${head}`)
recordCalls()
void client.flush() // It would flush by itself, after 20 calls or 2 seconds.
await syncAudience()
await deleteUser()
await sendWrongly()
await journal.settled(
  expectations.map(({ name }) => name),
  TIMEOUT_MS,
)
if (!printTable()) process.exitCode = 1
if (isOnce) await close()
else stayUp()

function recordCalls(): void {
  const userId = 'user-1'
  const calls = {
    identify: () => client.identify({ userId, traits: { name: 'Ada Lovelace' } }),
    page: () => client.page({ userId, properties: { path: '/pricing' } }),
    screen: () => client.screen({ userId, name: 'Basket', context: { device: { model: 'Pixel 9' } } }),
    track: () => client.track({ userId, event: 'Order Completed', properties: { total: 39.95, currency: 'EUR' } }),
    group: () => client.group({ userId, groupId: 'group-1', traits: { name: 'Analytical Engines' } }),
    alias: () => client.alias({ userId, previousId: 'anonymous-1' }),
  }
  for (const [name, record] of Object.entries(calls)) {
    journal.begin(name)
    record()
    journal.pass('client', name)
  }
}

async function syncAudience(): Promise<void> {
  journal.begin('audience')
  await destination.syncAudience('High Value Users', ['user-1'])
}

async function deleteUser(): Promise<void> {
  journal.begin('delete')
  await collector.delete('user-2')
}

/** What the receiver must refuse. */
async function sendWrongly(): Promise<void> {
  const forged = await sender.send(fixtures.track, { tamper: 'bad-signature' })
  journal.fail('receiver', 'track, forged', forged.attempts.map(toAnswer).join())
  const truncated = await sender.send(fixtures.track, { tamper: 'truncated' })
  journal.fail('receiver', 'track, truncated', truncated.attempts.map(toAnswer).join())
}

/** Returns whether everything came out as it must. */
function printTable(): boolean {
  const rows = expectations.map((expected) => ({ expected, outcome: journal.outcome(expected.name) }))
  for (const { expected, outcome } of rows) console.log(toLine(expected, outcome))
  const right = rows.filter(({ expected, outcome }) => findFaults(expected, outcome).length === 0)
  console.log(
    '\nTimes count from the call. The receiver answers when a message is in its inbox; the handlers come after.',
  )
  console.log(`${right.length} of ${rows.length} came out as they must.`)
  return right.length === rows.length
}

function stayUp(): void {
  process.once('SIGINT', close)
  process.once('SIGTERM', close)
  journal.follow()
  const forger = createSender({ webhooks: [{ ...webhook, headers: { [MADE_UP]: 'yes' } }], sharedSecret })
  const stopUsers = startLife(client, forger)
  endLife = async () => {
    stopUsers()
    await forger.close()
  }
  const refund = { userId: 'user-1', event: 'Order Refunded', properties: { total: 39.95, currency: 'EUR' } }
  const command = toCurl(`${origin}/analytics/v1/track`, writeKey, refund)
  console.log(`\nYour turn. The write key is ${writeKey}. Paste this into another terminal; Ctrl+C here ends it all.`)
  console.log(`\n${command}\n`)
  const kill = process.platform === 'win32' ? 'taskkill /F /PID' : 'kill -9'
  console.log(`Or kill it, as a power cut would, and start it again: nothing is lost.\n\n${kill} ${process.pid}\n`)
  console.log(
    'Open this page to see it all. Made-up users go on with calls, handlers fail, and a warehouse is down at times.',
  )
  console.log(`\n${inspector.url(`${origin}/hookline`)}\n`)
}

/** In the order in which messages travel, so that each can still hand on what it has. */
async function close(): Promise<void> {
  await endLife()
  await client.close({ timeoutMs: 1_000 })
  await Promise.all([destination.close({ graceMs: 1_000 }), stock.close({ graceMs: 1_000 })])
  await receiver.close({ graceMs: 1_000 })
  await sender.close()
  await inspector.close()
  server.close()
}
