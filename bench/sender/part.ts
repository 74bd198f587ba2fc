/** What sending costs: a sender, and destinations. */

import { withPlaces } from '../queues/places.ts'
import { compare, figures, type Plan, type RoundOptions } from '../rounds.ts'
import type { DestinationSetting } from './destination.ts'
import { withEndpoint } from './endpoint-process.ts'
import type { SenderKind } from './sender.ts'

const sender = new URL('sender.ts', import.meta.url)

/** `sender.send()` to one URL, against the cheapest that undici can do. */
export async function compareSender(options: RoundOptions): Promise<void> {
  await withEndpoint((endpoint) => {
    const entry = (kind: SenderKind) => (checkout?: string) => endpoint.start(sender, [kind], checkout)
    const plan: Plan = {
      entries: {
        bare: { start: entry('bare') },
        floor: { start: entry('floor') },
        sender: { start: entry('sender'), isOurs: true },
      },
      rows: [
        { of: 'sender', to: 'floor', figure: figures.cpu, atMost: 1 },
        { of: 'sender', to: 'bare', figure: figures.rate, atLeast: 0.8 },
        { of: 'floor', to: 'bare', figure: figures.rate },
        { of: 'sender', figure: figures.gc, atMost: 1 },
        { of: 'sender', figure: figures.pause, atMost: 2 },
        { of: 'floor', figure: figures.gc },
        { of: 'floor', figure: figures.pause },
      ],
    }
    return compare('sender.send(), one URL, 50 at a time, signed, 1 KB', [plan], options)
  })
}

/** A destination in memory against the sender, in a SQLite file against memory, and beside one whose endpoint hangs. */
export async function compareDestination(options: RoundOptions): Promise<void> {
  await withPlaces((newPlace) =>
    withEndpoint((endpoint) => {
      const destination = new URL('destination.ts', import.meta.url)
      const entry = (setting: () => DestinationSetting) => (checkout?: string) =>
        endpoint.start(destination, [setting()], checkout)
      const plan: Plan = {
        entries: {
          sender: { start: (checkout) => endpoint.start(sender, ['sender'], checkout), isOurs: true },
          memory: { start: entry(() => ({})), isOurs: true },
          SQLite: { start: entry(() => ({ place: newPlace('sqlite') })), isOurs: true },
          'beside a dead one': { start: entry(() => ({ besideDead: true })) },
        },
        rows: [
          { of: 'memory', to: 'sender', figure: figures.cpu, atMost: 1.15 },
          { of: 'SQLite', to: 'memory', figure: figures.cpu, atMost: 1.5 },
          { of: 'beside a dead one', to: 'memory', figure: figures.rate, atLeast: 0.9 },
        ],
      }
      return compare('A destination, 50 at a time', [plan], options)
    }),
  )
}
