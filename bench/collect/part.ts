/** What the collector costs a message, and each further destination of a source. */

import { SERVER_CORE } from '../pin.ts'
import { compare, figures, type RoundOptions } from '../rounds.ts'
import { startRunner } from '../start.ts'
import type { CollectorKind } from './collector.ts'

/** Prints CPU time a message, in batches of 20 messages of 1 KB, without HTTP. */
export async function compareCollector(options: RoundOptions): Promise<void> {
  const entry = (kind: CollectorKind) => (checkout?: string) =>
    startRunner('collector', [kind], { core: SERVER_CORE, checkout })
  const plan = {
    entries: {
      'JSON.parse': { start: entry('parse') },
      collector: { start: entry('counting'), isOurs: true },
      'one destination': { start: entry(1), isOurs: true },
      'five destinations': { start: entry(5), isOurs: true },
    },
    rows: [
      { of: 'collector', to: 'JSON.parse', figure: figures.cpu, atMost: 2.6 },
      { of: 'one destination', to: 'JSON.parse', figure: figures.cpu },
      { of: 'five destinations', to: 'one destination', figure: figures.cpu, atMost: 1.3 },
    ],
  } as const
  await compare('The collector in process, batches of 20', [plan], options)
}
