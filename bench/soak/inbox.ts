/** The inbox part of the soak: loads a receiver at half of what it can take, and says what that left. */

import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../child.ts'
import { type EngineName, type Place, titles } from '../queues/place.ts'
import { withPlaces } from '../queues/places.ts'
import { printTable, verdict } from '../table.ts'
import { sendFor } from './load.ts'
import { compareThirds, descriptorsOf, MAX_DESCRIPTORS, residentMegabytes, sampleEvery } from './process.ts'
import type { Standing } from './server.ts'

interface Sample extends Standing {
  readonly minutes: number
  /** Resident set size, in MB. */
  readonly rss: number
  readonly descriptors: number
}

const CAPACITY_MS = 10_000
const OPENING_MS = 5_000
const ASK_AGAIN_MS = 200

/** Returns whether everything held. */
export async function soakInbox(engine: EngineName, minutes: number): Promise<boolean> {
  const capacity = await withPlaces((newPlace) => onServer(newPlace(engine), measureCapacity))
  console.log(`A receiver with an inbox on ${titles[engine]}: ${capacity.toFixed(0)} messages/s accepted and handled`)
  console.log(`Half of it for ${minutes} minutes\n`)
  return withPlaces((newPlace) => onServer(newPlace(engine), (child, port) => soak(child, port, capacity / 2, minutes)))
}

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

async function soak(child: Child, port: number, rate: number, minutes: number): Promise<boolean> {
  const samples: Sample[] = []
  const opening = await sendFor(OPENING_MS, port, rate) // Engines connect when they are used.
  await emptied(child)
  const descriptorsBefore = descriptorsOf(child.pid)
  const start = performance.now()
  const over = new AbortController()
  const sampling = takeSamples(child, start, samples, sampleEvery(minutes), over.signal)
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
  const isFlat = compareThirds(samples, minutes)
  const left = descriptorsOf(child.pid) - descriptorsBefore
  console.log(`\nDescriptors left over: ${left}, at most ${MAX_DESCRIPTORS}: ${verdict(left <= MAX_DESCRIPTORS)}`)
  return isComplete && isFlat && left <= MAX_DESCRIPTORS
}

/** Prints a line each. One question at a time is all that a child takes. */
async function takeSamples(
  child: Child,
  start: number,
  samples: Sample[],
  everyMs: number,
  signal: AbortSignal,
): Promise<void> {
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

/** Waits until nothing is left to do. */
async function emptied(child: Child): Promise<Standing> {
  for (;;) {
    const standing = await child.ask<Standing>('standing')
    if (standing.waiting + standing.active === 0) return standing
    await wait(ASK_AGAIN_MS)
  }
}
