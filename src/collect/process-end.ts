/** What happens to undelivered calls when the process ends: they are posted, or else counted on stderr. */

import { writeSync } from 'node:fs'
import { count } from './batch-result.ts'

export interface Undelivered {
  readonly size: number
  /** Posts them, for a limited time, in which the process stays alive. Never rejects. */
  post(): Promise<unknown>
}

/** The clients with undelivered calls, and whether these have been posted because the process ends. */
const watched = new Map<Undelivered, boolean>()

export function watch(client: Undelivered): void {
  if (watched.has(client)) return
  // Once: a worker thread emits `exit` twice.
  if (watched.size === 0) process.on('beforeExit', postAll).once('exit', reportLost)
  setImmediate(() => {}) // What a listener of beforeExit records would come after the event: another turn brings it again.
  watched.set(client, false)
}

export function unwatch(client: Undelivered): void {
  if (watched.delete(client) && watched.size === 0) process.off('beforeExit', postAll).off('exit', reportLost)
}

/** Nothing keeps the process alive any more. Posts once: the event comes again after each wait. */
function postAll(): void {
  for (const [client, isPosted] of watched) {
    if (isPosted) continue
    watched.set(client, true)
    void client.post()
  }
}

/** The process ends now: nothing can be posted any more, and only synchronous writes are done. */
function reportLost(): void {
  let lost = 0
  for (const { size } of watched.keys()) lost += size
  const advice = 'Call `await client.close()` first, also before process.exit().'
  try {
    writeSync(2, `hookline: ${count(lost, 'call')} not delivered: The process ended with the client open. ${advice}\n`)
  } catch {} // Stderr is closed or full.
}
