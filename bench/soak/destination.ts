/** The destination part of the soak: real sockets, a real engine, and the outages of the simulated day in a shorter time. */

import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../child.ts'
import { type EngineName, type Place, titles } from '../queues/place.ts'
import { withPlaces } from '../queues/places.ts'
import { printTable, verdict } from '../table.ts'
import type { EndpointTotals } from './endpoint.ts'
import { type Behaviour, PHASES, type Phase } from './phases.ts'
import { compareThirds, descriptorsOf, MAX_DESCRIPTORS, residentMegabytes, sampleEvery } from './process.ts'
import type { SenderOptions, SenderStanding } from './sender.ts'
import { storedBytes } from './stored.ts'

const PER_SECOND = 200
const FLAP_MS = 5_000
const MAX_POSTS_PER_ARRIVAL = 0.1
/** Those that were tried early in an outage wait for their turn: 0 to 10 s, 0 to 20 s, and so on. */
const CATCH_UP_MS = 300_000
/** Connections without a post are closed after a few seconds, and PostgreSQL counts every ten. */
const IDLE_MS = 12_000

interface Processes {
  readonly place: Place
  readonly sender: Child
  readonly endpoint: Child
}

/** Returns whether everything held. */
export async function soakDestination(engine: EngineName, minutes: number): Promise<boolean> {
  console.log(`A destination on ${titles[engine]}, ${PER_SECOND} messages/s for ${minutes} minutes of outages\n`)
  return withPlaces(async (newPlace) => {
    const place = newPlace(engine)
    const [endpoint, ports] = await start<readonly number[]>('endpoint.ts')
    try {
      const [sender] = await start('sender.ts', { place, ports, most: PER_SECOND * (minutes + 2) * 60 })
      try {
        return await soak({ place, sender, endpoint }, minutes)
      } finally {
        await sender.stop()
      }
    } finally {
      await endpoint.stop()
    }
  })
}

function start<Hello>(program: string, options?: SenderOptions): Promise<[Child, Hello]> {
  const path = fileURLToPath(new URL(program, import.meta.url))
  return startChild<Hello>(undefined, ['--expose-gc', path, ...(options ? [JSON.stringify(options)] : [])])
}

async function soak({ place, sender, endpoint }: Processes, minutes: number): Promise<boolean> {
  const standing = (): Promise<SenderStanding> => sender.ask('standing')
  const samples: { readonly minutes: number; readonly live: number }[] = []
  const outages: Outage[] = []
  const began = performance.now()
  const minute = (): number => (performance.now() - began) / 60_000

  async function look(what: string): Promise<void> {
    const { live, ...rest } = await standing()
    samples.push({ minutes: minute(), live })
    const [rss, descriptors] = [residentMegabytes(sender.pid), descriptorsOf(sender.pid)]
    console.log(
      `${minute().toFixed(1)} min, ${what}: ${rest.accepted} accepted, ${rest.delivered} delivered, ${rest.missing} waiting, ` +
        `${rest.posts} posts, ${live.toFixed(1)} MB live, ${rss.toFixed(0)} MB resident, ${descriptors} descriptors`,
    )
  }

  async function run(phase: Phase): Promise<void> {
    const { urls = 1, isFlapping = false, isOutage = false, share } = phase
    await sender.ask({ urls })
    await behave(endpoint, urls - 1, phase.behaviour)
    const before = await standing()
    const bytesBefore = await storedBytes(place)
    const end = performance.now() + share * minutes * 60_000
    for (let isUp = true; performance.now() < end; isUp = !isUp) {
      const leftMs = end - performance.now()
      await wait(Math.min(leftMs, isFlapping ? FLAP_MS : sampleEvery(minutes)))
      if (isFlapping) await behave(endpoint, urls - 1, isUp ? 'up' : phase.behaviour)
      await look(phase.name)
    }
    const after = await standing()
    const arrived = after.accepted - before.accepted
    if (isOutage) {
      const bytes = ((await storedBytes(place)) - bytesBefore) / (after.missing - before.missing)
      outages.push({ name: phase.name, posts: (after.posts - before.posts) / arrived, bytes })
    }
    await behave(endpoint, urls - 1, 'up')
  }

  await sender.ask({ perSecond: PER_SECOND })
  await wait(2_000) // Engines connect when they are used.
  const descriptorsBefore = descriptorsOf(sender.pid)
  for (const phase of PHASES) await run(phase)
  await sender.ask({ perSecond: 0 })
  const end = performance.now() + CATCH_UP_MS
  while (((await standing()).left > 0 || (await standing()).missing > 0) && performance.now() < end) await wait(IDLE_MS)
  await wait(IDLE_MS)
  await look('at the end')

  const isGood = [
    printMessages(await standing(), await endpoint.ask<EndpointTotals>('totals')),
    printOutages(outages),
    compareThirds(samples, minutes),
  ]
  const ended = await standing()
  const bytes = (await storedBytes(place)) / (ended.accepted - ended.missing)
  console.log(`In the engine at the end, for each message that is complete: ${bytes.toFixed(0)} bytes`)
  const left = descriptorsOf(sender.pid) - descriptorsBefore
  console.log(`Descriptors left over: ${left}, at most ${MAX_DESCRIPTORS}: ${verdict(left <= MAX_DESCRIPTORS)}\n`)
  return isGood.every(Boolean) && left <= MAX_DESCRIPTORS
}

async function behave(endpoint: Child, index: number, behaviour: Behaviour): Promise<void> {
  await endpoint.ask({ index, behaviour })
}

/** What an outage was like. */
interface Outage {
  readonly name: string
  /** Posts a message that arrived. */
  readonly posts: number
  /** What the engine took for each message more that waits. */
  readonly bytes: number
}

/** Prints what became of the messages, and returns whether none is missing. */
function printMessages(standing: SenderStanding, { taken, duplicates, cut }: EndpointTotals): boolean {
  const { accepted, rejected, delivered, missing, deadLetters } = standing
  const hasKnownReasons = Object.keys(deadLetters).every((reason) => reason === 'refused')
  const isComplete = missing === 0 && taken === delivered && hasKnownReasons && duplicates <= cut
  console.log()
  printTable(
    [
      'accepted',
      'rejected',
      'delivered',
      'dead',
      'missing',
      'taken by the endpoint',
      'duplicates',
      'posts cut',
      'complete',
    ],
    [
      [
        String(accepted),
        String(rejected),
        String(delivered),
        JSON.stringify(deadLetters).replaceAll('"', ''),
        String(missing),
        String(taken),
        String(duplicates),
        String(cut),
        isComplete ? 'yes' : '**no**',
      ],
    ],
  )
  return isComplete
}

/** Prints what outages cost, and returns whether the posts were few. */
function printOutages(outages: readonly Outage[]): boolean {
  printTable(
    ['outage', 'bytes a message in the engine', 'posts per arrival', 'target', ''],
    outages.map(({ name, posts, bytes }) => [
      name,
      bytes.toFixed(0),
      posts.toFixed(4),
      `≤ ${MAX_POSTS_PER_ARRIVAL}`,
      verdict(posts <= MAX_POSTS_PER_ARRIVAL),
    ]),
  )
  return outages.every(({ posts }) => posts <= MAX_POSTS_PER_ARRIVAL)
}
