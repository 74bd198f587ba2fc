/** No job is ever gone: whatever happens, each is done once, or dead, or returned when the queue is closed. */

import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createQueue } from '../../../src/store/create-queue.ts'
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts'
import type { Outcome } from '../../../src/store/queue-types.ts'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.ts'
import { runs } from '../../support/properties.ts'

type Step =
  | { readonly push: readonly number[]; readonly delayMs: number }
  | { readonly pushTooMany: readonly number[] }
  | { readonly advanceMs: number }
  | { readonly redrive: true }

type Fate = 'done' | 'slow' | 'retry' | 'now' | 'reject' | 'dead' | 'hang'

interface Run {
  readonly steps: readonly Step[]
  readonly fates: readonly Fate[]
  readonly concurrency: number
  readonly graceMs: number
}

const IDS = Array.from({ length: 30 }, () => randomUUID())
const some = fc.array(fc.nat(IDS.length - 1), { maxLength: 5 })
const randomRun: fc.Arbitrary<Run> = fc.record({
  steps: fc.array(
    fc.oneof(
      fc.record({ push: some, delayMs: fc.integer({ min: -1000, max: 3000 }) }),
      fc.record({ pushTooMany: some }),
      fc.record({ advanceMs: fc.nat(5000) }),
      fc.record({ redrive: fc.constant(true as const) }),
    ),
    { maxLength: 30 },
  ),
  fates: fc.array(fc.constantFrom<Fate[]>('done', 'done', 'slow', 'retry', 'now', 'reject', 'dead', 'hang'), {
    minLength: 1,
    maxLength: 12,
  }),
  concurrency: fc.integer({ min: 1, max: 5 }),
  graceMs: fc.constantFrom(0, 500, 5000),
})

it('each is done as often as its handler said, or dead, or returned', async () => {
  await fc.assert(
    fc.asyncProperty(randomRun, async ({ steps, fates, concurrency, graceMs }) => {
      const clock = manualClock()
      const store = createMemoryStore({ clock, maxJobs: IDS.length })
      const queue = createQueue(store, { name: 'memory', clock })
      const accepted = new Set<string>()
      const done: string[] = []
      let isClosed = false
      let turn = 0
      queue.work(
        async ({ id }) => {
          const outcome = await meet(fates[turn++ % fates.length], clock)
          if ('complete' in outcome && !isClosed) done.push(id)
          return outcome
        },
        { concurrency },
      )

      for (const step of steps) {
        if ('advanceMs' in step) await clock.advance(step.advanceMs)
        else if ('redrive' in step) await queue.redrive('all')
        else if ('push' in step) {
          const jobs = step.push.map((index) => jobOf(IDS[index] ?? '', clock.now() + step.delayMs))
          for (const { id } of jobs) accepted.add(id)
          await queue.push(jobs)
        } else {
          const known = step.pushTooMany.map((index) => jobOf(IDS[index] ?? ''))
          const more = Array.from({ length: IDS.length + 1 }, () => jobOf(randomUUID()))
          await expect(queue.push([...known, ...more])).rejects.toMatchObject({ code: 'queue_full' })
        }
        expect((await queue.counts()).active).toBeLessThanOrEqual(concurrency)
      }

      const closing = queue.close({ graceMs })
      await clock.advance(graceMs)
      const left = await closing
      isClosed = true
      await clock.advance(10_000)
      const dead = await store.deadLetters({ after: undefined, limit: IDS.length, maxBytes: 1e9, newestFirst: false })
      const found = [...done, ...[...dead, ...left].map(({ id }) => id)]
      expect(found.sort()).toEqual([...accepted].sort())
    }),
    { numRuns: runs(100) },
  )
})

function jobOf(id: string, notBefore = 0) {
  return { id, body: new Uint8Array(1), notBefore: new Date(notBefore) }
}

async function meet(fate: Fate | undefined, clock: ManualClock): Promise<Outcome> {
  if (fate === 'retry') return { retryAt: new Date(clock.now() + 700) }
  if (fate === 'now') return { retryAt: new Date(clock.now()) }
  if (fate === 'reject') throw new Error('no')
  if (fate === 'dead') return { deadLetter: 'no' }
  if (fate === 'hang') return new Promise(() => {})
  if (fate === 'slow') await new Promise<void>((resolve) => clock.setTimeout(resolve, 900))
  return { complete: true }
}
