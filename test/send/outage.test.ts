/** What a destination does while its URLs fail for hours: it holds messages, and loses and repeats none. */

import { describe, expect, it, test } from 'vitest'
import type { CircuitEvent } from '../../src/send/circuit.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { createQueue } from '../../src/store/create-queue.ts'
import { createMemoryStore } from '../../src/store/memory/memory-store.ts'
import type { ClaimedJob } from '../../src/store/queue-types.ts'
import { type ManualClock, manualClock, type Script, type Step } from '../../src/testing.ts'
import { hear } from '../support/channel.ts'
import { HOUR, setUp } from './set-up.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * HOUR
const URL_A = 'https://a.example/hooks'
const URL_B = 'https://b.example/hooks'

/** A destination whose URL answers with `down` until it is said to be up. */
function setUpOutage(down: Step = 503, options: Partial<DestinationOptions> = {}) {
  const world = { answer: down }
  const script: Script = [() => world.answer]
  const set = setUp(script, options)
  let sent = 0
  return {
    ...set,
    recover: () => void Object.assign(world, { answer: 200 }),
    posts: () => set.captured.requests.length,
    sent: () => sent,
    async sendFor(ms: number, everyMs: number) {
      for (let at = 0; at < ms; at += everyMs) {
        sent += 1
        await set.destination.track({ userId: 'u', event: 'E', messageId: `m${sent}` })
        await set.clock.advance(everyMs)
      }
    },
    delivered: () => set.reports.filter(({ status }) => status === 'delivered').length,
    failed: () => set.reports.filter(({ status }) => status === 'failed').map(({ reason }) => reason),
  }
}

function setUpClaims(clock: ManualClock) {
  const store = createMemoryStore({ name: 'outage', clock })
  const claims: ClaimedJob[] = []
  const claim: typeof store.claim = (limit) => {
    const claimed = store.claim(limit) as Awaited<ReturnType<typeof store.claim>>
    claims.push(...claimed)
    return claimed
  }
  return { claims, queue: createQueue({ ...store, claim }, { name: 'outage', clock }) }
}

test.each<Step>([503, 'hang'])(
  'down for four hours (%s), an endpoint gets few posts, then everything',
  async (down) => {
    const outage = setUpOutage(down)

    await outage.sendFor(4 * HOUR - MINUTE, 6 * SECOND)
    const posts = outage.posts()
    expect(posts / outage.sent()).toBeLessThan(0.3)
    expect(outage.delivered()).toBe(0)

    outage.recover()
    await outage.clock.advance(5 * MINUTE)
    expect(outage.failed()).toEqual([])
    expect(outage.delivered()).toBeGreaterThanOrEqual(0.99 * outage.sent())

    await outage.clock.advance(HOUR)
    expect(outage.delivered()).toBe(outage.sent())
    const ids = outage.captured.messages.slice(posts).map(({ messageId }) => messageId)
    expect(new Set(ids).size).toBe(ids.length) // Each once after the outage.
  },
)

test('held messages are not touched', async () => {
  const clock = manualClock()
  const { claims, queue } = setUpClaims(clock)
  const outage = setUpOutage(503, { clock, queue })
  await outage.sendFor(MINUTE, 500)
  const touched = claims.length

  await outage.sendFor(10 * MINUTE, 500)
  expect(claims.length - touched).toBeLessThan(10 * 4) // A probe every 15 to 30 seconds.

  outage.recover()
  await clock.advance(10 * MINUTE)
  expect(outage.delivered()).toBe(outage.sent())
  expect(claims.filter(({ claimCount }) => claimCount === 1)).toHaveLength(outage.sent())
})

describe('the four hours', () => {
  it('end with one more attempt a second, and what that does not reach is a dead letter that can be redriven', async () => {
    const outage = setUpOutage()
    await outage.sendFor(10 * SECOND, SECOND)
    await outage.sendFor(MINUTE, 30) // More than there are probes in four hours.
    await outage.clock.advance(4 * HOUR - MINUTE)
    const posts = outage.posts()
    for (let i = 0; i < 300; i++) await outage.clock.advance(SECOND) // Each lets the loop catch up.
    const reasons = outage.failed()
    const last = reasons.filter((reason) => reason === 'window_over').length
    expect(reasons.filter((reason) => reason === 'circuit_open').length).toBeGreaterThan(1_000)
    expect(last).toBeGreaterThan(30)
    expect(outage.posts() - posts).toBeLessThan(90)

    outage.recover()
    await outage.clock.advance(HOUR)
    const letters = await outage.destination.deadLetters({ limit: 10_000 })
    expect(letters.length + outage.delivered()).toBe(outage.sent())
    await outage.destination.redrive('all')
    await outage.clock.advance(MINUTE)
    expect(outage.delivered()).toBe(outage.sent())
  })

  it('end in time in an outage of a day, with one more attempt each where fewer than one a second end', async () => {
    let inTime = 0
    const others: unknown[] = []
    const outage = setUpOutage(503, {
      onAttempt: ({ status, message: { messageId = '', timestamp = '' }, attempts: [first] }) => {
        if (status !== 'failed' || messageId.length < 3) return // The first were tried before the circuit opened.
        const since = Date.parse(timestamp) + MINUTE
        const age = outage.clock.now() - Math.max(since, first?.at.getTime() ?? since)
        const isInTime = first !== undefined && age <= 4 * HOUR
        if (isInTime) inTime += 1
        else others.push([messageId, age, first])
      },
    })
    await outage.sendFor(DAY, MINUTE)
    expect(others).toEqual([])
    expect(inTime).toBeGreaterThan(1_000)
    expect((await outage.destination.health()).waiting).toBeLessThan(300)
  })
})

