/** Pushes jobs one after the other, again when one is refused; copies the folder of its file when it is asked to. */

import { randomUUID } from 'node:crypto'
import { cpSync } from 'node:fs'
import { dirname } from 'node:path'
import { openJournal } from '../journal.ts'
import { openQueue, type Place } from '../place.ts'
import { answerQuestions, readSettings, sayReady } from './answers.ts'

export interface PusherSettings {
  readonly place: Place
  readonly journal: string
  readonly copyTo: string
}

const { place, journal, copyTo } = readSettings<PusherSettings>()
const queue = await openQueue(place)
const [notePushed, noteRefused] = [openJournal(journal, 'pushed'), openJournal(journal, 'refused')]

answerQuestions({
  copy: () => cpSync(dirname(place.at), copyTo, { recursive: true }),
})
sayReady()
for (;;) {
  const id = randomUUID()
  await queue.push([{ id, body: Buffer.alloc(500, id) }]).then(
    () => notePushed(id),
    () => noteRefused(id),
  )
}
