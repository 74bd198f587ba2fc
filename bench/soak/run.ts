/**
 * `npm run soak`: loads an inbox at half of what it can take, for half an hour by default, and says what that left:
 * `-- --minutes 5 --engine bullmq`. Fails when messages are missing, or memory or descriptors grew.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Child, startChild } from '../child.ts'
import { type Place, readEngine, titles } from '../durable/place.ts'
import { onSite } from '../durable/site.ts'
import { printMachine } from '../machine.ts'
import { median, printTable, verdict } from '../table.ts'
import { sendFor } from './load.ts'
import type { Standing } from './server.ts'

interface Sample extends Standing {
  readonly minutes: number
  /** Resident set size, in MB. */
  readonly rss: number
  readonly descriptors: number
}

const CAPACITY_MS = 10_000
const SAMPLE_MS = 30_000
/** In a short run there are as many samples all the same. */
const LEAST_SAMPLES = 30
/** The part of the run that does not count. */
const WARM_UP = 0.1
const MOST_GROWTH = 1.15
const ASK_AGAIN_MS = 200

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, engine: { type: 'string', default: 'sqlite' } },
})
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new TypeError('--minutes: must be a number above 0.')
const engine = readEngine(values.engine)

printMachine()
const capacity = await onSite(engine, (place) => onServer(place, measureCapacity))
console.log(`A receiver with an inbox on ${titles[engine]}: ${capacity.toFixed(0)} messages/s accepted and handled`)
console.log(`Half of it for ${minutes} minutes\n`)
const isGood = await onSite(engine, (place) => onServer(place, (child, port) => soak(child, port, capacity / 2)))
process.exitCode = isGood ? 0 : 1

async function onServer<Result>(place: Place, use: (child: Child, port: number) => Promise<Result>): Promise<Result> {
  const program = fileURLToPath(new URL('server.ts', import.meta.url))
  const [child, port] = await startChild<number>(undefined, [program, JSON.stringify(place)])
  try {
    return await use(child, port)
  } finally {
    await child.stop()
  }
}

/** Messages a second, from the first one sent to the last one handled. */
async function measureCapacity(child: Child, port: number): Promise<number> {
  await sendFor(CAPACITY_MS / 5, port) // Warms up.
  await emptied(child)
  const start = performance.now()
  const { accepted } = await sendFor(CAPACITY_MS, port)
  await emptied(child)
  return accepted / ((performance.now() - start) / 1_000)
}

async function soak(child: Child, port: number, rate: number): Promise<boolean> {
  const samples: Sample[] = []
  const start = performance.now()
  const over = new AbortController()
  const sampling = takeSamples(child, start, samples, over.signal)
  const sent = await sendFor(minutes * 60_000, port, rate)
  over.abort()
  await sampling
  const standing = await emptied(child)

  const isComplete = sent.accepted === standing.handled + standing.deadLetters && standing.deadLetters === sent.doomed
  console.log()
  printTable(
    ['accepted', 'handled', 'dead', 'attempts that failed', 'refused', 'accepted = handled + dead'],
    [
      [
        String(sent.accepted),
        String(standing.handled),
        String(standing.deadLetters),
        String(standing.failures),
        String(sent.refused),
        isComplete ? 'yes' : '**no**',
      ],
    ],
  )
  const counted = samples.filter((sample) => sample.minutes > minutes * WARM_UP)
  const rows = (['rss', 'descriptors'] as const).map((name) => compareThirds(name, counted))
  printTable(
    ['median of the', 'first third', 'last third', 'ratio', 'target', ''],
    rows.map(({ cells }) => cells),
  )
  return isComplete && rows.every(({ isFlat }) => isFlat)
}

/** Prints a line each. One question at a time is all that a child takes. */
async function takeSamples(child: Child, start: number, samples: Sample[], signal: AbortSignal): Promise<void> {
  const everyMs = Math.min(SAMPLE_MS, (minutes * 60_000) / LEAST_SAMPLES)
  while (!signal.aborted) {
    const standing = await child.ask<Standing>('standing')
    const sample: Sample = {
      ...standing,
      minutes: (performance.now() - start) / 60_000,
      rss: residentMegabytes(child.pid),
      descriptors: readdirSync(`/proc/${child.pid}/fd`).length,
    }
    samples.push(sample)
    const { waiting, active, deadLetters, handled, rss, descriptors } = sample
    console.log(
      `${sample.minutes.toFixed(1)} min: ${handled} handled, ${waiting} waiting, ${active} active, ${deadLetters} dead letters, ` +
        `${rss.toFixed(0)} MB, ${descriptors} descriptors`,
    )
    await wait(everyMs, undefined, { signal }).catch(() => {})
  }
}

function residentMegabytes(pid: number): number {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1_024
}

function compareThirds(name: 'rss' | 'descriptors', samples: readonly Sample[]): { cells: string[]; isFlat: boolean } {
  const numbers = samples.map((sample) => sample[name])
  const third = Math.ceil(numbers.length / 3)
  const [first, last] = [median(numbers.slice(0, third)), median(numbers.slice(-third))]
  const ratio = last / first
  const isFlat = ratio <= MOST_GROWTH
  const title = name === 'rss' ? 'RSS, MB' : 'descriptors'
  const cells = [title, first.toFixed(0), last.toFixed(0), ratio.toFixed(2), `≤ ${MOST_GROWTH}`, verdict(isFlat)]
  return { cells, isFlat }
}

/** Waits until nothing is left to do. */
async function emptied(child: Child): Promise<Standing> {
  for (;;) {
    const standing = await child.ask<Standing>('standing')
    if (standing.waiting + standing.active === 0) return standing
    await wait(ASK_AGAIN_MS)
  }
}
