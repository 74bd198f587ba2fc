/** The days that are simulated, as episodes in which an endpoint misbehaves, and what each of them did. */

import { type Behaviour, createWorld, type Sample, simulate } from './world.ts'

export const MINUTE = 60_000
export const HOUR: number = 60 * MINUTE
const UP: Behaviour = { status: 200, afterMs: 20 }
const DOWN: Behaviour = { status: 503, afterMs: 20 }

/** The posts a second that an endpoint bears that is up: 50 at a time, 20 ms each. */
export const CAPACITY = 2_500

/** A part of the day in which an endpoint misbehaves. Times are in milliseconds. */
export interface Episode {
  readonly name: string
  /** For a picture. */
  readonly label: string
  readonly from: number
  readonly to: number
  /** What the endpoint does so many milliseconds after `from`; undefined: it does not answer. */
  readonly behave: (ms: number) => Behaviour | undefined
}

export interface Day {
  readonly hours: number
  /** How many URLs the destination has; the last one misbehaves. */
  readonly urls: number
  readonly episodes: readonly Episode[]
}

/** An episode that begins at this hour. */
export function episode(
  name: string,
  label: string,
  hour: number,
  ms: number,
  behave: Episode['behave'] = () => DOWN,
): Episode {
  return { name, label, from: hour * HOUR, to: hour * HOUR + ms, behave }
}

const flap = (ms: number): Behaviour => (ms % MINUTE < MINUTE / 2 ? DOWN : UP)

export const DAY: Day = {
  hours: 24,
  urls: 1,
  episodes: [
    episode('503 for a minute', '1 min', 1, MINUTE),
    episode('503 for 10 minutes', '10 min', 2, 10 * MINUTE),
    episode('503 for an hour', '1 hour', 3, HOUR),
    episode('503 for 4 hours', 'down for 4 hours', 6, 4 * HOUR),
    episode('down and up, half a minute each, for an hour', 'flapping', 15, HOUR, flap),
    episode('answers after 3 s, for 10 minutes', 'slow', 18, 10 * MINUTE, () => ({ status: 200, afterMs: 3_000 })),
    episode('hangs for half an hour', 'hangs', 20, 30 * MINUTE, () => undefined),
  ],
}

export const LONGER_THAN_THE_WINDOW: Day = {
  hours: 9,
  urls: 1,
  episodes: [episode('503 for 6 hours', 'down for 6 hours', 1, 6 * HOUR)],
}

export const ONE_OF_THREE: Day = {
  hours: 2,
  urls: 3,
  episodes: [episode('one of three URLs: 503 for an hour', 'one of three', 0.5, HOUR)],
}

/** Simulates a day. */
export function runDay({ hours, urls, episodes }: Day, perSecond: number, seed: number): Promise<readonly Sample[]> {
  const plan = (ms: number, url: number): Behaviour | undefined => {
    if (url !== urls - 1) return UP
    const current = episodes.find(({ from, to }) => ms >= from && ms < to)
    return current === undefined ? UP : current.behave(ms - current.from)
  }
  return simulate(createWorld({ perSecond, urls, plan, seed }), hours * HOUR)
}

/** What an episode did until the next one. */
export interface Effect {
  readonly posts: number
  /** Posts a message that arrived, in the episode. */
  readonly postsPerArrival: number
  readonly mostWaiting: number
  readonly mostOldestMs: number
  readonly mostMb: number
  /** Of what waited when it ended and arrived in the 5 minutes after, how much was delivered in them: from 0 to 1. */
  readonly sentSoon: number
  /** The same, of what the endpoint bears in 5 minutes when that is less. */
  readonly sentSoonOfPossible: number
  /** How long it took until no more than two seconds' messages waited, in milliseconds; undefined: not until the next episode. */
  readonly caughtUpMs: number | undefined
  readonly late: number
  readonly failed: number
  /** Failed without an attempt. */
  readonly untried: number
}

/** Says what an episode of a day did. */
export function findEffect({ from, to }: Episode, day: Day, samples: readonly Sample[], perSecond: number): Effect {
  const until = day.episodes.find((other) => other.from > from)?.from ?? day.hours * HOUR
  const at = (ms: number): Sample => samples.findLast((sample) => sample.at <= ms) as Sample
  const [before, end, soon, last] = [at(from), at(to), at(to + 5 * MINUTE), at(until)]
  const during = samples.filter((sample) => sample.at >= from && sample.at <= until)
  const most = (read: (sample: Sample) => number): number => Math.max(...during.map(read))
  const due = end.waiting + soon.arrived - end.arrived
  const sent = soon.delivered - end.delivered
  const caughtUp = during.find((sample) => sample.at >= to && sample.waiting <= 2 * perSecond)
  return {
    posts: end.posts - before.posts,
    postsPerArrival: (end.posts - before.posts) / (end.arrived - before.arrived),
    mostWaiting: most(({ waiting }) => waiting),
    mostOldestMs: most(({ oldestMs }) => oldestMs),
    mostMb: most(({ mb }) => mb),
    sentSoon: sent / due,
    sentSoonOfPossible: sent / Math.min(due, CAPACITY * 300),
    caughtUpMs: caughtUp && caughtUp.at - to,
    late: last.late - before.late,
    failed: last.failed - before.failed,
    untried: last.untried - before.untried,
  }
}
