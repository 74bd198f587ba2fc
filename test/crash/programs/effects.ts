/** A receiver whose handlers run in a transaction of PostgreSQL, and write a row for each message: through an inbox that it shares. */

import { createReceiver, type Delivery, type TrackMessage } from '../../../src/index.ts'
import { openQueue, type Place, secret } from '../place.ts'
import { answerQuestions, readSettings, sayReady } from './answers.ts'

export interface EffectsSettings {
  readonly place: Place
  /** Whether its handler gets batches. */
  readonly batched?: boolean
}

const HANDLING_MS = 20

const { place, batched = false } = readSettings<EffectsSettings>()
const receiver = createReceiver({
  secret,
  inbox: { queue: await openQueue(place), transactional: true, concurrency: 10, retries: () => 20 },
  onError: () => {}, // A connection that was cut off is seen by what is missing.
})
const table = `${place.name}.effects`
async function write(messages: readonly TrackMessage[], { db }: Pick<Delivery, 'db'>): Promise<void> {
  const ids = messages.map(({ messageId }) => messageId)
  await db?.query(`INSERT INTO ${table} SELECT unnest($1::text[])`, [ids])
  await db?.query('SELECT pg_sleep($1)', [(Math.random() * HANDLING_MS) / 1_000])
  const part = Math.floor(Math.random() * 10)
  await db?.query(`UPDATE ${table}_count SET n = n + $2 WHERE part = $1`, [part, ids.length])
}
if (batched)
  receiver.onBatch('track', (messages, _, batch) => write(messages, batch), { maxMessages: 20, maxWaitMs: 20 })
else receiver.on('track', (message, delivery) => write([message], delivery))
receiver.start()
answerQuestions({ close: () => process.disconnect() })
sayReady()
