import { describe, expect, it, type TestContext } from 'vitest'
import { createSite, engines, type TestedEngine } from './engines.ts'
import { createRandom, readSettings } from './random.ts'
import { measureRecovery } from './recovery.ts'

const { rounds, seed } = readSettings()

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

/** Kills are spread over this time: leases are renewed, and dead processes looked for, now and then. */
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
    times.push(...(await measureRecovery(site, { kills, isRunning, spreadMs: SPREAD_MS, random })))
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
