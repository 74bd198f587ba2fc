/** A destination on a queue that outlives its process: what a restart must not change. */

import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { RETRY_WINDOW_MS } from '../../src/protocol/limits.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { capture, manualClock, type Script } from '../../src/testing.ts'
import { until } from '../support/until.ts'

function setUp(script: Script = [503]) {
  const clock = manualClock()
  const start = clock.now()
  const folder = mkdtempSync(join(tmpdir(), 'hookline-outbox-'))
  const captured = capture({ script })
  const reports: DeliveryReport[] = []
  const open = (queue: Queue) => {
    const destination = createDestination({
      webhooks: [{ url: 'https://shop.example/webhooks' }],
      dispatcher: captured.dispatcher,
      queue,
      clock,
      random: () => 0.999, // Fewer rounds: each is a restart below.
      onAttempt: (report) => reports.push(report),
    })
    onTestFinished(async () => void (await destination.close({ graceMs: 0 })))
    return destination
  }
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 9 }))
  const onDisk = () => sqliteQueue({ path: join(folder, 'outbox.sqlite'), name: 'outbox', clock })
  const reported = async (count: number): Promise<DeliveryReport> => {
    await until(async () => {
      await clock.advance(0)
      return reports.length >= count
    })
    return reports[count - 1] as DeliveryReport
  }
  const startsOf = (report: DeliveryReport) => report.attempts.map(({ at }) => at.getTime() - start)
  return { clock, captured, reports, open, onDisk, inMemory: () => memoryQueue({ clock }), reported, startsOf }
}

test('a destination that restarts between attempts keeps schedule, attempts and four hours', {
  timeout: 120_000,
}, async () => {
  const steady = setUp()
  await steady.open(steady.inMemory()).track({ userId: 'u', event: 'E' })
  await steady.clock.advance(RETRY_WINDOW_MS)
  const expected = steady.reports.at(-1) as DeliveryReport

  const { clock, open, onDisk, reports, reported, startsOf } = setUp()
  let restarted = open(onDisk())
  await restarted.track({ userId: 'u', event: 'E' })
  let report = await reported(1)
  for (let count = 2; report.status === 'retrying'; count += 1) {
    const retryAt = report.retryAt?.getTime() ?? 0
    if (count < 4) {
      await restarted.close({ graceMs: 0 })
      await clock.advance(Math.floor((retryAt - clock.now()) / 2))
      restarted = open(onDisk())
    }
    await clock.advance(retryAt - clock.now())
    report = await reported(count)
  }

  expect(expected).toMatchObject({ status: 'failed', reason: 'window_over' })
  expect(report).toMatchObject({ status: 'failed', reason: 'window_over' })
  expect(reports).toHaveLength(steady.reports.length)
  expect(startsOf(report)).toEqual(steady.startsOf(expected))
  expect(await restarted.deadLetters()).toMatchObject([{ reason: 'window_over', message: { event: 'E' } }])
})

test('a message whose four hours ended while the process was down fails without another attempt', async () => {
  const { clock, captured, open, onDisk, reported } = setUp()
  const before = open(onDisk())
  await before.track({ userId: 'u', event: 'E' })
  await reported(1)
  await before.close({ graceMs: 0 })
  await clock.advance(RETRY_WINDOW_MS + 1)

  open(onDisk())
  expect(await reported(2)).toMatchObject({ status: 'failed', reason: 'window_over', latest: [] })
  expect(captured.requests).toHaveLength(1)
})

test('the four hours of a message that was never posted begin with its first attempt', async () => {
  const { clock, captured, open, onDisk, reported } = setUp([200])
  const queue = onDisk()
  const id = '00000000-0000-4000-8000-000000000001'
  const message = { version: 1, type: 'track', userId: 'u', event: 'E', timestamp: '2026-01-15T09:30:00.000Z' }
  await queue.push([{ id, body: Buffer.from(JSON.stringify(message)) }])
  await queue.close({ graceMs: 0 })
  await clock.advance(RETRY_WINDOW_MS + 1)

  open(onDisk())
  expect(await reported(1)).toMatchObject({ status: 'delivered', id })
  expect(captured.messages).toMatchObject([message])
})
