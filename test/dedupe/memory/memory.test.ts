import { expect, it, onTestFinished, vi } from 'vitest'
import { memoryDedupe } from '../../../src/dedupe/memory/index.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { claimed, LEASE_MS, testDedupe, WINDOW_MS } from '../../contracts/dedupe.ts'

testDedupe('memory', () => {
  const clock = manualClock()
  return { dedupe: memoryDedupe({ dedupeWindowMs: WINDOW_MS, leaseMs: LEASE_MS, clock }), advance: clock.advance }
})

function setUp(maxKeys: number) {
  const clock = manualClock()
  const dedupe = memoryDedupe({ dedupeWindowMs: WINDOW_MS, leaseMs: LEASE_MS, maxKeys, clock })
  const handle = (key: string) => void claimed(dedupe.claim(key) as never).confirm()
  return { clock, dedupe, handle }
}

it('forgets what was handled the longest ago when it is full', () => {
  const { dedupe, handle } = setUp(3)
  for (const key of ['a', 'b', 'c', 'd']) handle(key)
  expect(['b', 'c', 'd'].map((key) => dedupe.claim(key))).toEqual(['done', 'done', 'done'])
  expect(dedupe.claim('a')).toMatchObject({ confirm: expect.any(Function) })
})

it('never forgets what is being handled, and says when there is nothing else', async () => {
  const { clock, dedupe, handle } = setUp(2)
  handle('done')
  dedupe.claim('a')
  await clock.advance(1)
  const b = claimed(await dedupe.claim('b'))
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
  const { clock, dedupe } = setUp(2)
  const late = claimed(await dedupe.claim('late'))
  await clock.advance(LEASE_MS)
  dedupe.claim('a')
  dedupe.claim('b')
  late.confirm()
  expect([dedupe.claim('a'), dedupe.claim('b')]).toEqual(['in_progress', 'in_progress'])
  expect(() => dedupe.claim('late')).toThrow('maxKeys')
})

it('finds room among many claims that ended', async () => {
  const { clock, dedupe } = setUp(10)
  for (let index = 0; index < 10; index += 1) dedupe.claim(`${index}`)
  await clock.advance(LEASE_MS)
  for (let index = 10; index < 20; index += 1) expect(dedupe.claim(`${index}`)).toBeTypeOf('object')
  expect(() => dedupe.claim('one more')).toThrow('maxKeys')
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
  dedupe.claim('a')
  shift = 10 * LEASE_MS
  expect(dedupe.claim('a')).toBe('in_progress')
  shift = -10 * LEASE_MS
  await clock.advance(LEASE_MS)
  expect(dedupe.claim('a')).toBeTypeOf('object')
})

it('makes room of what ended, so that a window that moves on stays whole', async () => {
  const clock = manualClock()
  const dedupe = memoryDedupe({ dedupeWindowMs: 100, leaseMs: 100, maxKeys: 1000, clock })
  for (let index = 0; index < 20_000; index += 1) {
    claimed(await dedupe.claim(`${index}`)).confirm()
    if (index % 500 === 0) await clock.advance(100)
  }
  expect(dedupe.claim('19999')).toBe('done')
  expect(dedupe.claim('19400')).toBeTypeOf('object')
})

it('forgets what ended before it is full', async () => {
  const clock = manualClock()
  const dedupe = memoryDedupe({ dedupeWindowMs: WINDOW_MS, clock })
  claimed(await dedupe.claim('old')).confirm()
  await clock.advance(WINDOW_MS)
  const forgotten = vi.spyOn(Map.prototype, 'delete')
  onTestFinished(() => forgotten.mockRestore())
  dedupe.claim('new')
  expect(forgotten).toHaveBeenCalledWith('old')
})

it('changes nothing any more when it is closed', async () => {
  const dedupe = memoryDedupe()
  const claim = claimed(await dedupe.claim('a'))
  dedupe.close()
  claim.confirm()
  claim.release()
  expect(() => dedupe.claim('a')).toThrow('closed')
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
