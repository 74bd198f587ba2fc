import { expect, test } from 'vitest'
import type { Attempt } from '../../src/sender/api.ts'
import { chooseTargets, nextStep, readProgress, writeProgress } from '../../src/sender/progress.ts'
import { LAST_START_MS } from '../../src/sender/schedule.ts'
import { readWebhooks } from '../../src/sender/webhooks.ts'

const targets = readWebhooks(['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example/` })))
const [a, b, c] = targets as [(typeof targets)[0], (typeof targets)[0], (typeof targets)[0]]
const fresh = readProgress(undefined)
const times = { firstAt: 1_000_000, now: 1_002_000, random: 0.5 }
const failed = (outcome: Partial<Attempt>): Attempt => ({
  url: 'http://a.example/',
  at: 0,
  durationMs: 0,
  ok: false,
  body: '',
  ...outcome,
})

test('in the first round every URL has its turn', () => {
  expect(chooseTargets(targets, fresh, 0)).toEqual(targets)
})

test('only the retryable URLs go again', () => {
  const attempts = [failed({ status: 500 }), failed({ status: 404 }), failed({ error: 'timeout' })]
  const step = nextStep(targets, fresh, targets, attempts, times)

  expect(step).toMatchObject({ retryAt: times.now + 5_000, progress: { rounds: 1, attempts } })
  expect(chooseTargets(targets, step.progress, times.now + 5_000)).toEqual([a, c])
})

test('a URL that asks for more time gets it, and the others do not wait for it', () => {
  const attempts = [failed({ status: 503, retryAfterMs: 60_000 }), failed({ status: 500 }), failed({ status: 400 })]
  const step = nextStep(targets, fresh, targets, attempts, times)

  expect(step).toMatchObject({ retryAt: times.now + 5_000 })
  expect(chooseTargets(targets, step.progress, times.now + 5_000)).toEqual([b])
  expect(chooseTargets(targets, step.progress, times.now + 60_000)).toEqual([a, b])

  const now = times.now + 5_000
  const second = nextStep(targets, step.progress, [b], [failed({ status: 500 })], { ...times, now })
  expect(second).toMatchObject({ retryAt: now + 10_000, progress: { rounds: 2 } })
})

test('a URL whose turn comes sooner than the schedule of another is not held up by it', () => {
  const step = nextStep(
    targets,
    fresh,
    targets,
    targets.map(() => failed({ status: 503, retryAfterMs: 20_000 })),
    times,
  )
  const early = { ...step.progress, next: { ...step.progress.next, [a.id]: times.now, [c.id]: 'never' as const } }
  const second = nextStep(targets, early, [a], [failed({ status: 500 })], {
    ...times,
    random: 0.999,
    now: times.now + 15_000,
  })

  expect(second).toMatchObject({ retryAt: times.now + 20_000 })
})

test('Retry-After past the four hours is the last moment inside them', () => {
  const attempts = [failed({ status: 429, retryAfterMs: 24 * 3_600_000 })]
  const step = nextStep([a], fresh, [a], attempts, times)

  expect(step).toMatchObject({ retryAt: times.firstAt + LAST_START_MS })
})

test('Retry-After shorter than the schedule does not hasten it', () => {
  const step = nextStep([a], fresh, [a], [failed({ status: 503, retryAfterMs: 1 })], times)

  expect(step).toMatchObject({ retryAt: times.now + 5_000 })
})

test('when every URL is final the message is refused', () => {
  const attempts = [failed({ status: 404 }), failed({ error: 'self_signed' }), failed({ status: 302 })]

  expect(nextStep(targets, fresh, targets, attempts, times)).toMatchObject({ over: 'refused', progress: { attempts } })
})

test('when no time is left the window is over', () => {
  const now = times.firstAt + LAST_START_MS
  const attempts = [failed({ status: 500 }), failed({ status: 404 }), failed({ status: 404 })]

  expect(nextStep(targets, fresh, targets, attempts, { ...times, now })).toMatchObject({ over: 'window_over' })
})

test('when no time is left for one URL, another that waits for the last moment still has its turn', () => {
  const now = times.firstAt + LAST_START_MS - 500
  const before = { ...fresh, next: { [b.id]: times.firstAt + LAST_START_MS } }
  const step = nextStep([a, b], before, [a], [failed({ status: 500 })], { ...times, now })

  expect(step).toMatchObject({ retryAt: times.firstAt + LAST_START_MS })
  expect(chooseTargets([a, b], step.progress, times.firstAt + LAST_START_MS)).toEqual([b])
})

test('progress survives the queue', () => {
  const { progress } = nextStep(
    targets,
    fresh,
    targets,
    targets.map(() => failed({ error: 'reset' })),
    times,
  )

  expect(readProgress(writeProgress(progress))).toEqual(progress)
})
