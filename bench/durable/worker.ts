/** A program of its own that fills and empties a queue when it is told to, and says how long that took. */

import { randomUUID } from 'node:crypto'
import { createReceiver } from 'hookline'
import type { Job, Outcome } from 'hookline/queues'
import { secret, signedHeaders, trackMessage } from '../message.ts'
import { BATCH, openBare } from './bare.ts'
import { openQueue, type Place } from './place.ts'

/** Who does it: the bare engine; the package's queue on it; or a receiver whose inbox that is. */
export type ContenderName = 'bare' | 'queue' | 'receiver'

/** What a worker can be told. */
export type Order =
  /** Puts in so many. */
  | { readonly fill: number }
  /** Does so many, with a handler that does nothing. Answers seconds. */
  | { readonly drain: number }
  /** Puts in so many, one by one, and then does as many of those that wait the longest. Answers seconds. Of a queue. */
  | { readonly pass: number }

interface Contender {
  fill(count: number): Promise<void>
  drain(count: number): Promise<void>
  pass?(count: number): Promise<void>
}

const [, , name, placeText = ''] = process.argv as [string, string, ContenderName, string]
const place = JSON.parse(placeText) as Place
const body = trackMessage(1024)
/** Of a fill. */
const CHUNK = 500
const PUSHES = 50

/** Of a queue that is not needed any more; its time does not count. */
let closing: Promise<unknown> | undefined

const openers = { bare: openBareContender, queue: openQueueContender, receiver: openReceiver }
const contender: Contender = await openers[name]()

process.on('message', async (order: Order) => process.send?.(await obey(order)))
process.on('disconnect', () => process.exit())
process.send?.('ready')

async function obey(order: Order): Promise<number> {
  await closing
  const start = performance.now()
  if ('fill' in order) await contender.fill(order.fill)
  else if ('drain' in order) await contender.drain(order.drain)
  else await contender.pass?.(order.pass)
  return (performance.now() - start) / 1_000
}

/** Calls `put` until so many are put. */
async function inChunks(count: number, put: (chunk: number) => Promise<unknown>): Promise<void> {
  for (let left = count; left > 0; left -= CHUNK) await put(Math.min(CHUNK, left))
}

/** Resolves when `done` was called so often. */
function countdown(count: number): { readonly over: Promise<void>; done(): boolean } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = count
  return {
    over: promise,
    /** Whether this one still counts. */
    done() {
      left -= 1
      if (left === 0) resolve()
      return left >= 0
    },
  }
}

async function openBareContender(): Promise<Contender> {
  const { add, drain } = await openBare(place)
  const put = (chunk: number) => add(Array.from({ length: chunk }, () => body))
  return { fill: (count) => inChunks(count, put), drain }
}

async function openQueueContender(): Promise<Contender> {
  const createJob = (): Job => ({ id: randomUUID(), body })
  const queue = await openQueue(place)
  return {
    fill: (count) => inChunks(count, (chunk) => queue.push(Array.from({ length: chunk }, createJob))),
    async drain(count) {
      const { over, done } = countdown(count)
      const handle = async (): Promise<Outcome> => {
        done()
        return { complete: true }
      }
      queue.work(handle, { concurrency: BATCH })
      await over
    },
    /** On a queue of its own, which is closed afterwards: what it still holds goes back. */
    async pass(count) {
      const passing = await openQueue(place)
      let left = count
      const push = async () => {
        while (left-- > 0) await passing.push([createJob()])
      }
      await Promise.all(Array.from({ length: PUSHES }, push))
      const { over, done } = countdown(count)
      const never = new Promise<Outcome>(() => {})
      passing.work(async () => (done() ? { complete: true } : never), { concurrency: BATCH })
      await over
      closing = passing.close({ graceMs: 0 })
    },
  }
}

async function openReceiver(): Promise<Contender> {
  let count = 0
  const inbox = { queue: await openQueue(place), concurrency: BATCH, key: () => `${place.name}-${count++}` }
  const receiver = createReceiver({ secret, inbox })
  const headers = signedHeaders(body)
  const put = (chunk: number) =>
    Promise.all(
      Array.from({ length: chunk }, async () => {
        const { status } = await receiver.receive(body, headers)
        if (status !== 200) throw new Error(`The inbox answered ${status}.`)
      }),
    )
  return {
    fill: (count) => inChunks(count, put),
    async drain(count) {
      const { over, done } = countdown(count)
      receiver.on('track', () => void done())
      receiver.start()
      await over
    },
  }
}
