/** A destination on a queue; the id of each message goes into the journal when it is queued. */

import { createDestination } from '../../../src/sender.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { openJournal } from '../journal.ts'
import { openQueue, type Place } from '../place.ts'
import { answerQuestions, readSettings, sayReady } from './answers.ts'

export interface DestinationSettings {
  readonly place: Place
  readonly url: string
  readonly journal: string
  readonly by: string
  readonly messages: number
}

const { place, url, journal, by, messages } = readSettings<DestinationSettings>()
const LOOPS = 10

const write = openJournal(journal, by)
const queue = await openQueue(place)
const destination = createDestination({
  webhooks: [{ url }],
  sharedSecret: 'secret',
  queue,
  random: () => 0, // The shortest delays.
  onAttempt: () => {},
})

let count = 0
async function send(): Promise<void> {
  while (count < messages) {
    const id = `${by}-${count++}`
    const { queued } = await destination.send({ ...fixtures.track, messageId: id })
    if (queued) write(id)
  }
}

/** All dead letters, page by page. */
async function listDeadLetters(): Promise<string[]> {
  const ids: string[] = []
  for (let after: string | undefined; ; ) {
    const page = await destination.deadLetters(after === undefined ? {} : { after })
    if (page.length === 0) return ids
    for (const { message, reason } of page) ids.push(`${message?.messageId} ${reason}`)
    after = page.at(-1)?.id
  }
}

answerQuestions({
  counts: () => queue.counts(),
  deadLetters: listDeadLetters,
  urls: async () => (await destination.health()).urls,
  async close() {
    await destination.close({ graceMs: 5_000 })
    process.disconnect()
  },
})
sayReady()
await Promise.all(Array.from({ length: LOOPS }, send))
