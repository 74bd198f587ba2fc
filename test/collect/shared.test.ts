/** Destinations of one source get the same messages, and share nothing else. */

import { describe, expect, it, vi } from 'vitest'
import type { CollectorDestination } from '../../src/collect/collector-types.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import type { Submission } from '../../src/send/destination-types.ts'
import { readMessage } from '../../src/send/stored-submission.ts'
import type { Job } from '../../src/store/queue-types.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { setUpCollector, writeKey } from '../support/collect.ts'

/** A destination whose queue keeps what is pushed, and hands out nothing. */
function setUpDestination(options: Partial<DestinationOptions> = {}) {
  const jobs: Job[] = []
  const queue = {
    ...memoryQueue(),
    push: async (pushed: readonly Job[]) => void jobs.push(...pushed),
    work: () => () => {},
  }
  const destination = createDestination({ webhooks: [{ url: 'https://a.example/' }], queue, ...options })
  return { destination, jobs, bodies: () => jobs.map(({ body }) => readMessage(body)) }
}

const collectFor = (...destinations: readonly CollectorDestination[]) =>
  setUpCollector({ sources: [{ name: 'shop', writeKey, destinations }] }).post

const page = { type: 'page', userId: 'u', messageId: 'm', timestamp: '2026-01-15T09:30:00.000Z' }
const alias = { type: 'alias', userId: 'u', previousId: 'p', messageId: 'n' }

describe('destinations of one source', () => {
  it('get the same bytes, under the same ids, as each would make of the messages itself', async () => {
    const [one, two, alone] = [setUpDestination(), setUpDestination(), setUpDestination()]
    const other = { submit: vi.fn(async (_given: readonly Submission[]) => []) }
    await collectFor(one.destination, other, two.destination)('/v1/batch', { batch: [page, alias] })
    await alone.destination.submit(other.submit.mock.calls[0]?.[0] ?? [])
    expect(one.jobs).toHaveLength(2)
    expect(two.jobs).toEqual(one.jobs)
    expect(alone.jobs).toEqual(one.jobs)
  })

  it('get ids of their own for a call without a messageId', async () => {
    const [one, two] = [setUpDestination(), setUpDestination()]
    await collectFor(one.destination, two.destination)('/v1/page', { userId: 'u' })
    expect(one.jobs[0]?.id).toMatch(/^[0-9a-f-]{36}$/)
    expect(two.jobs[0]?.id).not.toBe(one.jobs[0]?.id)
  })

  it('each decide what they queue, by their own settings and their own clock', async () => {
    const off = setUpDestination({ enabled: false })
    const clock = manualClock()
    await clock.advance(60_000)
    const old = setUpDestination({ historicalAfterMs: 30_000, clock })
    const young = setUpDestination({ historicalAfterMs: 90_000, clock })
    const post = collectFor(off.destination, old.destination, young.destination)
    const refused = { ...page, messageId: 'n', integrations: { Webhooks: false } }
    expect((await post('/v1/batch', { batch: [page, refused] })).json.accepted).toBe(2)
    expect([off, old, young].map(({ jobs }) => jobs.length)).toEqual([0, 0, 1])
  })
})

it('a destination that is wrapped gets what its wrapper changed in place', async () => {
  const { destination, bodies } = setUpDestination()
  const wrapped = {
    submit(submissions: readonly Submission[]) {
      for (const { message } of submissions) Object.assign(message, { userId: 'hidden' })
      return destination.submit(submissions)
    },
  }
  await collectFor(wrapped)('/v1/page', page)
  expect(bodies()).toMatchObject([{ userId: 'hidden' }])
})
