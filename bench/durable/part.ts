/** What durability costs: an inbox, draining, many waiting, many queues in a file. */

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compare, type Figure, figures, type Plan, type RoundOptions, type Row, type Runner } from '../rounds.ts'
import { startRunner, startServer } from '../start.ts'
import { median } from '../table.ts'
import type { Pick, Work } from './peer.ts'
import { type EngineName, titles } from './place.ts'
import type { PushSetting } from './pushes.ts'
import { createSite, isThere, type Site } from './site.ts'

/** A SQLite inbox against the same receiver without. No program is pinned but the load: an inbox has a thread of its own. */
export async function compareInboxes(options: RoundOptions): Promise<void> {
  await onSites((site) => {
    const entry = (kind: string) => (checkout?: string) =>
      startServer('inbox', [site('sqlite').place, kind], { checkout })
    const plan: Plan = {
      entries: {
        inline: { start: entry('inline'), isOurs: true },
        inbox: { start: entry('accepting'), isOurs: true },
        'inbox and handlers': { start: entry('working'), isOurs: true },
      },
      rows: [
        { of: 'inbox', to: 'inline', figure: figures.cpu, atMost: 1.35 },
        { of: 'inbox', to: 'inline', figure: figures.rate, atLeast: 0.9 },
        { of: 'inbox', to: 'inline', figure: figures.p99, atMost: 2 },
        { of: 'inbox and handlers', to: 'inline', figure: figures.cpu },
        { of: 'inbox and handlers', to: 'inline', figure: figures.rate },
        { of: 'inbox and handlers', to: 'inline', figure: figures.p99 },
      ],
    }
    return compare('A SQLite inbox on node:http, 50 connections', [plan], options)
  })
}

const drains = {
  sqlite: { figure: figures.perCpu, atLeast: 0.6 },
  bullmq: { figure: figures.rate, atLeast: 0.85 },
  'pg-boss': { figure: figures.rate, atLeast: 0.85 },
} as const

/** Each engine's queue against the engine in the fewest calls that lose nothing. */
export async function compareDrains(engines: readonly EngineName[], options: RoundOptions): Promise<void> {
  await onSites(async (site) => {
    const plans: Plan[] = []
    for (const engine of engines) {
      if (!(await isThere(engine))) {
        console.log(`${titles[engine]} is left out: no server answers.\n`)
        continue
      }
      const [bare, ours] = [`${titles[engine]}, bare`, titles[engine]]
      const entry = (kind: string) => (checkout?: string) =>
        startRunner('drain', [site(engine).place, kind], { checkout })
      plans.push({
        entries: { [bare]: { start: entry('bare') }, [ours]: { start: entry('queue'), isOurs: true } },
        rows: [
          { of: ours, to: bare, ...drains[engine] },
          ...(engine === 'sqlite' ? [{ of: ours, to: bare, figure: figures.rate }] : []),
        ],
      })
    }
    await compare('Drain, 100 at a time, handlers that do nothing', plans, options)
  })
}

const MAX_OF_DEPTH = 1.25

