/** What an inspector costs the receiver that it watches: with its page closed, and with one open. */

import { SERVER_CORE } from '../pin.ts'
import { compare, figures, type RoundOptions } from '../rounds.ts'
import { startServer } from '../start.ts'
import type { Watch } from './watched.ts'

/** A turn that begins after a pause keeps its first 200 messages, as a developer wants: this is about a load that lasts. */
const TURN = 20_000

/** Prints CPU time a request of node:http. */
export async function compareInspectors(options: RoundOptions): Promise<void> {
  const entry = (watch: Watch) => ({
    start: (checkout?: string) => startServer('watched', [watch], { core: SERVER_CORE, checkout }),
    isOurs: true as const,
  })
  const plan = {
    entries: {
      'no inspector': entry('no inspector'),
      'page closed': entry('page closed'),
      'page open': entry('page open'),
    },
    messages: TURN,
    rows: [
      { of: 'page closed', to: 'no inspector', figure: figures.cpu, atMost: 1.3 },
      { of: 'page open', to: 'no inspector', figure: figures.cpu },
    ],
  }
  await compare('A request with a track message of 1 KB, 50 connections, with an inspector', [plan], options)
}
