/** Posts undelivered calls when the process exits on its own, and reports on stderr how many are lost. */

import { writeSync } from 'node:fs'
import { showCount } from './batch-result.ts'

export interface Undelivered {
  readonly size: number
  /** Posts the calls for a limited time, during which the process stays alive. Never rejects. */
  post(): Promise<unknown>
}

/** The clients with undelivered calls. The value is true once `postAll` has made the client post its calls. */
const watched = new Map<Undelivered, boolean>()

/** Watches a client until {@link unwatch} is called. Posts the client's calls before the process ends by itself. */
export function watch(client: Undelivered): void {
  if (watched.has(client)) return
  // `once` is used because a worker thread emits `exit` twice.
  if (watched.size === 0) process.on('beforeExit', postAll).once('exit', reportLost)
  // A listener of `beforeExit` may record a call after `postAll` has run. A new turn of the event loop makes Node.js emit the event again.
  setImmediate(() => {})
  watched.set(client, false)
}

export function unwatch(client: Undelivered): void {
  if (watched.delete(client) && watched.size === 0) process.off('beforeExit', postAll).off('exit', reportLost)
}

/** Makes each client post its calls once, although Node.js emits `beforeExit` again after each such post. */
function postAll(): void {
  for (const [client, isPosted] of watched) {
    if (isPosted) continue
    watched.set(client, true)
    void client.post()
  }
}

/** Writes synchronously, because the process exits now. */
function reportLost(): void {
  let lost = 0
  for (const { size } of watched.keys()) lost += size
  const advice = 'Call `await client.close()` before the process ends or calls process.exit().'
  try {
    writeSync(
      2,
      `hookline: ${showCount(lost, 'call')} not delivered: The process ended while the client was open. ${advice}\n`,
    )
  } catch {} // Stderr is closed or full.
}