test('a time in which nothing works takes nothing from messages that were claimed, held and never tried', async () => {
  const clock = manualClock()
  const { queue } = setUpClaims(clock)
  const outage = setUpOutage(503, { clock, queue, webhooks: [{ url: URL_A }] })
  await outage.sendFor(5 * HOUR, 10 * SECOND) // Longer than four hours: each is claimed once.
  const [failed, before] = [outage.failed().length, outage.reports.length]
  void queue.pause()
  await clock.advance(5 * HOUR)
  outage.recover()
  outage.destination.update({ webhooks: [{ url: URL_B }] }) // Its circuit is closed, as after a restart.
  queue.resume()
  await clock.advance(HOUR)
  const later = outage.reports.slice(before)
  const untried = later.filter(({ status, attempts }) => status === 'failed' && attempts.length === 0)
  expect(untried).toEqual([])
  expect(outage.delivered()).toBeGreaterThan(outage.sent() - failed - 800) // Those that probes tried have four hours by the clock.
})

describe('of several URLs', () => {
  const webhooks = [{ url: URL_A }, { url: URL_B }]
  /** Answers of the first URL, and of the second. */
  const answerBy = (first: () => Step, second: Step): Script => [({ url }) => (url === URL_A ? first() : second)]

  it('an open circuit of one does not delay another', async () => {
    const script = answerBy(() => 'hang', 200)
    const { clock, destination, captured, reports } = setUp(script, { webhooks })
    for (let i = 0; i < 20; i++) {
      await destination.track({ userId: 'u', event: 'E' })
      await clock.advance(6 * SECOND)
    }
    const urls = [
      { circuit: 'open', delivered: 0 },
      { circuit: 'closed', delivered: 20, failed: 0 },
    ]
    expect(await destination.health()).toMatchObject({ status: 'degraded', urls })

    const before = reports.length
    await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)

    expect([reports.length - before, captured.requests.at(-1)?.url]).toEqual([1, URL_B])
  })

  it('a message that only a held URL may still accept waits for it, half as long again', async () => {
    let answer = 503
    const script = answerBy(() => answer, 400)
    const { clock, destination, reports } = setUp(script, { webhooks, circuit: { failures: 1 } })

    for (let i = 0; i < 5; i++) await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(HOUR)
    expect(reports.every(({ status }) => status === 'retrying')).toBe(true)

    answer = 200
    await clock.advance(HOUR / 2)
    expect(reports.filter(({ status }) => status === 'delivered')).toHaveLength(5)
  })
})

describe('a circuit', () => {
  it('tells when it opens and closes, and shows in health()', async () => {
    const [events, observed]: CircuitEvent[][] = [[], []]
    const published = hear('hookline:circuit')
    const webhooks = [{ url: `${URL_A}?token=x` }]
    const outage = setUpOutage(503, { webhooks, onCircuit: (event) => events?.push(event) })
    outage.destination.observe({ circuit: (event) => observed?.push(event) })
    const [url, openSince] = [`${URL_A}?…`, expect.any(Date)]

    await outage.sendFor(10 * SECOND, SECOND)
    await outage.clock.advance(10 * MINUTE)
    expect(events).toMatchObject([{ url, state: 'open', openSince, cause: { status: 503 } }])
    expect(await outage.destination.health()).toMatchObject({
      status: 'degraded',
      urls: [{ url, circuit: 'open', openSince }],
    })

    outage.recover()
    await outage.clock.advance(MINUTE)
    expect(events?.slice(1)).toEqual([{ url, state: 'closed', cause: expect.objectContaining({ status: 200 }) }])
    expect([published, observed]).toEqual([events, events])
    expect(JSON.stringify(events)).not.toContain('token')
  })

  it('of a URL that an update replaces is gone, and what it held is sent at once', async () => {
    const script: Script = [({ url }) => (url === URL_A ? 503 : 200)]
    const { clock, destination, reports } = setUp(script, { webhooks: [{ url: URL_A }] })
    for (let i = 0; i < 100; i++) await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(10)
    const tried = reports.length
    expect(tried).toBeLessThan(50)

    destination.update({ webhooks: [{ url: URL_B }] })
    await clock.advance(0)

    expect(reports.filter(({ status }) => status === 'delivered')).toHaveLength(100 - tried)
    expect((await destination.health()).urls).toMatchObject([{ url: URL_B, circuit: 'closed' }])
  })

  it('keeps no process alive without messages', async () => {
    const outage = setUpOutage()
    await outage.sendFor(10 * SECOND, SECOND)
    await outage.destination.forget('u')
    await outage.clock.advance(MINUTE)
    expect(outage.clock.timers).toBe(0)
  })
})
