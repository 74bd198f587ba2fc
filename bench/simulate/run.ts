/**
 * `npm run simulate`: a day of a destination on a virtual clock, with outages, a flapping, a slow and a hanging endpoint; an
 * outage that is longer than the four hours; and an hour with one of three URLs down. `-- --rate 500 --seed 1` changes the messages a second and the chance; `--picture FILE` draws it.
 */

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { printTable } from '../table.ts'
import { drawDay } from './picture.ts'
import { type Behaviour, createWorld, type Plan, type Sample, simulate } from './world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const UP: Behaviour = { status: 200, afterMs: 20 }
const DOWN: Behaviour = { status: 503, afterMs: 20 }

/** A part of the day in which an endpoint misbehaves. Times are in milliseconds. */
export interface Episode {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly behave: (ms: number) => Behaviour | undefined
}

function episode(name: string, hour: number, ms: number, behave: Episode['behave']): Episode {
  return { name, from: hour * HOUR, to: hour * HOUR + ms, behave }
}

const DAY: readonly Episode[] = [
  episode('503 for a minute', 1, MINUTE, () => DOWN),
  episode('503 for 10 minutes', 2, 10 * MINUTE, () => DOWN),
  episode('503 for an hour', 3, HOUR, () => DOWN),
  episode('503 for 4 hours', 6, 4 * HOUR, () => DOWN),
  episode('down and up, half a minute each, for an hour', 15, HOUR, (ms) => (ms % MINUTE < MINUTE / 2 ? DOWN : UP)),
  episode('answers after 3 s, for 10 minutes', 18, 10 * MINUTE, () => ({ status: 200, afterMs: 3_000 })),
  episode('hangs for half an hour', 20, 30 * MINUTE, () => undefined),
]
const LONGER_THAN_THE_WINDOW = episode('503 for 10 hours', 1, 10 * HOUR, () => DOWN)
const ONE_OF_THREE = episode('one of three URLs: 503 for an hour', 1, HOUR, () => DOWN)

const options = {
  rate: { type: 'string', default: '50' },
  seed: { type: 'string', default: '1' },
  picture: { type: 'string' },
} as const
const { values } = parseArgs({ options })
const [perSecond, seed] = [Number(values.rate), Number(values.seed)]
if (!(perSecond > 0)) throw new TypeError('--rate: must be a number above 0.')
if (!Number.isInteger(seed)) throw new TypeError('--seed: must be a whole number.')

const started = performance.now()
const inEpisode = (ms: number, { from, to }: Episode): boolean => ms >= from && ms < to
const day = await run(1, DAY, 24, (ms) => DAY.find((each) => inEpisode(ms, each)))
const long = await run(1, [LONGER_THAN_THE_WINDOW], 14, (ms) => {
  return inEpisode(ms, LONGER_THAN_THE_WINDOW) ? LONGER_THAN_THE_WINDOW : undefined
})
const neighbours = await run(3, [ONE_OF_THREE], 3, (ms, url) => {
  return url === 1 && inEpisode(ms, ONE_OF_THREE) ? ONE_OF_THREE : undefined
})
const seconds = Math.round((performance.now() - started) / 1_000)
console.log(`${perSecond} messages a second, seed ${seed}, simulated in ${seconds} s.`)
console.log('The endpoint answers after 20 ms, so 50 posts at a time are at most 2500 a second.\n')
const HEAD = [
  'endpoint',
  'posts per arrival',
  'most waiting',
  'MB',
  'sent 5 min after',
  'caught up',
  'failed',
  'untried',
]
printTable(HEAD, [...day.rows, ...long.rows, ...neighbours.rows])
const last = day.samples.at(-1) as Sample
console.log(
  `The whole day: ${last.arrived} arrived, ${last.delivered} delivered, ${last.failed} failed, ${last.posts} posts.`,
)
if (values.picture !== undefined) writeFileSync(values.picture, drawDay(day.samples, DAY))

/** Simulates so many hours. `find` says which episode a URL is in at a time. */
async function run(
  urls: number,
  episodes: readonly Episode[],
  hours: number,
  find: (ms: number, url: number) => Episode | undefined,
): Promise<{ readonly rows: readonly string[][]; readonly samples: readonly Sample[] }> {
  const plan: Plan = (ms, url) => {
    const current = find(ms, url)
    return current === undefined ? UP : current.behave(ms - current.from)
  }
  const samples = await simulate(createWorld({ perSecond, urls, plan, seed }), hours * HOUR)
  return {
    rows: episodes.map((each, index) => rowOf(each, episodes[index + 1]?.from ?? hours * HOUR, samples)),
    samples,
  }
}

/** What an episode did, up to the next one. */
function rowOf({ name, from, to }: Episode, until: number, samples: readonly Sample[]): string[] {
  const at = (ms: number): Sample => samples.findLast((sample) => sample.at <= ms) as Sample
  const [before, end, later, last] = [at(from), at(to), at(to + 5 * MINUTE), at(until)]
  const during = samples.filter((sample) => sample.at >= from && sample.at <= until)
  const arrived = later.arrived - end.arrived
  const sent = (later.delivered - end.delivered) / (end.waiting + arrived)
  const caughtUp = during.find((sample) => sample.at >= to && sample.waiting <= 2 * perSecond)
  return [
    name,
    ((end.posts - before.posts) / (end.arrived - before.arrived)).toFixed(3),
    String(Math.max(...during.map(({ waiting }) => waiting))),
    Math.max(...during.map(({ mb }) => mb)).toFixed(0),
    `${(100 * sent).toFixed(1)} %`,
    caughtUp === undefined ? 'not in time' : `${(caughtUp.at - to) / MINUTE} min`,
    String(last.failed - before.failed),
    String(last.untried - before.untried),
  ]
}
