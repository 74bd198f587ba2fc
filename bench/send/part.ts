/** What sending costs: a sender, destinations, and a client. */

import { createSite } from '../durable/site.ts'
import { compare, type Figure, figures, type Plan, type RoundOptions } from '../rounds.ts'
import type { DestinationSetting } from './destination.ts'
import { type Endpoint, startEndpoint } from './endpoint-process.ts'

/** `sender.send()` to one URL, against the cheapest that undici can do. */
export async function compareSender(options: RoundOptions): Promise<void> {
  await beside((endpoint) => {
    const plan = {
      entries: {
        bare: { start: () => endpoint.start('bare') },
        floor: { start: () => endpoint.start('floor') },
        sender: { start: (checkout?: string) => endpoint.start('sender', checkout), isOurs: true },
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
    } as const
    return compare('sender.send(), one URL, 50 at a time, signed, 1 KB', [plan], options)
  })
}

/** A destination in memory against the sender, in a SQLite file against memory, and beside one whose endpoint hangs. */
export async function compareDestination(options: RoundOptions): Promise<void> {
  const sites = [createSite('sqlite'), createSite('sqlite')] as const
  await beside(async (endpoint) => {
    const destination = (setting: DestinationSetting) => (checkout?: string) =>
      endpoint.start('destination', checkout, setting)
    const plan: Plan = {
      entries: {
        sender: { start: (checkout) => endpoint.start('sender', checkout), isOurs: true },
        memory: { start: destination({}), isOurs: true },
        SQLite: {
          start: (checkout) => destination({ place: sites[checkout === undefined ? 0 : 1].place })(checkout),
          isOurs: true,
        },
        'beside a dead one': { start: destination({ besideDead: true }) },
      },
      rows: [
        { of: 'memory', to: 'sender', figure: figures.cpu, atMost: 1.15 },
        { of: 'SQLite', to: 'memory', figure: figures.cpu, atMost: 1.5 },
        { of: 'beside a dead one', to: 'memory', figure: figures.rate, atLeast: 0.9 },
      ],
    }
    await compare('A destination, 50 at a time', [plan], options)
  }).finally(() => Promise.all(sites.map(({ remove }) => remove())))
}

/** The client against Segment's, until all calls are delivered. */
export async function compareClient(options: RoundOptions): Promise<void> {
  await beside((endpoint) => {
    const plan: Plan = {
      entries: {
        Segment: { start: () => endpoint.start('client', undefined, 'segment') },
        client: { start: (checkout) => endpoint.start('client', checkout, 'hookline'), isOurs: true },
      },
      rows: [
        { of: 'client', to: 'Segment', figure: waited, atMost: 0.25 },
        { of: 'client', to: 'Segment', figure: figures.cpu, atMost: 0.3 },
        { of: 'client', to: 'Segment', figure: figures.rate, atLeast: 5 },
      ],
    }
    return compare('client.track() until all are delivered, batches of 20', [plan], options)
  })
}

const waited: Figure = {
  title: 'the caller waits, µs a call',
  digits: 2,
  over: ({ waited = Number.NaN }) => waited,
  under: ({ messages }) => messages,
}

async function beside(use: (endpoint: Endpoint) => Promise<void>): Promise<void> {
  const endpoint = await startEndpoint()
  try {
    await use(endpoint)
  } finally {
    await endpoint.stop()
  }
}
