/** The destination of the soak, in a process of its own: messages at a steady rate, each with an id of its own. */

import { createDestination } from 'hookline/sender'
import { secret } from '../message.ts'
import { openQueue, type Place } from '../queues/place.ts'
import { measureLiveMemory } from './process.ts'

/** What the process is started with. */
export interface SenderOptions {
  readonly place: Place
  readonly ports: readonly number[]
  /** The most messages that it will send. */
  readonly most: number
}

/** A question: how many messages a second from now on, or to how many URLs; or how it stands. */
type Question = { readonly perSecond: number } | { readonly urls: number } | 'standing'

/** How it stands. */
export interface SenderStanding {
  /** Messages whose promise resolved. */
  readonly accepted: number
  /** Messages whose promise rejected, because the engine did not answer in time: it may have stored them. */
  readonly rejected: number
  readonly delivered: number
  /** Messages that were accepted, and neither delivered nor became dead letters. */
  readonly missing: number
  /** Jobs in the queue, as the engine counts them. */
  readonly left: number
  readonly deadLetters: Readonly<Record<string, number>>
  readonly posts: number
  /** In MB. */
  readonly live: number
}

const TICK_MS = 10
/** Outages are shorter here than in a day, and so are the pauses between probes. */
const MAX_PROBE_MS = 3_000
/** Of a thousand messages one is refused by the endpoint. */
const REFUSED_EVERY = 1_000
const PREFIX = 'message-'

const { place, ports, most } = JSON.parse(process.argv[2] ?? '') as SenderOptions
const webhooks = ports.map((port) => ({ url: `http://127.0.0.1:${port}/` }))
const deadLetters: Record<string, number> = {}
const counts = { accepted: 0, rejected: 0, delivered: 0, posts: 0 }
const queue = await openQueue(place)
/** Of each message, by its number: a set of ids would look like a leak. */
const isAccepted = new Uint8Array(most + 1)
const hasEnded = new Uint8Array(most + 1)
const destination = createDestination({
  webhooks: webhooks.slice(0, 1),
  sharedSecret: secret,
  circuit: { maxProbeMs: MAX_PROBE_MS },
  queue,
  onAttempt({ message, status, latest, reason }) {
    counts.posts += latest.length
    const number = Number(String(message.messageId).slice(PREFIX.length))
    if (status === 'retrying' || hasEnded[number] === 1) return
    hasEnded[number] = 1
    if (status === 'delivered') counts.delivered += 1
    else if (reason !== undefined) deadLetters[reason] = (deadLetters[reason] ?? 0) + 1
  },
})

let perSecond = 0
let owed = 0
let sent = 0
setInterval(() => {
  for (owed += (perSecond * TICK_MS) / 1_000; owed >= 1; owed -= 1) void send(++sent)
}, TICK_MS)

async function send(number: number): Promise<void> {
  const event = number % REFUSED_EVERY === 0 ? 'refused' : 'Order Completed'
  const call = { userId: 'user-1', messageId: `${PREFIX}${number}`, event, properties: { note: 'x'.repeat(800) } }
  try {
    await destination.track(call)
    counts.accepted += 1
    isAccepted[number] = 1
  } catch {
    counts.rejected += 1
  }
}

function countMissing(): number {
  return isAccepted.reduce(
    (missing, accepted, number) => missing + (accepted === 1 && hasEnded[number] === 0 ? 1 : 0),
    0,
  )
}

process.on('message', async (question: Question) => {
  if (question !== 'standing' && 'perSecond' in question) perSecond = question.perSecond
  if (question !== 'standing' && 'urls' in question) destination.update({ webhooks: webhooks.slice(0, question.urls) })
  const { waiting, active } = await queue.counts().catch(() => ({ waiting: Number.NaN, active: 0 }))
  const left = waiting + active
  const standing = { ...counts, missing: countMissing(), left, deadLetters, live: measureLiveMemory() }
  process.send?.(standing satisfies SenderStanding)
})
process.on('disconnect', async () => {
  await destination.close()
  process.exit()
})
process.send?.('ready')
