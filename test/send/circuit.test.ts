import { describe, expect, it } from 'vitest'
import { Circuit, type CircuitPolicy, readCircuitOptions } from '../../src/send/circuit.ts'
import { Circuits } from '../../src/send/circuits.ts'
import { type DestinationOptions, readDestinationOptions } from '../../src/send/destination-options.ts'
import { LAST_START_MS } from '../../src/send/schedule.ts'
import type { Attempt } from '../../src/send/sender-types.ts'
import type { Target } from '../../src/send/webhooks.ts'
import type { ClaimedJob } from '../../src/store/queue-types.ts'
import { manualClock } from '../../src/testing.ts'
import { attemptOf, HOUR } from './set-up.ts'

const ok = attemptOf({ status: 200 })
const failed = attemptOf({ status: 503 })

function setUp(options: Partial<CircuitPolicy> = {}) {
  const policy = { failures: 3, maxProbeMs: 8_000, maxPerSecond: undefined, concurrency: 50, random: () => 0.999999 }
  const circuit = new Circuit({ ...policy, ...options })
  const once = (result: Attempt, now = 0): boolean => circuit.begin(now)(result, now)
  const open = (now = 0): void => {
    while (circuit.state === 'closed') once(failed, now)
  }
  return { circuit, once, open }
}

describe('a closed circuit', () => {
  it('has room for all that may run at a time', () => {
    const { circuit } = setUp()
    const end = circuit.begin(0)
    expect(circuit.room(0)).toBe(49)
    end(ok, 0)
    expect(circuit.room(0)).toBe(50)
    expect(circuit).toMatchObject({ state: 'closed', openSince: undefined, probeAt: undefined })
  })

  it.each([
    ['a 5xx', { status: 500 }],
    ['a self-signed certificate', { error: 'self_signed' }],
  ] as const)('opens after so many failures in a row: %s', (_what, outcome) => {
    const { circuit, once } = setUp()
    expect([1, 2, 3].map(() => once(attemptOf(outcome)))).toEqual([false, false, true])
    expect(circuit).toMatchObject({ state: 'open', openSince: 0 })
  })

  it.each([
    ['a 2xx', { status: 200 }],
    ['a final status', { status: 404 }],
  ] as const)('begins to count anew after %s', (_what, outcome) => {
    const { circuit, once } = setUp()
    for (const result of [failed, failed, attemptOf(outcome), failed, failed]) once(result)
    expect(circuit.state).toBe('closed')
  })

  it('does not count what the end of the destination ended', () => {
    const { circuit, once } = setUp({ failures: 1 })
    expect(once(attemptOf({ error: 'closed' }))).toBe(false)
    expect(circuit.room(0)).toBe(50)
  })

  it.each([
    ['a 429', { status: 429 }, 1_000],
    ['a Retry-After', { status: 503, retryAfterMs: 90_000 }, 90_000],
    ['a Retry-After of weeks', { status: 429, retryAfterMs: 1e9 }, 30 * 60_000],
  ])('opens at once after %s, for as long', (_what, outcome, ms) => {
    const { circuit, once } = setUp()
    once(attemptOf(outcome))
    expect(circuit).toMatchObject({ state: 'open', probeAt: ms })
  })
})

