/** The demo behind `npm start`: a receiver on loopback, and one real request of every kind sent to it. */

import type { AddressInfo } from 'node:net'
import express from 'express'
import { createReceiver, type Delivery } from 'hookline'
import { serve } from 'hookline/express'
import { fixtures, type SignedRequest, signedRequest } from 'hookline/testing'
import { createDeliveries, head, isRight, type Outcome, toCurl, toLine } from './demo/deliveries.ts'

const isOnce = process.argv.includes('--once')
const secret = process.env.SHARED_SECRET || 'only-for-this-demo'
const port = Number(process.env.PORT || 3000)
if (!Number.isInteger(port) || port < 0 || port > 65_535) stop('PORT: must be a whole number from 0 to 65535.')

const seen = new Map<string, string>()
let isOpenToAll = false

const receiver = createReceiver({
  secret,
  onError: (error) => {
    if (isOpenToAll) console.log(`✗ ${error.status} ${error.code}: ${error.message}`)
  },
})

receiver
  .on('page', (message, delivery) => saw(delivery, `${message.userId} looked at ${message.properties?.path}`))
  .on('screen', (message, delivery) =>
    saw(delivery, `${message.userId} opened ${message.name} on a ${message.context?.device?.model}`),
  )
  .on('identify', (message, delivery) => saw(delivery, `${message.userId} is ${message.traits?.name}`))
  .on('track', ({ userId, event, properties }, delivery) =>
    saw(delivery, `${userId}: ${event}, ${properties?.total} ${properties?.currency}`),
  )
  .on('alias', (message, delivery) => saw(delivery, `${message.previousId} is ${message.userId}`))
  .on('group', (message, delivery) => saw(delivery, `${message.userId} belongs to ${message.traits?.name}`))
  .on('delete', (message, delivery) => saw(delivery, `${message.userId} wants to be forgotten`))

const app = express()
app.post('/webhooks', serve(receiver))

const server = app.listen(port, '127.0.0.1', (error) => {
  if (error === undefined) return void run(`http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`)
  const isTaken = 'code' in error && error.code === 'EADDRINUSE'
  stop(isTaken ? `Port ${port} is taken. Take any free one: PORT=0 npm start` : error.message)
})

async function run(url: string): Promise<void> {
  console.log(`A receiver listens at ${url}\n\n${head}`)
  const deliveries = createDeliveries(secret)
  let right = 0
  for (const delivery of deliveries) {
    const outcome = await send(url, delivery.request)
    console.log(toLine(delivery, outcome))
    if (isRight(delivery, outcome)) right++
  }
  console.log(`\n${right} of ${deliveries.length} came out as they must.`)
  if (right !== deliveries.length) process.exitCode = 1
  if (isOnce) return void server.close()

  isOpenToAll = true
  const request = signedRequest({ ...fixtures.track, event: 'Order Refunded' }, secret)
  console.log(
    `\nYour turn. Paste this into another terminal; Ctrl+C here ends the receiver.\n\n${toCurl(url, request)}\n`,
  )
}

async function send(url: string, request: SignedRequest): Promise<Outcome> {
  try {
    const response = await fetch(url, request)
    const problem: unknown = await response.json()
    const saw = response.ok ? seen.get(request.headers['x-signature']) : (problem as { code?: string }).code
    return { status: response.status, saw: saw ?? 'nothing' }
  } catch (error) {
    return { status: 0, saw: String(error) }
  }
}

/** The id of a signed delivery is its signature, which tells the sending half of the demo what became of its request. */
function saw(delivery: Delivery, text: string): void {
  seen.set(delivery.id, text)
  if (isOpenToAll) console.log(`✓ 200 ${text}`)
}

function stop(reason: string): never {
  console.error(reason)
  process.exit(1)
}
