/** How long the messages of a killed process wait until another one has handled them, with the defaults of the engine. */

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Child, startChild } from './child.ts'
import { createSite, engines, rounds, type Site, seed, type TestedEngine } from './engines.ts'
import { type Entry, readJournal } from './journal.ts'
import { createLoad } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'
import { createRandom } from './random.ts'

/** Twice what the slowest engine may need. */
const MAX_MS = 100_000
/** Each kill needs a process of its own, so no more at a time. */
const KILLS = Math.min(10, Math.max(4, rounds))
const REPEATS = Math.ceil(rounds / KILLS)
/** The kills are spread over this time, because leases are renewed and looked for now and then. */
const SPREAD_MS = 10_000
/** The most that docs/guarantees.md says, in milliseconds, and how many times as long a busy machine may take. */
const LIMITS = {
  sqlite: { mostMs: 1_000, room: 4 },
  bullmq: { mostMs: 25_000, room: 1.5 },
  'pg-boss': { mostMs: 30_000, room: 1.5 },
} as const

/** Returns a time for each kill, in milliseconds: from SIGKILL, or from when the other process works, until the message is handled. */
async function measureRecovery(site: Site, isRunning: boolean, random: () => number): Promise<readonly number[]> {
  const [taken, handled] = [join(site.folder, 'taken'), join(site.folder, 'handled')]
  const children: Child[] = []
  const start = (by: string, holds: boolean): Promise<string> => {
    const journal = holds ? taken : handled
    const child = startChild('receiver', { place: site.place, journal, by, holds } satisfies ReceiverSettings)
    children.push(child)
    return child.ready
  }
  try {
    const origin = await start('0', true) // Alone: it creates the schema.
    for (let by = 1; by < KILLS; by += 1) await start(`${by}`, true)
    const load = createLoad(origin)
    const statuses = await Promise.all(Array.from({ length: KILLS }, (_, id) => load.post(`${id}`)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    await load.close()
    const held = await entriesOf(taken)

    if (isRunning) await start('other', false)
    const since = new Map<string, number>()
    await Promise.all(
      held.map(async ({ id, by }) => {
        const afterMs = random() * SPREAD_MS
        if (isRunning) await wait(afterMs)
        children[Number(by)]?.kill()
        since.set(id, Date.now())
      }),
    )
    if (!isRunning) {
      await Promise.all(children.map((child) => child.ended))
      await start('other', false)
      for (const { id } of held) since.set(id, Date.now())
    }
    return (await entriesOf(handled)).map(({ id, at }) => at - (since.get(id) ?? 0))
  } finally {
    for (const child of children) child.kill()
    await Promise.all(children.map((child) => child.ended))
  }
}

/** Waits until a journal has an entry for each kill. */
async function entriesOf(journal: string): Promise<readonly Entry[]> {
  for (const end = Date.now() + MAX_MS; ; await wait(20)) {
    const entries = readJournal(journal)
    if (entries.length >= KILLS) return entries
    if (Date.now() > end) throw new Error(`${journal} has ${entries.length} entries, not ${KILLS}.`)
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`

function testRecovery({ engine, at }: TestedEngine, when: string, isRunning: boolean): void {
  it.skipIf(at === undefined)(`on ${engine}, ${when}`, { timeout: 240_000 * REPEATS }, async ({ onTestFinished }) => {
    const random = createRandom(seed)
    const times: number[] = []
    for (let repeat = 0; repeat < REPEATS; repeat += 1) {
      const site = createSite(engine, at ?? '')
      onTestFinished(site.remove)
      times.push(...(await measureRecovery(site, isRunning, random)))
    }
    times.sort((one, other) => one - other)
    const [median, worst] = [times[times.length >> 1] ?? 0, times.at(-1) ?? 0]
    console.log(
      `${engine}, recovery, ${when}: median ${seconds(median)}, worst ${seconds(worst)} of ${times.length} kills`,
    )
    expect(worst).toBeLessThan(LIMITS[engine].mostMs * LIMITS[engine].room)
  })
}

describe('the messages of a killed process are handled soon by default', () => {
  const [sqlite, ...others] = engines as readonly [TestedEngine, ...TestedEngine[]]

  testRecovery(sqlite, 'while another process runs', true)
  testRecovery(sqlite, 'when the next process starts', false)
  describe.concurrent('beside each other', () => {
    for (const tested of others) testRecovery(tested, 'while another process runs', true)
  })
})
