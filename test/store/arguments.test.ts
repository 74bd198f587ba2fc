/** Wrong arguments of a queue: each is a TypeError that names what is wrong, and changes nothing. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import { readHistory, readLogPage, readPage } from '../../src/store/arguments.ts'
import type { Outcome, Queue } from '../../src/store/queue-types.ts'
import { jobOf } from '../support/queues.ts'

const complete = async (): Promise<Outcome> => ({ complete: true })

/** The values of an argument that are wrong, and what the error must name. */
type Wrong = readonly [name: string, ...values: unknown[]]

const BAD_IDS: Wrong = ['ids', undefined, 'some', randomUUID(), ['x'], [undefined]]
const { NaN: nan, POSITIVE_INFINITY: infinity } = Number

const CALLS: Readonly<Record<string, readonly [call: (queue: Queue, wrong: never) => unknown, ...Wrong[]]>> = {
  'a field of a job beside a good one': [
    (queue, wrong: object) => queue.push([jobOf(), { ...jobOf(), ...wrong }]),
    ['id', ...['order-1', 5, randomUUID().toUpperCase(), `${randomUUID()}\n`].map((id) => ({ id }))],
    ['body', { body: 'text' }, { body: undefined }],
    ['notBefore', { notBefore: new Date(nan) }, { notBefore: '2026-01-15' }],
    ['group', { group: '' }, { group: 5 }],
  ],
  'a list of jobs': [(queue, wrong) => queue.push(wrong), ['jobs', undefined, {}], ['id', [undefined]]],
  'options of a push': [(queue, wrong) => queue.push([jobOf()], wrong), ['options', null, 5], ['bd', { bd: {} }]],
  'a handler': [(queue, wrong) => queue.work(wrong, { concurrency: 1 }), ['handle', undefined]],
  'a concurrency': [
    (queue, wrong) => queue.work(complete, wrong),
    ['concurrency', undefined, ...[0, 1.5, infinity].map((concurrency) => ({ concurrency }))],
  ],
  'a page': [
    (queue, wrong) => queue.deadLetters(wrong),
    ['limit', { limit: 0 }, { limit: 1.5 }],
    ['after', { after: 'the last' }],
    ['newestFirst', { newestFirst: 'yes' }],
  ],
  'a page of the log': [
    (queue, wrong) => queue.log?.list(wrong),
    ['since', { since: new Date(nan) }],
    ['until', { until: new Date(nan) }, { until: '2026-01-15' }],
    ['maxBytes', { maxBytes: 0 }],
    ['sinc', { sinc: new Date() }],
  ],
  'a history': [
    (queue, wrong) => queue.work(complete, { concurrency: 1, history: wrong }),
    ['maxAgeMs', {}, { maxAgeMs: 0 }],
    ['maxBytes', { maxAgeMs: 1, maxBytes: 0 }],
    ['maxAge', { maxAgeMs: 1, maxAge: 1 }],
  ],
  'ids to redrive': [(queue, wrong) => queue.redrive(wrong), BAD_IDS],
  'ids to drop': [(queue, wrong) => queue.drop(wrong), BAD_IDS],
  'a filter, and one that would drop everything': [
    (queue, wrong) => queue.drop(wrong),
    ['olderThan', {}, ...[undefined, new Date(nan), 5].map((olderThan) => ({ olderThan }))],
    ['reason', { reason: '' }, { reason: 5 }],
    ['matches', { matches: 'all' }],
    ['before', { before: new Date() }],
  ],
  'what to forget': [(queue, wrong) => queue.forget(wrong), ['matches', undefined, 'user-1', ['user-1']]],
  'a grace': [(queue, wrong) => queue.close(wrong), ['graceMs', ...[-1, 0.5, 2 ** 31].map((graceMs) => ({ graceMs }))]],
}

describe.each(Object.entries(CALLS))('%s', (_what, [call, ...wrong]) => {
  it.each(wrong.flatMap(([name, ...values]) => values.map((value) => [name, value] as const)))(
    'must have a right `%s`: not %j',
    async (name, value) => {
      const queue = memoryQueue()
      onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
      const called = async () => call(queue, value as never)
      await expect(called()).rejects.toThrow(TypeError)
      await expect(called()).rejects.toThrow(name)
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
      queue.work(complete, { concurrency: 1 }) // Nothing was taken for its handler.
    },
  )
})

it('pages and a history have their defaults, and numbers as large as they get', () => {
  const [most, since] = [Number.MAX_SAFE_INTEGER, new Date(5)]
  const page = { since, until: since, after: '1768435200000-3', limit: 2 ** 31 - 1, maxBytes: most }
  const history = { maxAgeMs: most, maxBytes: most }
  expect(readPage({})).toEqual({ after: undefined, newestFirst: false, limit: 100, maxBytes: most })
  expect([readLogPage(page), readLogPage({})]).toEqual([page, { limit: 100, maxBytes: most }])
  expect(readHistory('history', history, memoryQueue())).toBe(history)
})
