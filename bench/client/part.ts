/** What a client costs the program that records calls, and a collector the server that they arrive at. */

import { SERVER_CORE } from '../pin.ts'
import { compare, type Figure, figures, type Plan, type RoundOptions } from '../rounds.ts'
import { withEndpoint } from '../sender/endpoint-process.ts'
import { startRunner } from '../start.ts'
import type { ClientKind } from './client.ts'
import type { CollectorKind } from './collector.ts'

/** The client against Segment's, until all calls are delivered. */
export async function compareClient(options: RoundOptions): Promise<void> {
  await withEndpoint((endpoint) => {
    const entry = (kind: ClientKind) => (checkout?: string) =>
      endpoint.start(new URL('client.ts', import.meta.url), [kind], checkout)
    const plan: Plan = {
      entries: { Segment: { start: entry('segment') }, client: { start: entry('hookline'), isOurs: true } },
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

/** CPU time a message, in batches of 20 messages of 1 KB, without HTTP; and of each further destination of a source. */
export async function compareCollector(options: RoundOptions): Promise<void> {
  const entry = (kind: CollectorKind) => (checkout?: string) =>
    startRunner(new URL('collector.ts', import.meta.url), [kind], { core: SERVER_CORE, checkout })
  const plan: Plan = {
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
  }
  await compare('The collector in process, batches of 20', [plan], options)
}
