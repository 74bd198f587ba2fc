/** A month of history in a SQLite file: its size, the time to find the messages of a user, and what it costs to drop a day. */

import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { createReceiver } from 'hookline'
import { memoryQueue } from 'hookline/queues/memory'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { secret, signedHeaders, trackMessage } from '../message.ts'
import { withPlaces } from '../queues/places.ts'
import { printTable, quantile, verdict } from '../table.ts'
import { handleJobs } from './inbox.ts'

const DAY_MS = 24 * 60 * 60_000
const DAYS = 30
/** A tenth of 10 messages a second. */
const A_DAY = 86_400
const AT_ONCE = 4_320
const USERS = 10_000
const START = Date.UTC(2026, 0, 1)
const history = { maxAgeMs: DAYS * DAY_MS }

export async function measureMonth(): Promise<void> {
  await withPlaces(async (newPlace) => {
    const { at: path } = newPlace('sqlite')
    let time = START
    const clock = {
      now: () => time,
      monotonic: () => time,
      setTimeout: (callback: () => void, ms: number) => setTimeout(callback, ms),
      clearTimeout: (timer: unknown) => clearTimeout(timer as NodeJS.Timeout),
    }
    const open = () => sqliteQueue({ path, clock })

    const envelopes = await createEnvelopes()
    const filling = open()
    const keep = handleJobs(filling)
    const since = performance.now()
    for (let done = 0; done < DAYS * A_DAY; done += AT_ONCE) {
      time = START + (done / A_DAY) * DAY_MS
      await keep(Array.from({ length: AT_ONCE }, (_, index) => envelopes((done + index) % USERS)))
    }
    const fillSeconds = (performance.now() - since) / 1000
    await filling.close({ graceMs: 1000 })
    time = START + DAYS * DAY_MS
    const count = DAYS * A_DAY
    const { size } = statSync(path)

    const walking = createReceiver({ secret, inbox: { queue: open(), history } })
    const before = process.memoryUsage.rss()
    let most = 0
    const walkedAt = performance.now()
    let found = 0
    const look = (): void => {
      most = Math.max(most, process.memoryUsage.rss() - before)
    }
    const watch = setInterval(look, 100)
    for await (const _ of walking.history({ userId: 'user-7' })) found += 1
    clearInterval(watch)
    const walkSeconds = (performance.now() - walkedAt) / 1000
    await walking.close({ graceMs: 0 })

    time += DAY_MS
    const queue = open()
    const droppedAt = performance.now()
    queue.work(async () => ({ complete: true }), { concurrency: 10, history })
    const pushes: number[] = []
    for (let isOver = false; !isOver; ) {
      const pushedAt = performance.now()
      await queue.push([{ id: randomUUID(), body: envelopes(1) }])
      pushes.push(performance.now() - pushedAt)
      const [oldest] = (await queue.log?.list({ limit: 1 })) ?? []
      isOver = oldest === undefined || oldest.handledAt.getTime() >= time - history.maxAgeMs
    }
    const dropSeconds = (performance.now() - droppedAt) / 1000
    await queue.close({ graceMs: 1000 })

    const rate = count / walkSeconds
    console.log(`## A month of history in a SQLite file, a tenth of 10 messages/s: ${count} messages of 1 KB\n`)
    printTable(
      ['', 'measured', 'target', ''],
      [
        ['pushed, handled and kept, messages/s', (count / fillSeconds).toFixed(0), '–', ''],
        ['size of the file, GB', (size / 1e9).toFixed(2), '–', ''],
        ['bytes a message', (size / count).toFixed(0), '–', ''],
        [`to find the ${found} messages of a user, s`, walkSeconds.toFixed(1), '–', ''],
        ['the same, messages/s', rate.toFixed(0), '≥ 50000', verdict(rate >= 50_000)],
        ['memory that it took, MB', (most / 1e6).toFixed(0), '–', ''],
        [`to drop a day of ${A_DAY}, s`, dropSeconds.toFixed(1), '–', ''],
        ['a push meanwhile, median, ms', quantile(pushes, 0.5).toFixed(1), '–', ''],
        ['a push meanwhile, 99th percentile, ms', quantile(pushes, 0.99).toFixed(1), '–', ''],
      ],
    )
  })
}

/** What an inbox stores of a track message of 1 KB, for each user. */
async function createEnvelopes(): Promise<(user: number) => Uint8Array> {
  const queue = memoryQueue()
  const body = trackMessage(1024)
  await createReceiver({ secret, inbox: queue }).receive(body, signedHeaders(body))
  const [job] = await queue.close({ graceMs: 0 })
  const text = Buffer.from(job?.body ?? '').toString()
  return (user) => Buffer.from(text.replace('"user-1"', `"user-${user}"`))
}
