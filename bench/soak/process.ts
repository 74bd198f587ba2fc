/** What both parts of the soak look at in a process: its memory and its descriptors. */

import { readdirSync, readFileSync } from 'node:fs'
import { median, printTable, verdict } from '../table.ts'

/** Descriptors that may be left over when all connections are closed. */
export const MAX_DESCRIPTORS = 2
const MAX_GROWTH = 1.15
/** The part of the run that does not count. */
const WARM_UP = 0.1
const SAMPLE_MS = 30_000
/** In a short run there are as many samples all the same. */
const MIN_SAMPLES = 30

/** How often a run of so many minutes is looked at, in milliseconds. */
export function sampleEvery(minutes: number): number {
  return Math.min(SAMPLE_MS, (minutes * 60_000) / MIN_SAMPLES)
}

/** Collects garbage, which needs `--expose-gc`, and returns what is left, in MB: the heap, and buffers outside of it. */
export function measureLiveMemory(): number {
  global.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

/** The resident set size, in MB. */
export function residentMegabytes(pid: number): number {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1_024
}

export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Prints how live memory grew in a run of so many minutes, and returns whether it is flat. */
export function compareThirds(
  samples: readonly { readonly minutes: number; readonly live: number }[],
  minutes: number,
): boolean {
  const live = samples.filter((sample) => sample.minutes > minutes * WARM_UP).map((sample) => sample.live)
  const third = Math.ceil(live.length / 3)
  const [first, last] = [median(live.slice(0, third)), median(live.slice(-third))]
  const isFlat = last / first <= MAX_GROWTH
  printTable(
    ['median of the', 'first third', 'last third', 'ratio', 'target', ''],
    [
      [
        'live memory, MB',
        first.toFixed(1),
        last.toFixed(1),
        (last / first).toFixed(2),
        `≤ ${MAX_GROWTH}`,
        verdict(isFlat),
      ],
    ],
  )
  return isFlat
}
