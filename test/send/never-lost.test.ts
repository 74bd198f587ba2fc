/** An accepted message is delivered, reported as failed, or returned by close(). */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createQueue } from '../../src/store/create-queue.ts'
import { createMemoryStore } from '../../src/store/memory/memory-store.ts'
import { manualClock, type Script } from '../../src/testing.ts'
import { runs } from '../support/properties.ts'
import { setUp } from './set-up.ts'

const answers = fc.constantFrom<Script[number]>(200, 204, 404, 500, 503, 'hang', 'reset', {
  status: 429,
  headers: { 'retry-after': '900' },
})
const steps = fc.oneof(
  { weight: 6, arbitrary: fc.record({ send: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 4, arbitrary: fc.record({ waitMs: fc.integer({ min: 0, max: 3_600_000 }) }) },
  { weight: 1, arbitrary: fc.constant({ off: true as const }) },
  { weight: 2, arbitrary: fc.constant({ on: true as const }) },
  { weight: 1, arbitrary: fc.constant({ redrive: true as const }) },
  { weight: 2, arbitrary: fc.record({ urls: fc.uniqueArray(fc.nat(5), { minLength: 1, maxLength: 5 }) }) },
)

test('no queued message is lost in any mix of calls, responses, switches, updates and closing', {
  timeout: 60_000,
}, async () => {
  const plan = {
    script: fc.array(answers, { minLength: 1, maxLength: 40 }),
    urls: fc.integer({ min: 1, max: 5 }),
    steps: fc.array(steps, { maxLength: 15 }),
    graceMs: fc.constantFrom(0, 1_000, 6_000),
    seed: fc.integer(),
  }
  await fc.assert(fc.asyncProperty(fc.record(plan), run), { numRuns: runs(40) })
})

const toWebhook = (index: number) => ({ url: `https://shop.example/${index}` })

interface Plan {
  readonly script: Script
  readonly urls: number
  readonly steps: readonly { send?: number; waitMs?: number; off?: true; on?: true; redrive?: true; urls?: number[] }[]
  readonly graceMs: number
  readonly seed: number
}

async function run({ script, urls, steps: planned, graceMs, seed }: Plan): Promise<void> {
  const clock = manualClock()
  const store = createMemoryStore({ name: 'orders', clock })
  const { destination, reports } = setUp(script, {
    webhooks: Array.from({ length: urls }, (_, index) => toWebhook(index)),
    queue: createQueue(store, { name: 'orders', clock }),
    clock,
    random: chance(seed),
    concurrency: 7,
  })
  const accepted = new Map<string, string>()

  for (const step of planned) {
    if (step.send !== undefined) {
      for (let i = 0; i < step.send; i++) {
        const messageId = `m${accepted.size}`
        const answer = await destination.track({ userId: 'u', event: 'E', messageId })
        if (answer.queued) accepted.set(answer.id, messageId)
        else expect(destination.enabled).toBe(false)
      }
    }
    if (step.waitMs !== undefined) await clock.advance(step.waitMs)
    if (step.off) destination.disable()
    if (step.on) destination.enable()
    if (step.urls) destination.update({ webhooks: step.urls.map(toWebhook) })
    if (step.redrive) await destination.redrive('all')
  }
  const closing = destination.close({ graceMs })
  await clock.advance(graceMs)
  const left = new Set((await closing).map(({ messageId }) => messageId))
  const letters = await store.deadLetters({ after: undefined, maxBytes: 1e9, limit: 1_000, newestFirst: false })
  const failed = new Set(letters.map(({ id }) => id))
  const delivered = new Set(reports.filter(({ status }) => status === 'delivered').map(({ id }) => id))

  for (const [id, messageId] of accepted) {
    const ends = [delivered.has(id), failed.has(id), left.has(messageId)].filter(Boolean)
    expect(ends, `${messageId} ended ${ends.length} times`).toHaveLength(1)
  }
  for (const { status, latest } of reports) expect(latest.some(({ ok }) => ok)).toBe(status === 'delivered')
  await clock.advance(6_000) // The one timer of the deadlines is left to fire.
  expect(clock.timers).toBe(0)
}

/** Numbers from 0 to below 1 that only look random. */
function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
