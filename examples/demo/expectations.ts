/** What the demo sends and the outcome expected of each: pure data and checks, so that a test can try wrong outcomes. */

import type { Message } from 'hookline'
import type { Attempt } from 'hookline/sender'

/** The stations of a message. The destination is done when the receiver has stored it; the receiver then calls its handlers. */
export const STATIONS = ['client', 'collector', 'destination', 'receiver'] as const

/** One of them. */
export type Station = (typeof STATIONS)[number]

/** The outcome of a message. */
export interface Outcome {
  /** The stations that it passed, each with the milliseconds since the call. */
  readonly passed: ReadonlyMap<Station, number>
  /** What the handler saw, or why no handler saw it. */
  readonly saw: string
}

/** The expected outcome of a message. */
export interface Expectation {
  /** What it is, for the first column. */
  readonly name: string
  /** The stations that it must pass. */
  readonly stations: readonly Station[]
  readonly saw: string
}

const collected = STATIONS.slice(1)
const synced = STATIONS.slice(2)

/** The seven types, the change of an audience, then one that is forged and one that lost a byte on the way. */
export const expectations: readonly Expectation[] = [
  { name: 'identify', stations: STATIONS, saw: 'user-1 is Ada Lovelace' },
  { name: 'page', stations: STATIONS, saw: 'user-1 looked at /pricing' },
  { name: 'screen', stations: STATIONS, saw: 'user-1 opened Basket on a Pixel 9' },
  { name: 'track', stations: STATIONS, saw: 'user-1: Order Completed, 39.95 EUR' },
  { name: 'group', stations: STATIONS, saw: 'user-1 belongs to Analytical Engines' },
  { name: 'alias', stations: STATIONS, saw: 'anonymous-1 is user-1' },
  { name: 'audience', stations: synced, saw: 'user-1 entered High Value Users' },
  { name: 'delete', stations: collected, saw: 'user-2 wants to be forgotten' },
  { name: 'track, forged', stations: [], saw: '401 signature_mismatch' },
  { name: 'track, truncated', stations: [], saw: '401 signature_mismatch' },
]

/** A message that a demo before this one left behind. */
export function isFromLastTime({ timestamp }: Message, startedAt: number): boolean {
  return timestamp !== undefined && Date.parse(timestamp) < startedAt
}

/** The name of a message of the demo: its type, but for the identify that tells of an audience. */
export function nameOf(message: Message): string {
  const isAudience = message.type === 'identify' && message.traits?.high_value_users !== undefined
  return isAudience ? 'audience' : message.type
}

/** What is wrong with an outcome; nothing, when it came out as it must. */
export function findFaults(expected: Expectation, { passed, saw }: Outcome): string[] {
  const missed = expected.stations.filter((station) => !passed.has(station))
  return [
    ...(saw === expected.saw ? [] : [`expected ${expected.saw}`]),
    ...(missed.length === 0 ? [] : [`did not pass ${missed.join(', ')}`]),
  ]
}

/** What an endpoint answered: `401 signature_mismatch`, `200`, or why there was no answer: `refused`. */
export function toAnswer({ status, error, body }: Attempt): string {
  const code = /"code":"(\w+)"/.exec(body)?.[1]
  return [status ?? error, code].filter((part) => part !== undefined).join(' ')
}
