/** What the inspector does under load: 1 000 messages a second arrive while its page is open. */

import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { Pool } from 'undici'
import { expect, inject, onTestFinished } from 'vitest'
import { hmac } from '../../../../test/support/hmac.ts'
import { until } from '../../../../test/support/until.ts'
import { type App, SECRET } from './app.ts'
import { WATCH_TASKS } from './chromium.ts'
import { track } from './messages.ts'
import { test } from './test.ts'

const PER_SECOND = 1_000
const TICK_MS = 10
/** How long before the first sample messages arrive: more than are kept. */
const FILL_MS = 3_000
const SAMPLES = 6
const SAMPLE_MS = 1_600
const MAX_OPEN = 500
/** Four times what a machine needs that does nothing else. */
const ROOM = 4
const MAX_BUSY_MS = 200 * ROOM
/** From the second sample to the last, beyond what a collection of garbage may leave. */
const MAX_GROWTH = 0.1 * ROOM
const NOISE_BYTES = 3_000_000

test('1 000 messages a second: nothing is lost, memory stays flat, the page responds', { timeout: 120_000 }, async ({
  start,
  open,
}) => {
  const data = mkdtempSync(join(inject('directory'), 'data-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 9 }))
  const app = await start({ data })
  const { page } = await open()
  await page.addInitScript(WATCH_TASKS)
  await page.goto(app.url)
  const sender = startSending(app)
  const samples: Record<string, number>[] = []
  let longestTaskMs = 0

  await delay(FILL_MS)
  for (let index = 0; index <= SAMPLES; index += 1) {
    longestTaskMs = Math.max(longestTaskMs, await page.evaluate<number>('window.longest'))
    samples.push(await readMemory(app, page))
    await page.evaluate('window.longest = 0') // The collection of garbage was one.
    if (index < SAMPLES) await delay(SAMPLE_MS)
  }
  const { accepted, failed, rate } = await sender.stop()
  await until(async () => (await app.counts()).inbox === 0)

  expect([failed, (await app.counts()).handled]).toEqual([0, accepted])
  expect(rate).toBeGreaterThan(PER_SECOND / 10)
  expect(longestTaskMs).toBeLessThan(MAX_BUSY_MS)
  for (const [name, first = 0] of Object.entries(samples[1] ?? {})) {
    const most = first * (1 + MAX_GROWTH) + (name.endsWith('Bytes') ? NOISE_BYTES : 0)
    expect(samples.at(-1)?.[name], name).toBeLessThanOrEqual(most)
  }
})

function startSending({ origin }: App) {
  const pool = new Pool(origin, { connections: 16 })
  const begun = performance.now()
  let [posted, accepted, failed] = [0, 0, 0]
  async function post(): Promise<void> {
    posted += 1
    const body = JSON.stringify(track('Order Completed', { userId: `user-${posted % 1_000}`, note: 'x'.repeat(400) }))
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
      await pool.close()
      return { accepted, failed, rate }
    },
  }
}

/** What the server and the page use, after both have collected their garbage. */
async function readMemory(app: App, page: Page): Promise<Record<string, number>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  await session.send('HeapProfiler.collectGarbage')
  const { metrics } = await session.send('Performance.getMetrics')
  await session.detach()
  const metric = (name: string) => metrics.find((each) => each.name === name)?.value ?? Number.NaN
  const [pageHeapBytes, listeners, nodes] = ['JSHeapUsedSize', 'JSEventListeners', 'Nodes'].map(metric)
  return { serverHeapBytes: await app.memory(), pageHeapBytes, listeners, nodes } as Record<string, number>
}
