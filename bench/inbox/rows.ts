/** An inbox whose handlers write a row of PostgreSQL for each message: one by one, or a batch with one INSERT; or that nobody works on. */

import { createReceiver, type TrackMessage } from 'hookline'
import pg from 'pg'
import type { Contender } from '../contender.ts'
import { secret, signedHeaders, trackMessage } from '../message.ts'
import { CONCURRENCY, createCountdown, inParallel } from '../parallel.ts'
import { openQueue, type Place } from '../queues/place.ts'
import { DATABASE_URL } from '../queues/places.ts'

export type RowsKind = 'accepting' | 'one each' | 'batches'

export async function openContender(place: Place, kind: RowsKind): Promise<Contender> {
  const inbox = { queue: await openQueue(place), concurrency: CONCURRENCY }
  const receiver = createReceiver({ secret, inbox })
  const pool = new pg.Pool({ connectionString: DATABASE_URL })
  await pool.query(`CREATE SCHEMA IF NOT EXISTS ${place.name}`)
  await pool.query(`CREATE TABLE ${place.name}.rows (id text, total numeric)`)
  const countdown = createCountdown()
  const insert = async (messages: readonly TrackMessage[]): Promise<void> => {
    const ids = messages.map(({ messageId }) => messageId)
    const totals = messages.map(({ properties }) => properties?.total)
    await pool.query(`INSERT INTO ${place.name}.rows SELECT * FROM unnest($1::text[], $2::numeric[])`, [ids, totals])
    for (const _ of messages) countdown.tick()
  }
  if (kind === 'batches') receiver.onBatch('track', insert)
  else receiver.on('track', (message) => insert([message]))
  if (kind !== 'accepting') receiver.start()
  let count = 0
  let bodies: Buffer[] = []
  return {
    async prepare(messages) {
      bodies = Array.from({ length: messages }, () => trackMessage(1024, count++))
    },
    async run(messages) {
      const over = countdown.start(messages)
      await inParallel(messages, async () => {
        const body = bodies.pop() ?? Buffer.alloc(0)
        const { status } = await receiver.receive(body, signedHeaders(body))
        if (status !== 200) throw new Error(`It was answered ${status}.`)
      })
      if (kind === 'accepting') return
      await over
      await inbox.queue.drain()
    },
  }
}
