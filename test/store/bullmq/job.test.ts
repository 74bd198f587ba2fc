import { randomUUID } from 'node:crypto'
import type { Job as StoredJob } from 'bullmq'
import { expect, it } from 'vitest'
import * as jobs from '../../../src/store/bullmq/bullmq-job.ts'
import { keyOf } from '../../../src/store/bullmq/bullmq-keys.ts'

const id = randomUUID()
const [body, state] = [Buffer.from('{"é":1}'), Buffer.from('state')]
const data = { body: body.toString('base64'), retryState: state.toString('base64') }
const stored = { id, name: 'hookline', data, opts: { delay: 20 }, timestamp: 100, processedOn: 200, finishedOn: 300 }
const jobOf = (more: object = {}) => ({ ...stored, progress: 0, failedReason: 'no', ...more }) as unknown as StoredJob
const foreign = jobOf({ name: 'theirs', data: { to: 'ada' } })
const claimOf = (job: StoredJob) => jobs.toClaim(job, 'token', 9) as jobs.BullmqClaim

it('a job is stored as base64, until its time, with its id for the dedupe window, under keys of its queue', () => {
  const opts = { jobId: id, timestamp: 100, deduplication: { id, ttl: 60 } }
  const push = (notBefore?: Date) => jobs.toBulkJob({ id, body, ...(notBefore && { notBefore }) }, 100, 60)
  expect(push()).toStrictEqual({ name: 'hookline', data: { body: data.body }, opts })
  expect([99, 150].map((at) => push(new Date(at)).opts)).toStrictEqual([opts, { ...opts, delay: 50 }])
  expect(keyOf('bull', 'orders')).toBe('bull-hookline:orders')
})

it('a claim has what the job and its progress say, and its outcome counts it', () => {
  const held = { id, body, retryState: state, token: 'token', claimedAt: 9, isCounted: false, isLogged: false }
  const first = jobOf({ progress: null })
  const again = jobOf({ data: { ...data, dueAt: 5 }, progress: { claims: 2, firstAt: 3 } })
  const redriven = jobOf({ data: { body: data.body, dueAt: 5 }, progress: { dueAt: 7 } })
  const [at, dueAt] = [new Date(200), new Date(120)]
  expect(claimOf(first)).toEqual({ ...held, claimCount: 1, firstAt: at, dueAt, job: first })
  expect(claimOf(again)).toMatchObject({ claimCount: 3, firstAt: new Date(3), dueAt: new Date(5) })
  expect(claimOf(redriven)).toMatchObject({ claimCount: 1, firstAt: at, dueAt: new Date(7), retryState: undefined })
  const counted = [true, false].map((isCounted) => jobs.progressWith(claimOf(again), isCounted))
  expect(counted).toEqual([3, 2].map((claims) => ({ claims, firstAt: 3 })))
  expect(jobs.progressWith(claimOf(first), false)).toEqual({})
  expect(jobs.dataWith(claimOf(first), state, 8)).toEqual({ ...data, dueAt: 8 })
  expect([jobs.toData(body, state), jobs.toData(body, undefined)]).toEqual([data, { body: data.body }])
})

it('a dead letter has its body, state, reason and time, and of a job of others the data', () => {
  const letter = { id, body, reason: 'no', retryState: state, failedAt: new Date(300) }
  expect(jobs.toDeadLetter(jobOf())).toEqual(letter)
  expect(jobs.toDeadLetter(foreign)).toEqual({ ...letter, body: Buffer.from('{"to":"ada"}'), retryState: undefined })
  const others = [{ name: 'theirs' }, { data: {} }, { data: null }].map(jobOf)
  expect([foreign, ...others].map(claimOf)).toEqual(Array(4).fill(undefined))
  expect(jobs.failure('no')).toMatchObject({ message: 'no', stack: '', name: 'UnrecoverableError' })
})
