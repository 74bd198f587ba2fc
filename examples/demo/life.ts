/** The life of the demo while it stays up: made-up users, handlers that are slow or fail, and a warehouse that is down now and then. */

import type { RequestListener } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Message } from 'hookline'
import type { Client } from 'hookline/client'
import type { Sender } from 'hookline/sender'
import { fixtures } from 'hookline/testing'

/** Made-up users, and how many of 100 payments of each fail. */
const USERS = [
  { userId: 'grace', name: 'Grace Hopper', failing: 10 },
  { userId: 'alan', name: 'Alan Turing', failing: 10 },
  { userId: 'katherine', name: 'Katherine Johnson', failing: 30 },
  { userId: 'edsger', name: 'Edsger Dijkstra', failing: 85 },
  { userId: 'barbara', name: 'Barbara Liskov', failing: 10 },
] as const

const PRODUCTS = [
  { product: 'Slide rule', total: 24.9 },
  { product: 'Punched cards', total: 7.5 },
  { product: 'Loom', total: 310 },
]

const TAMPERINGS = ['bad-signature', 'no-signature', 'truncated', 'wrong-secret', 'reserialised'] as const

const CALL_EVERY_MS = 1_500
const FORGE_EVERY_MS = 20_000
/** How long the warehouse works, and how long it is down then. */
const UP_MS = 100_000
const DOWN_MS = 35_000

/** Whether a message or a call is of a made-up user. */
export function isOfLife({ userId }: Pick<Message, 'userId'>): boolean {
  return USERS.some((user) => user.userId === userId)
}

/** A handler that fails now and then. */
export function chargeCard({ userId }: Pick<Message, 'userId'>): void {
  const { failing = 0 } = USERS.find((user) => user.userId === userId) ?? {}
  if (Math.random() * 100 < failing) throw new Error('The payment provider answered 503')
}

/** A slow handler. */
export async function sendReceipt(): Promise<void> {
  await delay(700 + Math.random() * 600)
}

/** An endpoint that answers 503 now and then, sometimes for half a minute, and refuses a message in 40. */
export function createWarehouse(): RequestListener {
  const startedAt = performance.now() - UP_MS + 25_000 // It is down soon for the first time.
  let count = 0
  return (_request, response) => {
    count += 1
    const isDown = (performance.now() - startedAt) % (UP_MS + DOWN_MS) > UP_MS
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (isDown || count % 25 === 13) answer(503, { error: 'The warehouse is being counted.' })
    else if (count % 40 === 20) answer(422, { error: 'The warehouse knows no such product.' })
    else answer(200, { ok: true })
  }
}

/** Lets made-up users make calls with the client, and someone forge a message now and then. Returns what ends it. */
export function startLife(client: Client, forger: Sender): () => void {
  const calls = makeCalls(client)
  let forged = 0
  const timers = [
    setInterval(() => calls.next(), CALL_EVERY_MS),
    setInterval(() => {
      forged += 1
      const tamper = TAMPERINGS[forged % TAMPERINGS.length] as (typeof TAMPERINGS)[number]
      void forger.send(fixtures.track, { tamper }).catch(() => {}) // The demo ends.
    }, FORGE_EVERY_MS),
  ]
  return () => {
    for (const timer of timers) clearInterval(timer)
  }
}

/** One call at a time: each user looks around, and buys something. */
function* makeCalls(client: Client): Generator<void, never> {
  for (let visit = 0; ; visit += 1) {
    const { userId, name } = USERS[visit % USERS.length] as (typeof USERS)[number]
    const properties = PRODUCTS[visit % PRODUCTS.length] as (typeof PRODUCTS)[number]
    yield client.page({ userId, properties: { path: '/' } })
    yield client.identify({ userId, traits: { name } })
    yield client.track({ userId, event: 'Product Viewed', properties })
    yield client.page({ userId, properties: { path: '/basket' } })
    yield client.track({ userId, event: 'Order Placed', properties: { ...properties, currency: 'EUR' } })
    yield client.track({ userId, event: 'Order Paid', properties: { ...properties, currency: 'EUR' } })
  }
}