/** A push with few and many waiting, under random ids and under ids that begin with the time. */
export async function compareDepths(options: RoundOptions): Promise<void> {
  await onSites((site) => {
    const entry = (depth: number, ids: 'random' | 'timed') => ({
      start: startPushes(site, { depth, ids }),
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

const HANDLED = 1_000_000

/** An inbox that has handled so many messages and kept them, against one that has not kept them: both know their ids. */
export async function compareHistory(options: RoundOptions): Promise<void> {
  await onSites((site) => {
    const entry = (areKept: boolean) => (checkout?: string) =>
      startServer('inbox', [site('sqlite').place, 'working', { handled: HANDLED, areKept }], { checkout })
    const plan: Plan = {
      entries: {
        'no history': { start: entry(false), isOurs: true },
        'a history': { start: entry(true), isOurs: true },
      },
      rows: [{ of: 'a history', to: 'no history', figure: figures.cpu, atMost: 1.15 }],
      messages: 2500,
    }
    return compare('A SQLite inbox that has handled 1 000 000 messages, with and without a history', [plan], options)
  })
}

/** 5000 jobs that wait, each of a group of its own, against jobs without groups. BullMQ has none. */
export async function compareGroups(engines: readonly EngineName[], options: RoundOptions): Promise<void> {
  await onSites(async (site) => {
    const plans: Plan[] = []
    for (const engine of engines) {
      if (engine === 'bullmq' || !(await isThere(engine))) continue
      const [without, ours] = [titles[engine], `${titles[engine]}, groups`]
      const entry = (kind: string) => (checkout?: string) =>
        startRunner('drain', [site(engine).place, kind], { checkout })
      plans.push({
        entries: {
          [without]: { start: entry('queue'), isOurs: true },
          [ours]: { start: entry('in turn'), isOurs: true },
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

const PICKS = ['plainjob, NORMAL', 'plainjob, FULL'] as const

/** What somebody would pick instead, on the disk and in a file in memory. plainjob has no dedupe and no retries. */
export async function comparePeers(options: RoundOptions): Promise<void> {
  for (const folder of [tmpdir(), '/dev/shm']) {
    await onSites(async (site) => {
      for (const work of ['one by one', '100 in a call', 'drain'] as const satisfies readonly Work[]) {
        const entry = (pick: Pick) => (checkout?: string) =>
          startRunner('peer', [site('sqlite', folder).place, pick, work], { checkout })
        const rows = PICKS.flatMap((to): Row[] => [
          { of: 'sqliteQueue', to, figure: figures.cpu, ...(work === '100 in a call' && { atMost: 2 }) },
          { of: 'sqliteQueue', to, figure: figures.rate },
        ])
        const plan: Plan = {
          entries: {
            sqliteQueue: { start: entry('sqliteQueue'), isOurs: true },
            'plainjob, NORMAL': { start: entry('plainjob, NORMAL') },
            'plainjob, FULL': { start: entry('plainjob, FULL') },
          },
          rows,
          messages: 2000,
          warmUp: 6000,
        }
        await compare(`sqliteQueue and plainjob, ${work}, 1 KB, in ${folder}`, [plan], options)
      }
    })
  }
}

/** 100 queues of a file against one: 50 pushers, each push to the next queue. */
export async function compareQueues(options: RoundOptions): Promise<void> {
  const many = 100
  await onSites((site) => {
    const plan: Plan = {
      entries: {
        'one queue': { start: startPushes(site, { queues: 1 }), isOurs: true },
        [`${many} queues`]: { start: startPushes(site, { queues: many }), isOurs: true },
      },
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

function startPushes(site: GetSite, setting: PushSetting) {
  return (checkout?: string): Promise<Runner> => startRunner('pushes', [site('sqlite').place, setting], { checkout })
}

/** How long the disk takes to keep a page, which bounds what is answered only then: rates depend on it, CPU time hardly. */
function printFlush(): void {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-bench-'))
  const file = openSync(join(folder, 'flush'), 'w')
  const times: number[] = []
  for (let i = 0; i < 50; i++) {
    const start = performance.now()
    writeSync(file, Buffer.alloc(4096))
    fdatasyncSync(file)
    times.push(performance.now() - start)
  }
  closeSync(file)
  rmSync(folder, { recursive: true })
  console.log(`The disk of ${tmpdir()} keeps a page in ${median(times).toFixed(1)} ms.\n`)
}

/** A new place. */
type GetSite = (engine: EngineName, folder?: string) => Site

/** Removes every place that was made. */
async function onSites(use: (site: GetSite) => Promise<void>): Promise<void> {
  const sites: Site[] = []
  printFlush()
  try {
    await use((engine, folder) => {
      const site = createSite(engine, folder)
      sites.push(site)
      return site
    })
  } finally {
    for (const { remove } of sites) await remove()
  }
}
