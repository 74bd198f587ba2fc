import fc from 'fast-check'
import { expect, it } from 'vitest'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

const WINDOW_MS = 60_000
const LEASE_MS = 1000

/** A claim in memory ends at once. */
interface Held {
  confirm(): void
  release(): void
}

function setUp(maxKeys = 100_000) {
  const clock = manualClock()
  const dedupe = memoryDedupe({ dedupeWindowMs: WINDOW_MS, leaseMs: LEASE_MS, maxKeys, clock })
  const claim = (key = 'key') => dedupe.claim(key) as Held
  const handle = (key: string) => void claim(key).confirm()
  return { clock, dedupe, claim, handle }
}

it('a claim is for one, until it ends once or its lease is over; a confirmed key is done for the window, and no longer', async () => {
  const step = fc.oneof(
    fc.record({ what: fc.constant('claim' as const), key: fc.constantFrom('a', 'b') }),
    fc.record({ what: fc.constantFrom('confirm' as const, 'release' as const), index: fc.nat(4) }),
    fc.record({ what: fc.constant('wait' as const), ms: fc.constantFrom(1, LEASE_MS - 1, LEASE_MS, WINDOW_MS - 1) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { clock, dedupe } = setUp()
      const claims: { readonly key: string; readonly held: Held; hasEnded: boolean }[] = []
      const known = new Map<string, { readonly holder: object | undefined; readonly until: number }>()
      const lookUp = (key: string) => [known.get(key)].find((entry) => (entry?.until ?? 0) > clock.monotonic())
      for (const step of steps) {
        if (step.what === 'wait') await clock.advance(step.ms)
        else if (step.what === 'claim') {
          const answer = dedupe.claim(step.key)
          const entry = lookUp(step.key)
          if (entry !== undefined) expect(answer).toBe(entry.holder === undefined ? 'done' : 'in_progress')
          else {
            expect(answer).toBeTypeOf('object')
            const claim = { key: step.key, held: answer as Held, hasEnded: false }
            claims.push(claim)
            known.set(step.key, { holder: claim, until: clock.monotonic() + LEASE_MS })
          }
        } else {
          const claim = claims[step.index]
          claim?.held[step.what]()
          if (claim === undefined || claim.hasEnded) continue
          claim.hasEnded = true
          const entry = lookUp(claim.key)
          if (entry !== undefined && entry.holder !== claim) continue // Another claim has the key, or it is done.
          if (step.what === 'release') known.delete(claim.key)
          else known.set(claim.key, { holder: undefined, until: clock.monotonic() + WINDOW_MS })
        }
      }
    }),
    { numRuns: 500 },
  )
})

it('by default a claim lasts a minute, and 100 000 keys are known for a day; when full, it forgets the oldest', async () => {
  const clock = manualClock()
  const dedupe = memoryDedupe({ clock })
  const claim = (key: string) => dedupe.claim(key) as Held

  claim('a')
  await clock.advance(59_999)
  expect(claim('a')).toBe('in_progress')
  await clock.advance(1)
  claim('a').confirm()
  for (let key = 1; key < 100_000; key += 1) claim(`${key}`).confirm()
  await clock.advance(24 * 3_600_000 - 1)
  expect(claim('a')).toBe('done')
  claim('one more').confirm()
  expect([claim('1'), claim('a')]).toEqual(['done', expect.any(Object)])
  await clock.advance(1)
  expect(claim('2')).toBeTypeOf('object')
})

it('never forgets what is being handled, and says when there is nothing else', async () => {
  const { clock, dedupe, claim, handle } = setUp(2)
  handle('done')
  void dedupe.claim('a')
  await clock.advance(1)
  const b = claim('b')
  expect(() => dedupe.claim('c')).toThrow(
    expect.objectContaining({ code: 'dedupe_unavailable', message: expect.stringContaining('2 messages (`maxKeys`)') }),
  )
  expect([dedupe.claim('a'), dedupe.claim('b')]).toEqual(['in_progress', 'in_progress'])
  b.release()
  expect(dedupe.claim('c')).toMatchObject({ confirm: expect.any(Function) })
  await clock.advance(LEASE_MS)
  expect(dedupe.claim('d')).toMatchObject({ confirm: expect.any(Function) })
})

it('does not forget what is handled again after its window, in place of what ended', async () => {
  const { clock, dedupe, handle } = setUp(4)
  for (const key of ['a', 'b', 'c', 'd']) handle(key)
  await clock.advance(WINDOW_MS)
  for (const key of ['c', 'e', 'f', 'g']) handle(key)
  expect(dedupe.claim('c')).toBe('done')
})

it('changes nothing any more when it is closed', () => {
  const { dedupe, claim } = setUp()
  const open = claim()
  void dedupe.close()
  void dedupe.close()
  open.confirm()
  open.release()
  expect(() => claim()).toThrow(expect.objectContaining({ code: 'shutting_down' }))
})

it.each([
  ['memoryDedupe: options', null],
  ['dedupeWindowMs', { dedupeWindowMs: 0 }],
  ['leaseMs', { leaseMs: 0 }],
  ['maxKeys', { maxKeys: 0 }],
  ['maxKeys', { maxKeys: 2 ** 24 }],
  ['clock.now', { clock: {} }],
])('refuses `%s` that makes no sense: %j', (option, options) => {
  expect(() => memoryDedupe(options as never)).toThrow(`\`${option}\``)
})
