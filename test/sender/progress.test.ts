import { expect, test } from 'vitest'
import type { Attempt } from '../../src/sender/api.ts'
import { chooseTargets, nextStep, readProgress, writeProgress } from '../../src/sender/progress.ts'
import { LAST_START_MS } from '../../src/sender/schedule.ts'
import { readWebhooks } from '../../src/sender/webhooks.ts'

const targets = readWebhooks(['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example/` })))
const [a, b, c] = targets as [(typeof targets)[0], (typeof targets)[0], (typeof targets)[0]]
const fresh = readProgress(undefined, targets)
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

test('progress survives the queue, with what the latest round was told', () => {
  const said = [
    failed({ status: 500, body: 'sorry' }),
    failed({ url: 'http://b.example/', error: 'reset', reason: 'hung up' }),
    failed({ url: 'http://c.example/', status: 503 }),
  ]
  const { progress } = nextStep(targets, fresh, targets, said, times)
  const read = readProgress(writeProgress(progress, targets), targets)
  expect(read).toEqual({ ...progress, attempts: said })

  const second = nextStep(targets, read, [a], [failed({ status: 502, body: 'again' })], times)
  expect(second.progress.attempts).toMatchObject([
    { status: 500, body: '' },
    { error: 'reset', body: '' },
    { status: 503, body: '' },
    { status: 502, body: 'again' },
  ])
  expect(second.progress.attempts[1]).not.toHaveProperty('reason')
})

test('progress stays small: a hundred attempts are no more than 5 KB', () => {
  let progress = fresh
  for (let round = 0; round < 33; round++) {
    const attempts = targets.map(() => failed({ status: 503, body: 'x'.repeat(256) }))
    progress = nextStep(targets, progress, targets, attempts, times).progress
  }
  expect(progress.attempts).toHaveLength(99)
  expect(writeProgress(progress, targets).byteLength).toBeLessThan(5_000)
})

test('a URL that was taken out of the settings since is named as such', () => {
  const { progress } = nextStep(targets, fresh, targets, [failed({ status: 500 }), failed({}), failed({})], times)
  const read = readProgress(writeProgress(progress, targets), [b])

  expect(read.attempts[0]).toMatchObject({ url: 'a URL that is no longer there', status: 500 })
})

test.each(['', 'not JSON', '{}', 'null', '[]', '{"rounds":1,"ids":["x"],"kept":5}'])(
  'what cannot be read, %j, is as if the message had never been tried',
  (text) => {
    expect(readProgress(Buffer.from(text), targets)).toEqual(fresh)
  },
)
