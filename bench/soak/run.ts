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
const OPENING_MS = 5_000
const SAMPLE_MS = 30_000
/** In a short run there are as many samples all the same. */
const LEAST_SAMPLES = 30
/** The part of the run that does not count. */
const WARM_UP = 0.1
const MOST_GROWTH = 1.15
/** Descriptors that may be left over when all connections are closed. */
const MOST_DESCRIPTORS = 2
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
  const [child, port] = await startChild<number>(undefined, ['--expose-gc', program, JSON.stringify(place)])
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
  const opening = await sendFor(OPENING_MS, port, rate) // Engines connect when they are used.
  await emptied(child)
  const descriptorsBefore = descriptorsOf(child.pid)
  const start = performance.now()
  const over = new AbortController()
  const sampling = takeSamples(child, start, samples, over.signal)
  const load = await sendFor(minutes * 60_000, port, rate)
  over.abort()
  await sampling
  const standing = await emptied(child)
  const sent = {
    accepted: opening.accepted + load.accepted,
    refused: opening.refused + load.refused,
    doomed: opening.doomed + load.doomed,
  }

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
  const isFlat = compareThirds(samples.filter((sample) => sample.minutes > minutes * WARM_UP).map(({ live }) => live))
  const left = descriptorsOf(child.pid) - descriptorsBefore
  console.log(`\nDescriptors left over: ${left}, at most ${MOST_DESCRIPTORS}: ${verdict(left <= MOST_DESCRIPTORS)}`)
  return isComplete && isFlat && left <= MOST_DESCRIPTORS
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
      descriptors: descriptorsOf(child.pid),
    }
    samples.push(sample)
    const { waiting, active, deadLetters, handled, live, rss, descriptors } = sample
    console.log(
      `${sample.minutes.toFixed(1)} min: ${handled} handled, ${waiting} waiting, ${active} active, ${deadLetters} dead letters, ` +
        `${live.toFixed(1)} MB live, ${rss.toFixed(0)} MB resident, ${descriptors} descriptors`,
    )
    await wait(everyMs, undefined, { signal }).catch(() => {})
  }
}

function residentMegabytes(pid: number): number {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1_024
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Prints how live memory grew, and returns whether it is flat. */
function compareThirds(live: readonly number[]): boolean {
  const third = Math.ceil(live.length / 3)
  const [first, last] = [median(live.slice(0, third)), median(live.slice(-third))]
  const isFlat = last / first <= MOST_GROWTH
  printTable(
    ['median of the', 'first third', 'last third', 'ratio', 'target', ''],
    [
      [
        'live memory, MB',
        first.toFixed(1),
        last.toFixed(1),
        (last / first).toFixed(2),
        `≤ ${MOST_GROWTH}`,
        verdict(isFlat),
      ],
    ],
  )
  return isFlat
}

/** Waits until nothing is left to do. */
async function emptied(child: Child): Promise<Standing> {
  for (;;) {
    const standing = await child.ask<Standing>('standing')
    if (standing.waiting + standing.active === 0) return standing
    await wait(ASK_AGAIN_MS)
  }
}
