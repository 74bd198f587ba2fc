/** Deletes jobs of a queue, in the way that it is asked for. */

import { openQueue, type Place } from '../place.ts'
import { answerQuestions, readSettings, sayReady } from './answers.ts'

export interface DropperSettings {
  readonly place: Place
  /** The dead letters to drop by their ids. */
  readonly ids: readonly string[]
  readonly body: string
}

const { place, ids, body } = readSettings<DropperSettings>()
const queue = await openQueue(place)
await queue.deadLetters() // It is connected.

answerQuestions({
  'drop ids': () => queue.drop(ids),
  'drop all': () => queue.drop('all'),
  forget: () => queue.forget((job) => Buffer.from(job.body).toString() === body),
})
sayReady()
