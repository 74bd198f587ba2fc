import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Claim } from '../../src/receive/dedupe.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

const WINDOW_MS = 60_000
const LEASE_MS = 1000

/** A claim in memory ends at once. */
interface Held {
  confirm(): void
  release(): void
}

/** The claim, when it is one. */
function claimed(claim: Claim | Promise<Claim>): Held {
  if (typeof claim === 'string' || claim instanceof Promise) throw new Error(`it is ${claim}`)
  return claim
}

function setUp(maxKeys = 100_000) {
  const clock = manualClock()
  const dedupe = memoryDedupe({ dedupeWindowMs: WINDOW_MS, leaseMs: LEASE_MS, maxKeys, clock })
  const ask = (key = 'key') => dedupe.claim(key)
  const claim = (key = 'key') => claimed(ask(key))
  const handle = (key: string) => void claim(key).confirm()
  return { clock, dedupe, advance: clock.advance, ask, claim, handle }
}

describe('a claim', () => {
  it('of a thousand at once is for one', async () => {
    const { ask } = setUp()
    const answers = Array.from({ length: 1000 }, () => ask())
    expect(answers.filter((answer) => answer !== 'in_progress')).toHaveLength(1)
  })

  it('confirmed makes the key done for the window, and no longer', async () => {
    const { claim, ask, advance } = setUp()
    const first = claim()
    await advance(LEASE_MS - 1)
    first.confirm()
    await advance(WINDOW_MS - 1)
    expect(ask()).toBe('done')
    await advance(1)
    claim()
    expect(ask()).toBe('in_progress')
  })

  it('released leaves the key to the next', async () => {
    const { claim, ask } = setUp()
    claim().release()
    claim().confirm()
    expect(ask()).toBe('done')
  })

  it('ends with its lease, and not before', async () => {
    const { claim, ask, advance } = setUp()
    claim()
    await advance(LEASE_MS - 1)
    expect(ask()).toBe('in_progress')
    await advance(1)
    claim()
    await advance(LEASE_MS - 1)
    expect(ask()).toBe('in_progress')
  })

  it('ends once: a second confirm or release has no effect', async () => {
    const { claim, ask } = setUp()
    const first = claim('a')
    first.confirm()
    first.release()
    expect(ask('a')).toBe('done')
    const second = claim('b')
    second.release()
    second.confirm()
    claim('b')
  })
})

describe('a claim whose lease is over', () => {
  it('confirmed while no other claim holds the key makes it done', async () => {
    const { claim, ask, advance } = setUp()
    const late = claim()
    await advance(5 * LEASE_MS)
    late.confirm()
    expect(ask()).toBe('done')
  })

  it('confirmed after another claim whose lease is over too makes it done', async () => {
    const { claim, ask, advance } = setUp()
    const late = claim()
    await advance(LEASE_MS)
    claim()
    await advance(LEASE_MS)
    late.confirm()
    expect(ask()).toBe('done')
  })

  it('confirmed while another claim holds the key has no effect', async () => {
    const { claim, ask, advance } = setUp()
    const late = claim()
    await advance(LEASE_MS)
    const holder = claim()
    late.confirm()
    expect(ask()).toBe('in_progress')
    holder.release()
    claim()
  })

  it('released while another claim holds the key has no effect', async () => {
    const { claim, ask, advance } = setUp()
    const late = claim()
    await advance(LEASE_MS)
    claim()
    late.release()
    expect(ask()).toBe('in_progress')
  })

  it.each(['confirm', 'release'] as const)('%s: has no effect when the key was done meanwhile', async (step) => {
    const { claim, ask, advance } = setUp()
    const late = claim()
    await advance(LEASE_MS)
    claim().confirm()
    await advance(WINDOW_MS - 1)
    late[step]()
    expect(ask()).toBe('done')
    await advance(1)
    claim()
  })
})

it('forgets what was handled the longest ago when it is full', () => {
  const { dedupe, handle } = setUp(3)
  for (const key of ['a', 'b', 'c', 'd']) handle(key)
  expect(['b', 'c', 'd'].map((key) => dedupe.claim(key))).toEqual(['done', 'done', 'done'])
  expect(dedupe.claim('a')).toMatchObject({ confirm: expect.any(Function) })
})

it('never forgets what is being handled, and says when there is nothing else', async () => {
  const { clock, dedupe, claim, handle } = setUp(2)
  handle('done')
  void dedupe.claim('a')
  await clock.advance(1)
  const b = claim('b')
  expect(() => dedupe.claim('c')).toThrow(
    expect.objectContaining({ code: 'dedupe_unavailable', message: expect.stringContaining('`maxKeys` (2)') }),
  )
  expect([dedupe.claim('a'), dedupe.claim('b')]).toEqual(['in_progress', 'in_progress'])
  b.release()
  expect(dedupe.claim('c')).toMatchObject({ confirm: expect.any(Function) })
  await clock.advance(LEASE_MS)
  expect(dedupe.claim('d')).toMatchObject({ confirm: expect.any(Function) })
})

it('does not take a place of others for a confirm that comes after the lease', async () => {
  const { clock, dedupe, claim } = setUp(2)
  const late = claim('late')
  await clock.advance(LEASE_MS)
  void dedupe.claim('a')
  void dedupe.claim('b')
  late.confirm()
  expect([dedupe.claim('a'), dedupe.claim('b')]).toEqual(['in_progress', 'in_progress'])
  expect(() => dedupe.claim('late')).toThrow('maxKeys')
})

it('does not forget what is handled again after its window, in place of what ended', async () => {
  const { clock, dedupe, handle } = setUp(4)
  for (const key of ['a', 'b', 'c', 'd']) handle(key)
  await clock.advance(WINDOW_MS)
  for (const key of ['c', 'e', 'f', 'g']) handle(key)
  expect(dedupe.claim('c')).toBe('done')
})

it('uses a monotonic clock', async () => {
  const clock = manualClock()
  let shift = 0
  const dedupe = memoryDedupe({ leaseMs: LEASE_MS, clock: { ...clock, now: () => clock.now() + shift } })
  void dedupe.claim('a')
  shift = 10 * LEASE_MS
  expect(dedupe.claim('a')).toBe('in_progress')
  shift = -10 * LEASE_MS
  await clock.advance(LEASE_MS)
  expect(dedupe.claim('a')).toBeTypeOf('object')
})

it('forgets what ended before it is full', async () => {
  const { clock, dedupe, handle } = setUp()
  handle('old')
  await clock.advance(WINDOW_MS)
  const forgotten = vi.spyOn(Map.prototype, 'delete')
  onTestFinished(() => forgotten.mockRestore())
  void dedupe.claim('new')
  expect(forgotten).toHaveBeenCalledWith('old')
})

it('changes nothing any more when it is closed', () => {
  const { dedupe, claim, ask } = setUp()
  const open = claim()
  void dedupe.close()
  void dedupe.close()
  open.confirm()
  open.release()
  expect(ask).toThrow(expect.objectContaining({ code: 'shutting_down' }))
})

it.each([
  [null, '`memoryDedupe: options` must be an object'],
  [{ leaseMs: 1.5 }, '`leaseMs` must be a whole number'],
  [{ maxKeys: 0 }, '`maxKeys` must be a whole number'],
  [{ maxKeys: 2 ** 24 }, '`maxKeys` must be a whole number'],
  [{ clock: {} }, '`clock.now` must be a function'],
])('refuses options that make no sense: %j', (options, message) => {
  expect(() => memoryDedupe(options as never)).toThrow(TypeError)
  expect(() => memoryDedupe(options as never)).toThrow(message)
})
