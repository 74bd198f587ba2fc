/** What the inspector does under load: messages arrive at a steady rate while its page is open. */

import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { Pool } from 'undici'
import { hmac } from '../../../../test/support/hmac.ts'
import { until } from '../../../../test/support/until.ts'
import { type App, SECRET, startApp } from './app.ts'
import { openPage, WATCH_TASKS } from './chromium.ts'

/** What the server and the page use at a time, after both have collected their garbage. */
interface Sample {
  readonly seconds: number
  readonly serverHeapBytes: number
  readonly serverBytes: number
  readonly pageHeapBytes: number
  readonly listeners: number
  readonly nodes: number
}

export interface Load {
  /** Messages a second that were answered 200. */
  readonly rate: number
  readonly accepted: number
  /** Answers other than 200, and requests without one. */
  readonly failed: number
  /** Messages that the handlers were given, until the inbox was empty. */
  readonly handled: number
  readonly samples: readonly Sample[]
  /** The longest that the page was busy without a break, in milliseconds. */
  readonly longestTaskMs: number
  readonly shown: string
  readonly faults: readonly string[]
}

const PER_SECOND = 1_000
const TICK_MS = 10
/** How long before the first sample messages arrive: more than are kept. */
const FILL_MS = 3_000
/** After the first. */
const SAMPLES = 6
const MAX_BUSY_MS = 200
/** From the second sample to the last, beyond what a collection of garbage may leave. */
const MAX_GROWTH = 0.1
const NOISE_BYTES = 3_000_000
const MAX_OPEN = 500

/** Sends 1 000 messages a second for so many seconds to an app that has its queues on a disk, and takes samples meanwhile. */
export async function measureLoad(directory: string, browser: Browser, seconds: number): Promise<Load> {
  const data = await mkdtemp(join(directory, 'data-'))
  const app = await startApp(directory, { data })
  const { page, faults } = await openPage(browser)
  const pool = new Pool(app.origin, { connections: 16 })
  try {
    await page.addInitScript(WATCH_TASKS)
    await page.goto(app.url)
    const sender = startSending(pool)
    const samples: Sample[] = []
    let longestTaskMs = 0
    await delay(FILL_MS)
    for (let index = 0; index <= SAMPLES; index += 1) {
      longestTaskMs = Math.max(longestTaskMs, await page.evaluate<number>('window.longest'))
      samples.push({ seconds: Math.round((index * seconds) / SAMPLES), ...(await readMemory(app, page)) })
      await page.evaluate('window.longest = 0') // The collection of garbage was one.
      if (index < SAMPLES) await delay((seconds * 1_000) / SAMPLES)
    }
    const { accepted, failed, rate } = await sender.stop()
    await until(async () => (await app.counts()).inbox === 0)
    const { handled } = await app.counts()
    const shown = await page.locator('output.count').innerText()
    return { rate, accepted, failed, handled, samples, longestTaskMs, shown, faults }
  } finally {
    await page.context().close()
    await pool.destroy()
    await app.kill()
    await rm(data, { recursive: true, force: true })
  }
}

function startSending(pool: Pool): { stop(): Promise<Pick<Load, 'accepted' | 'failed' | 'rate'>> } {
  const begun = performance.now()
  let [posted, accepted, failed] = [0, 0, 0]
  async function post(): Promise<void> {
    posted += 1
    const userId = `user-${posted % 1_000}`
    const properties = { order_id: `order-${posted}`, total: posted % 100, currency: 'EUR', note: 'x'.repeat(400) }
    const body = JSON.stringify({
      type: 'track',
      event: 'Order Completed',
      userId,
      messageId: `load-${posted}`,
      properties,
    })
    const headers = { 'content-type': 'application/json', 'x-signature': hmac(Buffer.from(body), SECRET) }
    try {
      const response = await pool.request({ path: '/webhooks', method: 'POST', headers, body })
      await response.body.dump()
      if (response.statusCode === 200) accepted += 1
      else failed += 1
    } catch {
      failed += 1
    }
  }
  const timer = setInterval(() => {
    const due = ((performance.now() - begun) * PER_SECOND) / 1_000
    while (posted < due && posted - accepted - failed < MAX_OPEN) void post()
  }, TICK_MS)
  return {
    async stop() {
      clearInterval(timer)
      const rate = (accepted * 1_000) / (performance.now() - begun)
      await until(() => accepted + failed === posted)
      return { accepted, failed, rate }
    },
  }
}

/** Of both after a collection of garbage. */
async function readMemory(app: App, page: Page): Promise<Omit<Sample, 'seconds'>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  await session.send('HeapProfiler.collectGarbage')
  const { metrics } = await session.send('Performance.getMetrics')
  await session.detach()
  const metric = (name: string) => metrics.find((each) => each.name === name)?.value ?? Number.NaN
  const { heapUsed, rss } = await app.memory()
  return {
    serverHeapBytes: heapUsed,
    serverBytes: rss,
    pageHeapBytes: metric('JSHeapUsedSize'),
    listeners: metric('JSEventListeners'),
    nodes: metric('Nodes'),
  }
}

/**
 * Says what is too much of a run, a line each.
 *
 * @param room How many times what the bounds say: more on a machine that does other things.
 */
export function findExcess(load: Load, room: number): string[] {
  const { accepted, failed, handled, rate, longestTaskMs, samples, faults } = load
  const [first, last] = [samples.at(1), samples.at(-1)]
  if (first === undefined || last === undefined) throw new RangeError('A run must have two samples.')
  const lines = [...faults]
  if (failed > 0) lines.push(`${failed} messages were not accepted.`)
  if (handled !== accepted) lines.push(`${accepted} messages were accepted, and ${handled} were handled.`)
  if (rate < (PER_SECOND * 0.95) / room) lines.push(`${rate.toFixed(0)} messages a second were accepted.`)
  if (longestTaskMs > MAX_BUSY_MS * room) lines.push(`The page was busy for ${longestTaskMs.toFixed(0)} ms.`)
  for (const name of ['serverHeapBytes', 'pageHeapBytes', 'listeners', 'nodes'] as const) {
    const most = first[name] * (1 + MAX_GROWTH * room) + (name.endsWith('Bytes') ? NOISE_BYTES : 0)
    if (last[name] > most) lines.push(`${name} grew from ${first[name]} to ${last[name]}.`)
  }
  return lines
}
