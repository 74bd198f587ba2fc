/** What an inspector costs the receiver that it watches: with its page closed, and with one open. */

import { SERVER_CORE } from '../pin.ts'
import { compare, figures, type RoundOptions } from '../rounds.ts'
import { startServer } from '../start.ts'
import type { Watch } from './watched.ts'

const MOST_CPU = { 'page closed': 1.3, 'page open': 1.15 } as const

/** Prints CPU time a request of node:http. */
export async function compareInspectors(options: RoundOptions): Promise<void> {
  const entry = (watch: Watch) => ({
    start: (checkout?: string) => startServer('watched', [watch], { core: SERVER_CORE, checkout }),
    isOurs: true as const,
  })
  const watched = Object.entries(MOST_CPU) as [keyof typeof MOST_CPU, number][]
  const plan = {
    entries: {
      'no inspector': entry('no inspector'),
      'page closed': entry('page closed'),
      'page open': entry('page open'),
    },
    rows: watched.map(([of, atMost]) => ({ of, to: 'no inspector', figure: figures.cpu, atMost })),
  }
  await compare('A request with a track message of 1 KB, 50 connections, with an inspector', [plan], options)
}