describe('an open circuit', () => {
  it('has no room until its probe is due, then for one', () => {
    const { circuit, open } = setUp()
    open()
    expect([0, 999, 1_000, 60_000].map((now) => circuit.room(now))).toEqual([0, 0, 1, 1])
    expect(circuit.roomAt(0)).toBe(1_000)
    circuit.begin(1_000)
    expect(circuit).toMatchObject({ state: 'half_open', probeAt: undefined, openSince: 0 })
    expect(circuit.room(60_000)).toBe(0)
    expect(circuit.roomAt(60_000)).toBeUndefined()
  })

  it('waits twice as long after each probe that failed, up to a limit, with jitter', () => {
    const { circuit, once, open } = setUp({ random: () => 0 })
    open()
    const delays = [1, 2, 3, 4, 5].map(() => {
      const now = circuit.probeAt ?? 0
      expect(once(failed, now)).toBe(false)
      return (circuit.probeAt ?? 0) - now
    })
    expect(delays).toEqual([1_000, 2_000, 4_000, 4_000, 4_000])
  })

  it('waits as long as the first time when it opens again after a success', () => {
    const { circuit, once, open } = setUp({ random: () => 0 })
    open()
    once(failed, 1_000)
    once(ok, 8_000)
    open(8_000)
    expect(circuit.probeAt).toBe(8_500)
  })

  it('closes when a probe succeeds, and grows from one attempt at a time', () => {
    const { circuit, once, open } = setUp()
    open()
    expect(once(ok, 1_000)).toBe(true)
    expect(circuit).toMatchObject({ state: 'closed', openSince: undefined })
    const rooms = Array.from({ length: 11 }, () => {
      const room = circuit.room(1_000)
      once(ok, 1_000)
      return room
    })
    expect(rooms).toEqual([1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4])
    for (let i = 0; i < 2_000; i++) once(ok, 1_000)
    expect(circuit.room(1_000)).toBe(50)
  })

  it('shrinks while it grows again and an attempt fails, to one at least', () => {
    const { circuit, once, open } = setUp({ failures: 10 })
    open()
    for (let i = 0; i < 5; i++) once(ok, 1_000)
    expect(circuit.room(1_000)).toBe(3)
    for (let i = 0; i < 5; i++) once(failed, 1_000)
    expect(circuit.room(1_000)).toBe(1)
    expect(circuit.state).toBe('closed')
  })

  it('learns nothing from attempts that began before it opened', () => {
    const { circuit, once, open } = setUp()
    const late = [circuit.begin(0), circuit.begin(0), circuit.begin(0), circuit.begin(0)]
    open()
    const { probeAt } = circuit
    for (const end of late.slice(0, 3)) expect(end(failed, 500)).toBe(false)
    expect(circuit).toMatchObject({ state: 'open', probeAt })
    once(ok, 1_000)
    late[3]?.(failed, 1_500)
    expect(circuit).toMatchObject({ state: 'closed' })
    expect(circuit.room(1_500)).toBe(1)
  })

  it('probes again at once when the probe was ended by the end of the destination', () => {
    const { circuit, once, open } = setUp()
    open()
    once(attemptOf({ error: 'closed' }), 1_000)
    expect(circuit.state).toBe('open')
    expect(circuit.room(1_000)).toBe(1)
  })

  it('that never opens sends whatever happens', () => {
    const { circuit, once } = setUp(readCircuitOptions(false))
    for (let i = 0; i < 100; i++) once(attemptOf({ status: 429, retryAfterMs: 60_000 }))
    expect(circuit.room(0)).toBe(50)
  })
})

describe('a pace', () => {
  it('admits a tenth of a second at once, then as many as were asked for', () => {
    const { circuit, once } = setUp({ concurrency: 1_000, maxPerSecond: 100 })
    const begun = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].filter((now) => circuit.room(now) > 0 && !once(ok, now))
    expect(begun).toHaveLength(10)
    expect(circuit.roomAt(0)).toBe(10)
    expect([5, 10, 40, 9_999].map((now) => circuit.room(now))).toEqual([0, 1, 4, 10])
  })

  it.each([1, 3, 7, 30, 1_000])('of %i a second is kept, and reached', (maxPerSecond) => {
    const { circuit, once } = setUp({ concurrency: 10_000, maxPerSecond })
    let posts = 0
    for (let now = 0; now < 20_000; now = circuit.roomAt(now) ?? now) {
      while (circuit.room(now) > 0) {
        once(ok, now)
        posts += 1
      }
    }
    expect(posts).toBeGreaterThanOrEqual(20 * maxPerSecond)
    expect(posts).toBeLessThanOrEqual(20 * maxPerSecond + Math.max(1, maxPerSecond / 10) + 1)
  })

  it('holds a probe, too', () => {
    const { circuit, open, once } = setUp({ failures: 1, maxPerSecond: 1, random: () => 0 })
    open()
    expect([circuit.probeAt, circuit.roomAt(0), circuit.room(999), circuit.room(1_000)]).toEqual([500, 1_000, 0, 1])
    once(failed, 1_000)
    expect(circuit.room(1_500)).toBe(0)
  })
})

