/** What a queue costs: draining, many waiting, many queues in a file, groups, and what somebody would pick instead. */

import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { compare, type Figure, figures, type Plan, type RoundOptions, type Row } from '../rounds.ts'
import { startRunner } from '../start.ts'
import { printTable } from '../table.ts'
import type { DrainKind } from './drain.ts'
import type { Pick, Work } from './peer.ts'
import { type EngineName, openQueue, type Place, titles } from './place.ts'
import { isThere, withPlaces } from './places.ts'
import type { PushSetting } from './pushes.ts'

const drains = {
  sqlite: { figure: figures.perCpu, atLeast: 0.6 },
  bullmq: { figure: figures.rate, atLeast: 0.85 },
  'pg-boss': { figure: figures.rate, atLeast: 0.85 },
} as const

/** Each engine's queue against the engine in the fewest calls that lose nothing. */
export async function compareDrains(engines: readonly EngineName[], options: RoundOptions): Promise<void> {
  await withPlaces(async (newPlace) => {
    const plans: Plan[] = []
    for (const engine of engines) {
      if (!(await isThere(engine))) {
        console.log(`${titles[engine]} is left out: no server answers.\n`)
        continue
      }
      const [bare, ours] = [`${titles[engine]}, bare`, titles[engine]]
      const place = () => newPlace(engine)
      plans.push({
        entries: {
          [bare]: { start: startDrain(place, 'bare') },
          [ours]: { start: startDrain(place, 'queue'), isOurs: true },
        },
        rows: [
          { of: ours, to: bare, ...drains[engine] },
          ...(engine === 'sqlite' ? [{ of: ours, to: bare, figure: figures.rate }] : []),
        ],
      })
    }
    await compare('Drain, 100 at a time, handlers that do nothing', plans, options)
  })
}

/** 5000 jobs that wait, each of a group of its own, against jobs without groups. BullMQ has none. */
export async function compareGroups(engines: readonly EngineName[], options: RoundOptions): Promise<void> {
  await withPlaces(async (newPlace) => {
    const plans: Plan[] = []
    for (const engine of engines) {
      if (engine === 'bullmq' || !(await isThere(engine))) continue
      const [without, ours] = [titles[engine], `${titles[engine]}, groups`]
      const place = () => newPlace(engine)
      plans.push({
        entries: {
          [without]: { start: startDrain(place, 'queue'), isOurs: true },
          [ours]: { start: startDrain(place, 'in turn'), isOurs: true },
        },
        rows: [
          { of: ours, to: without, figure: figures.cpu, atMost: 1.3 },
          { of: ours, to: without, figure: figures.rate },
        ],
        messages: 5_000,
        warmUp: 5_000,
      })
    }
    await compare('Drain in turn, 100 at a time, handlers that do nothing', plans, options)
  })
}

const MAX_OF_DEPTH = 1.25

/** A push with few and many waiting, under random ids and under ids that begin with the time. */
export async function compareDepths(options: RoundOptions): Promise<void> {
  await withPlaces((newPlace) => {
    const entry = (depth: number, ids: 'random' | 'timed') => ({
      start: startPushes(() => newPlace('sqlite'), { depth, ids }),
      isOurs: true as const,
    })
    const row = (of: string, to: string): Row[] => [
      { of, to, figure: figures.cpu, atMost: MAX_OF_DEPTH },
      { of, to, figure: figures.rate },
    ]
    const plan: Plan = {
      entries: {
        '1000, random ids': entry(1000, 'random'),
        '300 000, random ids': entry(300_000, 'random'),
        '1 000 000, random ids': entry(1_000_000, 'random'),
        '1000, timed ids': entry(1000, 'timed'),
        '1 000 000, timed ids': entry(1_000_000, 'timed'),
      },
      rows: [
        ...row('300 000, random ids', '1000, random ids'),
        ...row('1 000 000, random ids', '1000, random ids'),
        ...row('1 000 000, timed ids', '1000, timed ids'),
      ],
      messages: 2500,
    }
    return compare('A push into SQLite by how many wait, 50 at a time', [plan], options)
  })
}

