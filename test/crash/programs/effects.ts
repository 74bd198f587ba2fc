/** A receiver whose handlers run in a transaction of PostgreSQL, and write a row for each message: through an inbox that it shares. */

import { createReceiver } from '../../../src/index.ts'
import { openQueue, type Place, secret } from '../place.ts'
import { answerQuestions, readSettings, sayReady } from './answers.ts'

export interface EffectsSettings {
  readonly place: Place
}

const HANDLING_MS = 20

const { place } = readSettings<EffectsSettings>()
const receiver = createReceiver({
  secret,
  inbox: { queue: await openQueue(place), transactional: true, concurrency: 10, retries: () => 20 },
  onError: () => {}, // A connection that was cut off is seen by what is missing.
})
const table = `${place.name}.effects`
receiver.on('track', async ({ messageId }, { db }) => {
  await db?.query(`INSERT INTO ${table} VALUES ($1)`, [messageId])
  await db?.query('SELECT pg_sleep($1)', [(Math.random() * HANDLING_MS) / 1_000])
  await db?.query(`UPDATE ${table}_count SET n = n + 1 WHERE part = $1`, [Math.floor(Math.random() * 10)])
})
receiver.start()
answerQuestions({ close: () => process.disconnect() })
sayReady()
