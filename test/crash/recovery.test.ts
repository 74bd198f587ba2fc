/** How long the messages of a killed process wait until another one has handled them, with the defaults of the engine. */

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, type TestContext } from 'vitest'
import { type Child, startChild } from './child.ts'
import { createSite, engines, rounds, type Site, seed, type TestedEngine } from './engines.ts'
import { type Entry, readJournal } from './journal.ts'
import { createLoad } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'
import { createRandom } from './random.ts'

/**
 * Measures one time for each kill, in milliseconds: from SIGKILL, or from the moment when the other process
 * works, until the message is handled.
 */
async function measureRecovery(site: Site, isRunning: boolean, random: () => number): Promise<readonly number[]> {
  const [taken, handled] = [join(site.folder, 'taken'), join(site.folder, 'handled')]
  const children: Child[] = []
  const start = async (by: string, holds: boolean): Promise<string> => {
    const journal = holds ? taken : handled
    const settings: ReceiverSettings = { place: site.place, journal, by, holds }
    const child = startChild('receiver', settings)
    children.push(child)
    return child.ready
  }
  try {
    const origin = await start('0', true) // Alone: it creates the schema.
    for (let by = 1; by < kills; by += 1) await start(`${by}`, true)
    const load = createLoad(origin)
    const statuses = await Promise.all(Array.from({ length: kills }, (_, id) => load.post(`${id}`)))
    if (statuses.some((status) => status !== 200)) throw new Error(`A message was not accepted: ${statuses}.`)
    await load.close()
    const held = await entriesOf(taken, kills)

    if (isRunning) await start('other', false)
    const since = new Map<string, number>()
    const killAt = held.map((entry) => ({ entry, afterMs: random() * SPREAD_MS }))
    await Promise.all(
      killAt.map(async ({ entry, afterMs }) => {
        await wait(isRunning ? afterMs : 0)
        children[Number(entry.by)]?.kill()
        since.set(entry.id, Date.now())
      }),
    )
    if (!isRunning) {
      await Promise.all(children.map((child) => child.ended))
      await start('other', false)
      for (const { id } of held) since.set(id, Date.now())
    }
    const ends = await entriesOf(handled, kills)
    return ends.map(({ id, at }) => at - (since.get(id) ?? 0))
  } finally {
    for (const child of children) child.kill()
    await Promise.all(children.map((child) => child.ended))
  }
}

/** Twice what the slowest engine may need. */
const MAX_MS = 100_000

/** Waits until a journal has so many entries. */
async function entriesOf(journal: string, count: number): Promise<readonly Entry[]> {
  for (const end = Date.now() + MAX_MS; ; ) {
    const entries = readJournal(journal)
    if (entries.length >= count) return entries
    if (Date.now() > end)
      throw new Error(`${journal} has ${entries.length} entries, not ${count}: ${JSON.stringify(entries)}`)
    await wait(20)
  }
}

/** Each needs a process of its own, so no more at a time. */
const kills = Math.min(10, Math.max(4, rounds))
const repeats = Math.ceil(rounds / kills)
const TIMEOUT_MS = 240_000 * repeats

/** The most that docs/queues.md says, in milliseconds. Machines that test are busy, so they get some room. */
const limits = {
  sqlite: { mostMs: 1_000, room: 4 },
  bullmq: { mostMs: 25_000, room: 1.5 },
  'pg-boss': { mostMs: 30_000, room: 1.5 },
} as const

/** The kills are spread over this time, because leases are renewed and looked for now and then. */
const SPREAD_MS = 10_000

/** By the hook of its own context: of concurrent tests, the global one knows the latest only. */
async function recover(
  { onTestFinished }: TestContext,
  { engine, at }: TestedEngine,
  when: string,
  isRunning: boolean,
): Promise<void> {
  const random = createRandom(seed)
  const times: number[] = []
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const site = createSite(engine, at ?? '')
    onTestFinished(site.remove)
    times.push(...(await measureRecovery(site, isRunning, random)))
  }
  times.sort((one, other) => one - other)
  const [median, worst] = [times[times.length >> 1] ?? 0, times.at(-1) ?? 0]
  console.log(
    `${engine}, recovery, ${when}: median ${seconds(median)}, worst ${seconds(worst)} of ${times.length} kills`,
  )
  const { mostMs, room } = limits[engine]
  expect(median).toBeLessThan(mostMs * room)
  expect(worst).toBeLessThan(mostMs * room)
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`

describe('the messages of a killed process are handled soon by default', () => {
  const [sqlite, ...others] = engines as readonly [TestedEngine, ...TestedEngine[]]

  it(
    'on sqlite, while another process runs',
    (context) => recover(context, sqlite, 'another process runs', true),
    TIMEOUT_MS,
  )

  it(
    'on sqlite, when the next process starts',
    (context) => recover(context, sqlite, 'the next process starts', false),
    TIMEOUT_MS,
  )

  describe.concurrent.each(others)('on $engine', (tested) => {
    it.skipIf(tested.at === undefined)(
      'while another process runs',
      (context) => recover(context, tested, 'another process runs', true),
      TIMEOUT_MS,
    )
  })
})
