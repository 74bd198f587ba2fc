/** A shop: each order is a row and a message, in one transaction. Some transactions are rolled back. */

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { createDestination } from '../../../src/sender.ts'
import { openQueue, type Place } from '../place.ts'
import { answerQuestions, readSettings, sayReady } from './answers.ts'

export interface ShopSettings {
  readonly place: Place
  readonly url: string
  /** How many orders it takes before it says the id of the last one, to be killed: before its commit, or right after. */
  readonly orders: number
  readonly moment: Moment
}

export type Moment = 'inserted' | 'committed'

const { place, url, orders, moment } = readSettings<ShopSettings>()
const LOOPS = 4

const destination = createDestination({ webhooks: [{ url }], queue: await openQueue(place), onAttempt: () => {} })
await destination.deadLetters() // Opens the queue, and its schema.
const pool = new pg.Pool({ connectionString: place.at, max: LOOPS })
await pool.query(`CREATE TABLE IF NOT EXISTS ${place.name}.orders (id text PRIMARY KEY)`)

let count = 0
async function takeOrders(client: pg.PoolClient): Promise<void> {
  for (;;) {
    count += 1
    const isLast = count === orders
    const id = randomUUID()
    await client.query('BEGIN')
    await client.query(`INSERT INTO ${place.name}.orders VALUES ($1)`, [id])
    await destination.track({ userId: 'u', event: 'Order Completed', messageId: id }, { db: client })
    if (isLast && moment === 'inserted') {
      sayReady(id)
      await new Promise(() => {}) // It is killed here.
    }
    await client.query(count % 5 === 0 && !isLast ? 'ROLLBACK' : 'COMMIT')
    if (isLast && moment === 'committed') sayReady(id)
  }
}

answerQuestions({ close: () => process.disconnect() })
await Promise.all(Array.from({ length: LOOPS }, async () => takeOrders(await pool.connect())))
