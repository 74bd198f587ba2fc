/**
 * Run as a program, after a build: simulates a day of a destination on a virtual clock, with outages, a flapping, a slow and a hanging
 * endpoint; and at a tenth of the rate an outage that is longer than the four hours, and an hour with one of three URLs down.
 * `--rate 500 --seed 1` changes the messages a second and the chance; `--picture FILE` draws the day.
 */

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { printMachine } from '../machine.ts'
import { printTable } from '../table.ts'
import {
  DAY,
  type Day,
  type Effect,
  type Episode,
  findEffect,
  LONGER_THAN_THE_WINDOW,
  MINUTE,
  ONE_OF_THREE,
  runDay,
} from './days.ts'
import { drawDay } from './picture.ts'
import type { Sample } from './world.ts'

const options = {
  rate: { type: 'string', default: '50' },
  seed: { type: 'string', default: '1' },
  picture: { type: 'string' },
} as const
const { values } = parseArgs({ options })
const [perSecond, seed] = [Number(values.rate), Number(values.seed)]
if (!(perSecond > 0)) throw new TypeError('--rate: must be a number above 0.')
if (!Number.isInteger(seed)) throw new TypeError('--seed: must be a whole number.')

const HEAD = [
  'the endpoint',
  'posts',
  'posts per arrival',
  'most waiting',
  'oldest',
  'MB',
  'sent 5 min after',
  'of what it bears',
  'caught up',
  'late',
  'failed',
  'untried',
]

printMachine()
const started = performance.now()
const whole = await run(DAY, perSecond)
const { arrived, delivered, failed, posts } = whole.at(-1) as Sample
console.log(`The whole day: ${arrived} arrived, ${delivered} delivered, ${failed} failed, ${posts} posts.\n`)
if (values.picture !== undefined) writeFileSync(values.picture, drawDay(whole, DAY, perSecond))
await run(LONGER_THAN_THE_WINDOW, perSecond / 10)
await run(ONE_OF_THREE, perSecond / 10)

/** Simulates a day and prints a row for each of its episodes. */
async function run(day: Day, rate: number): Promise<readonly Sample[]> {
  const samples = await runDay(day, rate, seed)
  const minutes = (performance.now() - started) / MINUTE
  console.log(`${rate} messages a second for ${day.hours} h, seed ${seed}, after ${minutes.toFixed(1)} minutes:\n`)
  printTable(
    HEAD,
    day.episodes.map((episode) => rowOf(episode, findEffect(episode, day, samples, rate))),
  )
  return samples
}

function rowOf({ name }: Episode, effect: Effect): string[] {
  return [
    name,
    String(effect.posts),
    effect.postsPerArrival.toFixed(4),
    String(effect.mostWaiting),
    inMinutes(effect.mostOldestMs),
    effect.mostMb.toFixed(0),
    inPercent(effect.sentSoon),
    inPercent(effect.sentSoonOfPossible),
    effect.caughtUpMs === undefined ? 'not in time' : inMinutes(effect.caughtUpMs),
    String(effect.late),
    String(effect.failed),
    String(effect.untried),
  ]
}

function inMinutes(ms: number): string {
  return `${(ms / MINUTE).toFixed(0)} min`
}

function inPercent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}