describe('the circuits of two URLs', () => {
  function setUpCircuits(options: Partial<DestinationOptions> = {}) {
    const clock = manualClock()
    const webhooks = ['https://a.example/', 'https://b.example/'].map((url) => ({ url }))
    const circuit = { failures: 1, lastAttemptsPerSecond: 2 }
    const settings = readDestinationOptions({ webhooks, clock, random: () => 0, circuit, ...options })
    const circuits = new Circuits(settings, () => {})
    const [a, b] = settings.targets as [Target, Target]
    const fail = (target: Target) => circuits.begin(target)(failed)
    const at = (ms: number) => new Date(clock.now() + ms)
    return { circuits, clock, settings, a, b, fail, at }
  }

  it('hold messages for a quarter to half of the time that the last has been open: 10 seconds to an hour', async () => {
    const { circuits, clock, settings, a, b, fail } = setUpCircuits()
    const holds = () => [[a], [b], [a, b]].map((targets) => circuits.holdMs(targets))
    expect(holds()).toEqual([5_000, 5_000, 5_000])
    fail(a)
    await clock.advance(40_000)
    fail(b)
    expect(holds()).toEqual([10_000, 5_000, 5_000])
    await clock.advance(HOUR)
    expect(holds()).toEqual([HOUR / 4, HOUR / 4, HOUR / 4])
    const off = { ...settings, enabled: false }
    circuits.update(off)
    expect(holds()).toEqual([5_000, 5_000, 5_000])
    await clock.advance(40_000)
    circuits.update(off) // It began before.
    expect(holds()).toEqual([10_000, 10_000, 10_000])
  })

  it('begin the four hours at the first claim, or now, or a minute after the arrival or the begin of the hold', async () => {
    const { circuits, clock, a, b, fail, at } = setUpCircuits()
    const [dueAt, firstAt] = [at(0), at(1_000)]
    const startsOf = (job: object, ...befores: (number | undefined)[]) =>
      befores.map((before) => circuits.windowStart(job as ClaimedJob, before) - dueAt.getTime())
    await clock.advance(2_000)
    fail(a)
    expect(startsOf({ dueAt, firstAt }, undefined, 5)).toEqual([1_000, 2_000])
    await clock.advance(2_000)
    fail(b)
    expect(startsOf({ dueAt, firstAt }, undefined, Number(at(HOUR)))).toEqual([64_000, HOUR + 4_000])
    expect(startsOf({ dueAt: at(3_000), firstAt }, undefined)).toEqual([67_000])
    expect(startsOf({ firstAt: at(5_000) }, undefined)).toEqual([69_000])
    const set = clock.now() - 10 * HOUR // The clock of the system is set back.
    Object.assign(clock, { now: () => set })
    expect(startsOf({ dueAt: at(-HOUR), firstAt }, undefined)).toEqual([64_000 - 10 * HOUR])
  })

  it('have room for a probe, and after four hours for all that they hold, of which few are tried', async () => {
    const { circuits, clock, settings, a, b, fail, at } = setUpCircuits()
    const room = () => [circuits.room.count(), circuits.room.nextAt()]
    expect(setUpCircuits({ maxPerSecond: 30 }).circuits.room.count()).toBe(3)
    expect(room()).toEqual([50, at(0)])
    fail(a)
    expect([circuits.admit([a, b]), room()]).toEqual([[b], [50, at(0)]])
    fail(b)
    expect([circuits.admit([a, b]), circuits.areOpen, room()]).toEqual([[], true, [0, at(500)]])
    await clock.advance(500)
    expect([circuits.admit([a, b]), room()]).toEqual([
      [a, b],
      [1, at(0)],
    ])
    circuits.update({ ...settings, enabled: false })
    expect(room()).toEqual([0, at(LAST_START_MS + 59_500)])
    await clock.advance(LAST_START_MS + 59_500)
    expect(room()).toEqual([Number.POSITIVE_INFINITY, at(0)])
    expect([1, 2].map(() => circuits.admitLast())).toEqual([true, false])
    await clock.advance(500)
    expect(circuits.admitLast()).toBe(true)
  })
})
