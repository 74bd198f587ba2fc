/** Waits for what sockets, timers and processes bring about, by looking again and again, until shortly after any test is over. */

import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'

const TURNS = 50
const LOOK_MS = 2
const LIMIT_MS = 60_000

export async function until(isTrue: () => boolean | Promise<boolean>, limitMs: number = LIMIT_MS): Promise<void> {
  const end = performance.now() + limitMs
  for (let looks = 0; !(await isTrue()); looks += 1) {
    if (performance.now() > end) throw new Error(`It did not come true within ${limitMs} ms.`)
    await (looks < TURNS ? nextTurn() : delay(LOOK_MS))
  }
}
