/** The promise of a client: whatever happens, a call that was taken is delivered, passed to onError or returned by close. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ClientOptions } from '../../src/client.ts'
import { runs } from '../support/properties.ts'
import { type Answer, eventsOf, numbered, setUp } from './dispatcher.ts'

type Step = { readonly record: number } | { readonly wait: number } | 'flush'

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ record: fc.integer({ min: 1, max: 7 }) }) },
  { weight: 2, arbitrary: fc.record({ wait: fc.constantFrom(0, 1, 50, 999, 1000, 5000, 30_000) }) },
  fc.constant('flush' as const),
)

const answer: fc.Arbitrary<Answer> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(200) },
  fc.constantFrom<Answer>(400, 401, 413, 429, 500, 503, 'hang', new Error('reset')),
  fc.constant({ status: 429, headers: { 'retry-after': '3' } }),
  fc.constant({ status: 200, body: '{"refused":[{"index":0},{"index":99}]}' }),
  fc.constant({ status: 200, body: '{"accepted":0,"refused":[{"index":0}]}' }),
  fc.constant({ status: 200, body: '{"accepted":0,"refused":[{"index":0},{"index":1,"count":2}]}' }),
  fc.constant({ status: 200, body: '{"accepted":0,"refused":[{"index":0}' }),
)

const options: fc.Arbitrary<Partial<ClientOptions>> = fc.record({
  flushAt: fc.integer({ min: 1, max: 4 }),
  maxQueued: fc.integer({ min: 4, max: 25 }),
  maxInFlight: fc.integer({ min: 1, max: 3 }),
  maxRetries: fc.integer({ min: 0, max: 3 }),
  whenFull: fc.constantFrom('throw', 'drop_oldest'),
  random: fc.constantFrom(0, 0.5).map((share) => () => share),
})

it('each call that was taken is delivered, reported or given back; no batch holds one twice, and none is reported twice', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 25 }),
      fc.array(answer, { maxLength: 25 }),
      options,
      fc.constantFrom(0, 1, 1000, 60_000),
      async (steps, answers, given, timeoutMs) => {
        const { client, clock, failures, requests, batches } = setUp(answers, given)
        const delivered = new Set<unknown>()
        const taken: string[] = []
        let count = 0
        const flushes: Promise<void>[] = []

        for (const each of steps) {
          if (each === 'flush') flushes.push(client.flush())
          else if ('wait' in each) await clock.advance(each.wait)
          else {
            for (let index = 0; index < each.record; index++) {
              const call = numbered(count++)
              try {
                client.track(call)
                taken.push(call.event)
              } catch (error) {
                expect(error).toMatchObject({ code: 'queue_full' })
              }
            }
          }
        }
        const closing = client.close({ timeoutMs })
        await clock.advance(timeoutMs)
        const rest = eventsOf(await closing)
        await Promise.all(flushes)

        for (const [index, calls] of batches().entries()) {
          const events = eventsOf(calls)
          expect(new Set(events).size).toBe(events.length)
          const answered = answers[index] ?? 200
          const status = typeof answered === 'object' && 'status' in answered ? answered.status : answered
          if (status === 200) for (const event of events) delivered.add(event)
        }
        const reported = failures.flatMap(({ calls }) => eventsOf(calls))
        const ends = new Set([...delivered, ...reported, ...rest])
        expect(taken.filter((event) => !ends.has(event))).toEqual([])
        expect(new Set([...reported, ...rest]).size).toBe(reported.length + rest.length)
        const first = batches().filter((_, index) => requests[index]?.headers['x-retry-count'] === undefined)
        const places = first.flatMap(eventsOf).map((event) => Number(String(event).slice(6)))
        expect(places).toEqual(places.toSorted((a, b) => a - b))
        expect(rest).toEqual([...rest].sort((a, b) => Number(String(a).slice(6)) - Number(String(b).slice(6))))
      },
    ),
    { numRuns: runs(50) },
  )
})
