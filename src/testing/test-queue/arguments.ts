/** What a queue must refuse: wrong arguments with a TypeError that names them, and calls after it was closed. */

import { ok, rejects } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import type { Job, Queue } from '../../queues/queue.ts'
import { type Cases, complete, jobOf, type TestContext } from './context.ts'

const WRONG_JOBS: readonly (readonly [string, object])[] = [
  ['id', { id: 'order-1' }],
  ['id', { id: 5 }],
  ['id', { id: 'ABCDEF01-2345-4789-8ABC-DEF012345678' }],
  ['id', { id: `${randomUUID()}\n` }],
  ['body', { body: 'text' }],
  ['body', { body: undefined }],
  ['notBefore', { notBefore: new Date(Number.NaN) }],
  ['notBefore', { notBefore: '2026-01-15' }],
]

const WRONG_PUSHES: readonly (readonly [string, unknown])[] = [
  ['options', null],
  ['options', 5],
  ['bd', { bd: {} }],
  ['db', { db: undefined }],
  ['db', { db: null }],
  ['db', { db: 'postgres://localhost' }],
  ['db', { db: {} }],
]

const WRONG_WORK: readonly (readonly [string, unknown, unknown])[] = [
  ['handle', undefined, { concurrency: 1 }],
  ['concurrency', async () => complete, undefined],
  ['concurrency', async () => complete, { concurrency: 0 }],
  ['concurrency', async () => complete, { concurrency: 1.5 }],
  ['concurrency', async () => complete, { concurrency: Number.POSITIVE_INFINITY }],
]

const WRONG_PAGES: readonly (readonly [string, object])[] = [
  ['limit', { limit: 0 }],
  ['limit', { limit: 1.5 }],
  ['after', { after: 'the last' }],
]

export const argumentCases: Cases = {
  'arguments: push refuses a job with a wrong field, and stores none of the jobs beside it': async (context) => {
    const { queue, expectCounts } = context
    for (const [field, wrong] of WRONG_JOBS) {
      await refuses(field, wrong, () => queue.push([jobOf('good'), { ...jobOf('bad'), ...wrong } as Job]))
    }
    await expectCounts({ waiting: 0 }, 'a push must store all of its jobs or none')
  },

  'arguments: push refuses what is no list of jobs': async ({ queue }) => {
    await refuses('jobs', undefined, () => queue.push(undefined as never))
    await refuses('jobs', {}, () => queue.push({} as never))
    await refuses('id', [undefined], () => queue.push([undefined] as never))
  },

  'arguments: push refuses what is no transaction, and stores nothing then': async ({ queue, expectCounts }) => {
    for (const [name, wrong] of WRONG_PUSHES) {
      await refuses(name, wrong, () => queue.push([jobOf('outside')], wrong as never))
    }
    await expectCounts({ waiting: 0 }, 'a push must not store outside of the transaction that it was given')
  },

  'arguments: work refuses a wrong handler and a wrong concurrency': async ({ queue, work }) => {
    for (const [name, handle, options] of WRONG_WORK) {
      await refuses(name, options, () => queue.work(handle as never, options as never))
    }
    work(() => complete) // None of these was taken for its handler.
  },

  'arguments: work refuses a second handler': async ({ queue, work }) => {
    work(() => complete)
    await refuses('second handler', 'a second handler', () => queue.work(async () => complete, { concurrency: 1 }))
  },

  'arguments: deadLetters refuses a wrong page': async ({ queue }) => {
    for (const [name, page] of WRONG_PAGES) await refuses(name, page, () => queue.deadLetters(page))
  },

  'arguments: redrive refuses what is no list of ids': (context) => refusesIds(context, 'redrive'),

  'arguments: drop refuses what is no list of ids': (context) => refusesIds(context, 'drop'),

  'arguments: drop refuses a wrong filter, and one that would drop everything': async ({ queue }) => {
    const wrong: readonly (readonly [string, object])[] = [
      ['olderThan', {}],
      ['olderThan', { olderThan: undefined }],
      ['olderThan', { olderThan: new Date(Number.NaN) }],
      ['olderThan', { olderThan: 5 }],
      ['reason', { reason: '' }],
      ['reason', { reason: 5 }],
      ['matches', { matches: 'all' }],
      ['before', { before: new Date() }],
    ]
    for (const [name, filter] of wrong) await refuses(name, filter, () => queue.drop(filter))
  },

  'arguments: forget refuses what is no function': async ({ queue }) => {
    for (const wrong of [undefined, 'user-1', ['user-1']]) {
      await refuses('matches', wrong, () => queue.forget(wrong as never))
    }
  },

  'arguments: close refuses a wrong grace, and leaves the queue open': async ({ queue, work }) => {
    for (const wrong of [undefined, {}, { graceMs: -1 }, { graceMs: 0.5 }, { graceMs: 2 ** 31 }]) {
      await refuses('graceMs', wrong, () => queue.close(wrong as never))
    }
    await queue.push([jobOf('open')])
    work(() => complete)
  },

  'arguments: after close, each call but drain and close is refused with shutting_down': async ({ queue }) => {
    await queue.close({ graceMs: 0 })
    const calls: Readonly<Record<string, (queue: Queue) => Promise<unknown>>> = {
      push: () => queue.push([jobOf('late')]),
      'push of no jobs': () => queue.push([]),
      counts: () => queue.counts(),
      deadLetters: () => queue.deadLetters(),
      redrive: () => queue.redrive('all'),
      drop: () => queue.drop('all'),
      'drop by reason': () => queue.drop({ reason: 'no' }),
      forget: () => queue.forget(() => true),
    }
    for (const [name, call] of Object.entries(calls)) {
      const expected = { code: 'shutting_down', status: 503 }
      await rejects(call(queue), expected, `${name} after close() must reject with the HooklineError shutting_down`)
    }
    await refuses('closed', 'a closed queue', () => queue.work(async () => complete, { concurrency: 1 }))
    await queue.drain()
    await queue.close({ graceMs: 0 })
  },
}

async function refusesIds({ queue }: TestContext, call: 'redrive' | 'drop'): Promise<void> {
  for (const wrong of [undefined, 'some', randomUUID(), ['x'], [undefined]]) {
    await refuses('ids', wrong, () => queue[call](wrong as never))
  }
}

/** Expects a TypeError, thrown or as a rejection, whose message holds the name. */
async function refuses(name: string, wrong: unknown, call: () => unknown): Promise<void> {
  let error: unknown
  try {
    await call()
  } catch (thrown) {
    error = thrown
  }
  const isRefused = error instanceof TypeError && error.message.includes(name)
  ok(isRefused, `${inspect(wrong)} must be refused with a TypeError that names '${name}'. Got ${inspect(error)}`)
}
