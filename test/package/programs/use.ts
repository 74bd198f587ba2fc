// What a user writes with every subpath, frameworks left out: a project without them must compile it.
import { createServer, type RequestListener } from 'node:http'
import {
  createReceiver,
  type Delivery,
  HooklineError,
  type HooklineErrorCode,
  type Message,
  parse,
  type ReceiverOptions,
  sign,
  verify,
} from 'hookline'
import { createClient } from 'hookline/client'
import { createCollector } from 'hookline/collector'
import { serve as serveExpress } from 'hookline/express'
import { serve as serveFastify } from 'hookline/fastify'
import { serve as serveFetch } from 'hookline/fetch'
import { serve as serveKoa } from 'hookline/koa'
import { serve as serveLambda } from 'hookline/lambda'
import { serve as serveNode } from 'hookline/node'
import { createDestination, createSender } from 'hookline/sender'
import { fixtures, type ManualClock, manualClock, signedRequest } from 'hookline/testing'

const clock: ManualClock = manualClock()
const onError: ReceiverOptions['onError'] = (error, request) => {
  const code: HooklineErrorCode = error.code
  console.error(code, request.remoteAddress)
}

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET, clock, onError })
  .on('track', (message, delivery: Delivery) => {
    const event: string = message.event
    const at: Date = delivery.receivedAt
    console.log(event, at)
  })
  .on(['identify', 'group'], (message) => console.log(message.traits))
  .on('*', (message) => console.log(message.type))
  .onAudience('High Value Users', { entered: (message) => console.log(message.userId) })

const { body } = signedRequest(fixtures.track, 'secret')
const message: Message = parse(Buffer.from(body))
const isSigned: boolean = verify(Buffer.from(body), sign(body, 'secret'), ['old secret', 'secret'])

export const listener: RequestListener = serveNode(receiver, { path: '/webhooks' })
export const server = createServer(listener)
export const POST: (request: Request) => Promise<Response> = serveFetch(receiver)
export const handler = serveLambda(receiver)
export const others = [serveExpress(receiver), serveKoa(receiver, { path: '/webhooks' }), serveFastify(receiver)]

// Without annotations, as a library of yours may write it: the compiler has to name each type in its declarations.
export const everyMethod = {
  receiver: { ...receiver },
  destination: { ...createDestination({ webhooks: [{ url: 'https://shop.example/webhooks' }] }) },
  sender: { ...createSender({ webhooks: [{ url: 'https://shop.example/webhooks' }] }) },
  collector: { ...createCollector({ sources: [{ name: 'shop', writeKey: 'key', destinations: [] }] }) },
  client: { ...createClient('key', { endpoint: 'https://analytics.example/v1/batch' }) },
}

export async function receiveAlone(bytes: Uint8Array, headers: Headers): Promise<number> {
  const received = await receiver.receive(bytes, headers)
  if (received.ok) console.log(received.message.type, message, isSigned)
  else console.log(received.error instanceof HooklineError)
  return received.status
}
