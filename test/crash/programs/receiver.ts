/** A receiver on node:http with an inbox; its handlers write the id of each message into the journal. */

import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { serve } from '../../../adapters/node.ts'
import { createReceiver } from '../../../src/index.ts'
import { openJournal } from '../journal.ts'
import { openQueue, type Place } from '../place.ts'
import { answerQuestions, listen, readSettings, sayReady } from './answers.ts'

/** The settings from the test. */
export interface ReceiverSettings {
  readonly place: Place
  readonly secret: string
  readonly journal: string
  /** The name of this process in the journal. */
  readonly by: string
  /** How many attempts of a hundred fail, before the id is written. */
  readonly failing: number
  /** Whether it takes one message and never finishes it. */
  readonly holds?: boolean
}

const { place, secret, journal, by, failing, holds = false } = readSettings<ReceiverSettings>()
const RETRY_MS = 20
const HANDLING_MS = 5

const write = openJournal(journal, by)
const queue = await openQueue(place)
const receiver = createReceiver({
  secret,
  inbox: { queue, concurrency: holds ? 1 : 50, retries: () => RETRY_MS },
  onError({ code, message, cause }) {
    const isExpected = ['handler_failed', 'lease_lapsed'].includes(code) || message.includes('the process died')
    if (!isExpected) console.error(`${by}: ${code}: ${message}`, cause)
  },
})
receiver.on('track', async ({ messageId }) => {
  if (holds) {
    write(String(messageId))
    await new Promise(() => {})
  }
  await wait(Math.random() * HANDLING_MS)
  if (Math.random() * 100 < failing) throw new Error('at random')
  write(String(messageId))
})
receiver.start()

const server = createServer(serve(receiver))
answerQuestions({
  counts: () => queue.counts(),
  reasons: async () => (await receiver.deadLetters({ limit: 10_000 })).map(({ reason }) => reason),
  redrive: () => receiver.redrive('all'),
  async close() {
    await receiver.close({ graceMs: 5_000 })
    server.closeAllConnections()
    server.close()
    process.disconnect()
  },
})
sayReady(await listen(server))
