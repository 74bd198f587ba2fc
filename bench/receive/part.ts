/** What one `receiver.receive()` costs beyond its floor, and with many event names and audiences. */

import { SERVER_CORE } from '../pin.ts'
import { compare, figures, type Plan, type RoundOptions } from '../rounds.ts'
import { startRunner } from '../start.ts'
import type { ReceiverKind } from './receiver.ts'

const MAX_CPU_OF_MANY = 1.2
/** Measured without the package. */
const BARE = /^(floor|two hashes|createHmac)/

/** Prints CPU time a call. */
export async function compareReceivers(options: RoundOptions): Promise<void> {
  const plans = [
    planOf('two hashes', 'createHmac'),
    planOf('floor', 'track'),
    planOf('floor 10 KB', 'track 10 KB'),
    planOf('track', 'event names', MAX_CPU_OF_MANY),
    planOf('identify', 'audiences', MAX_CPU_OF_MANY),
  ]
  await compare(
    'An HMAC by createHmac and by two hashes; receive(), in process: track of 1 KB and 10 KB; with 1000 event names; 1000 audiences',
    plans,
    options,
  )
}

function planOf(baseline: ReceiverKind, of: ReceiverKind, atMost?: number): Plan {
  const entry = (kind: ReceiverKind) => ({
    start: (checkout?: string) =>
      startRunner(new URL('receiver.ts', import.meta.url), [kind], { core: SERVER_CORE, checkout }),
    ...(BARE.test(kind) ? {} : ({ isOurs: true } as const)),
  })
  return {
    entries: { [baseline]: entry(baseline), [of]: entry(of) },
    rows: [{ of, to: baseline, figure: figures.cpu, ...(atMost === undefined ? {} : { atMost }) }],
    messages: 4000,
  }
}
