/** An endpoint that restarts while messages are delivered to it, on real sockets. */

import { expect, onTestFinished, test } from 'vitest'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import { manualClock, startEndpoint } from '../../src/testing.ts'
import { until } from '../support/until.ts'

test('an endpoint that restarts gets every message at least once', async () => {
  const clock = manualClock()
  const before = await startEndpoint()
  const reports: DeliveryReport[] = []
  const destination = createDestination({
    webhooks: [{ url: before.url }],
    clock,
    concurrency: 10,
    onAttempt: (report) => reports.push(report),
  })
  onTestFinished(async () => {
    await destination.close({ graceMs: 0 })
    await before.close()
  })
  const ids = Array.from({ length: 300 }, (_, index) => `m${index}`)
  for (const messageId of ids) await destination.track({ userId: 'u', event: 'E', messageId })

  await until(() => before.requests.length > 50)
  await before.close()
  await until(() => reports.some(({ status }) => status === 'retrying'))
  const waiting = reports.filter(({ status }) => status === 'retrying')
  expect(waiting.length).toBeGreaterThan(0)
  expect(reports.every(({ status }) => status !== 'failed')).toBe(true)

  const after = await startEndpoint({ port: Number(new URL(before.url).port) })
  onTestFinished(() => after.close())
  const isDelivered = () => reports.filter(({ status }) => status === 'delivered').length === ids.length
  while (!isDelivered()) await clock.advance(1_000)

  const taken = new Set([...before.messages, ...after.messages].map(({ messageId }) => messageId))
  expect([...taken].sort()).toEqual([...ids].sort())
})
