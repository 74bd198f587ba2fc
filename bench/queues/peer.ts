/** What somebody would pick for a SQLite queue instead: plainjob, over node:sqlite. The same three things with either. */

import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import type { Connection } from 'plainjob'
import { defineQueue, defineWorker } from 'plainjob'
import type { Contender } from '../contender.ts'
import { trackMessage } from '../message.ts'
import { createCountdown } from '../parallel.ts'
import { openContender as openDrain } from './drain.ts'
import { openQueue, type Place } from './place.ts'

/** One job, and the next when that is stored; 100 in one call; or done by a handler that does nothing. */
export type Work = 'one by one' | '100 in a call' | 'drain'
/** What is picked: `sqliteQueue`, or plainjob with its own setting or one that survives a power cut. */
export type Pick = 'sqliteQueue' | 'plainjob, NORMAL' | 'plainjob, FULL'

const body = trackMessage(1024)
const AT_ONCE = 100
const silent = { error() {}, warn() {}, info() {}, debug() {} }

export async function openContender(place: Place, pick: Pick, work: Work): Promise<Contender> {
  return pick === 'sqliteQueue' ? ours(place, work) : theirs(place.at, pick, work)
}

async function ours(place: Place, work: Work): Promise<Contender> {
  if (work === 'drain') return openDrain(place, 'queue')
  const queue = await openQueue(place)
  const size = work === 'one by one' ? 1 : AT_ONCE
  const jobs = () => Array.from({ length: size }, () => ({ id: randomUUID(), body }))
  return {
    async run(messages) {
      for (let done = 0; done < messages; done += size) await queue.push(jobs())
    },
  }
}

function theirs(path: string, pick: Pick, work: Work): Contender {
  const database = new DatabaseSync(path)
  // The text as it is: no JSON is made of it.
  const queue = defineQueue({ connection: connectionOf(database, path), logger: silent, serializer: String })
  if (pick === 'plainjob, FULL') database.exec('PRAGMA synchronous = FULL')
  const text = Buffer.from(body).toString()
  const bulk = (): unknown =>
    queue.addMany(
      'job',
      Array.from({ length: AT_ONCE }, () => text),
    )
  if (work !== 'drain') {
    const [size, add] = work === 'one by one' ? [1, () => queue.add('job', text)] : [AT_ONCE, bulk]
    return {
      async run(messages) {
        for (let done = 0; done < messages; done += size) add()
      },
    }
  }
  const countdown = createCountdown()
  return {
    async prepare(messages) {
      for (let done = 0; done < messages; done += AT_ONCE) bulk()
    },
    async run(messages) {
      const over = countdown.start(messages)
      const worker = defineWorker('job', countdown.tick, { queue, logger: silent })
      const ended = worker.start()
      await over
      await worker.stop()
      await ended
    },
  }
}

/** As `better()` of plainjob makes one of better-sqlite3. */
function connectionOf(database: DatabaseSync, filename: string): Connection {
  const transaction = (run: (...given: unknown[]) => unknown) => {
    const begin =
      (how: string) =>
      (...given: unknown[]): unknown => {
        database.exec(`BEGIN ${how}`)
        const result = run(...given)
        database.exec('COMMIT')
        return result
      }
    return Object.assign(begin('DEFERRED'), { immediate: begin('IMMEDIATE') })
  }
  return {
    driver: 'better-sqlite3',
    filename,
    pragma: (text) => database.exec(`PRAGMA ${text}`),
    exec: (text) => database.exec(text),
    prepare: (text) => database.prepare(text) as never,
    transaction: transaction as never,
    close: () => database.close(),
  }
}
