/** Records calls with a client that it never closes, says how many, and ends. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { createClient } from '../../../src/client.ts'
import { readSettings } from './answers.ts'

export interface ClientSettings {
  readonly endpoint: string
  readonly how: 'falls off' | 'exits' | 'throws'
  readonly calls: number
  /** When it ends, in milliseconds, unless it has recorded all calls before. */
  readonly afterMs: number
}

const { endpoint, how, calls, afterMs } = readSettings<ClientSettings>()
const client = createClient('key', { endpoint, flushAt: 7 })
const end = performance.now() + afterMs
let recorded = 0
while (recorded < calls && performance.now() < end) {
  client.track({ userId: 'user-1', event: how })
  recorded += 1
  await nextTurn()
}
process.stdout.write(`${recorded}`)
if (how === 'exits') process.exit()
if (how === 'throws') throw new Error('a bug')