/** 100 queues of a file against one: 50 pushers, each push to the next queue. */
export async function compareQueues(options: RoundOptions): Promise<void> {
  const many = 100
  await withPlaces((newPlace) => {
    const entry = (queues: number) => ({
      start: startPushes(() => newPlace('sqlite'), { queues }),
      isOurs: true as const,
    })
    const plan: Plan = {
      entries: { 'one queue': entry(1), [`${many} queues`]: entry(many) },
      rows: [
        { of: `${many} queues`, to: 'one queue', figure: figures.rate, atLeast: 0.7 },
        { of: `${many} queues`, to: 'one queue', figure: figures.cpu },
        { of: `${many} queues`, figure: failed, atMost: 0 },
        { of: `${many} queues`, beyond: 'one queue', figure: rss(many - 1), atMost: 0.2 },
      ],
      messages: 4000,
    }
    return compare('Pushes into the queues of one SQLite file, 50 at a time', [plan], options)
  })
}

const failed: Figure = {
  title: 'pushes that failed',
  digits: 0,
  over: ({ failed = Number.NaN }) => failed,
  under: () => 1,
}

const rss = (queues: number): Figure => ({
  title: 'resident memory of each, MB',
  digits: 3,
  over: ({ rss = Number.NaN }) => rss / 1e6,
  under: () => queues,
})

/** What somebody would pick instead, on the disk and in a file in memory. plainjob has no dedupe and no retries. */
export async function comparePeers(options: RoundOptions): Promise<void> {
  for (const folder of [tmpdir(), '/dev/shm']) {
    await withPlaces(async (newPlace) => {
      for (const work of ['one by one', '100 in a call', 'drain'] as const satisfies readonly Work[]) {
        const entry = (pick: Pick) => (checkout?: string) =>
          startRunner(new URL('peer.ts', import.meta.url), [newPlace('sqlite', folder), pick, work], { checkout })
        const plan: Plan = {
          entries: {
            sqliteQueue: { start: entry('sqliteQueue'), isOurs: true },
            'plainjob, NORMAL': { start: entry('plainjob, NORMAL') },
            'plainjob, FULL': { start: entry('plainjob, FULL') },
          },
          rows: ['plainjob, NORMAL', 'plainjob, FULL'].flatMap((to): Row[] => [
            { of: 'sqliteQueue', to, figure: figures.cpu, ...(work === '100 in a call' && { atMost: 2 }) },
            { of: 'sqliteQueue', to, figure: figures.rate },
          ]),
          messages: 2000,
          warmUp: 6000,
        }
        await compare(`sqliteQueue and plainjob, ${work}, 1 KB, in ${folder}`, [plan], options)
      }
    })
  }
}

const PUSHES = 200
/** Between two pushes, and at most as much again by chance: no push meets a poll always at the same moment. */
const PAUSE_MS = 30

/** How soon another process learns of a job, and what that process costs when it has nothing to do. */
export async function measureWakes(engines: readonly EngineName[]): Promise<void> {
  const rows: string[][] = []
  for (const engine of engines) {
    if (await isThere(engine))
      rows.push([titles[engine], ...(await withPlaces((newPlace) => measureWake(newPlace(engine))))])
  }
  console.log('## From before a push to its handler in another process, and that process when idle\n')
  printTable(['', 'median, ms', '99th, ms', 'idle, % of a core'], rows)
}

async function measureWake(place: Place): Promise<string[]> {
  const queue = await openQueue(place)
  const runner = await startRunner(new URL('wake.ts', import.meta.url), [place])
  async function pushes(count: number) {
    const turn = runner.turn(count)
    for (let pushed = 0; pushed < count; pushed++) {
      await delay(PAUSE_MS * (1 + Math.random()))
      const body = Buffer.alloc(1024)
      body.writeBigInt64LE(process.hrtime.bigint())
      await queue.push([{ id: randomUUID(), body }])
    }
    return turn
  }
  await pushes(20)
  const { median = Number.NaN, p99 = Number.NaN } = await pushes(PUSHES)
  const { cpu, seconds } = await runner.turn(0)
  await runner.stop()
  await queue.close({ graceMs: 0 })
  return [median.toFixed(1), p99.toFixed(1), ((100 * cpu) / 1e6 / seconds).toFixed(2)]
}

function startDrain(place: () => Place, kind: DrainKind) {
  return (checkout?: string) => startRunner(new URL('drain.ts', import.meta.url), [place(), kind], { checkout })
}

function startPushes(place: () => Place, setting: PushSetting) {
  return (checkout?: string) => startRunner(new URL('pushes.ts', import.meta.url), [place(), setting], { checkout })
}
