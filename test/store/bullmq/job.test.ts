/** A job as BullMQ stores it, without a Redis. */

import { randomUUID } from 'node:crypto'
import { type Job as StoredJob, UnrecoverableError } from 'bullmq'
import { expect, it } from 'vitest'
import { isRefusal, isReply, refused, unlessRefused } from '../../../src/store/bullmq/bullmq-connection.ts'
import * as jobs from '../../../src/store/bullmq/bullmq-job.ts'
import { keyOf } from '../../../src/store/bullmq/bullmq-keys.ts'

const id = randomUUID()
const [body, state] = [Buffer.from('{"é":1}'), Buffer.from('state')]
const data = { body: body.toString('base64'), retryState: state.toString('base64') }
const stored = { id, name: 'hookline', data, opts: { delay: 20 }, timestamp: 100, processedOn: 200, finishedOn: 300 }
const jobOf = (more: object = {}) => ({ ...stored, progress: 0, failedReason: 'no', ...more }) as unknown as StoredJob
const foreign = jobOf({ name: 'theirs', data: { to: 'ada' } })

it('a job is pushed with its bytes as base64, until its time, and with its id for the dedupe window', () => {
  const opts = { jobId: id, timestamp: 100, deduplication: { id, ttl: 60 } }
  const pushed = [undefined, 99, 150].map((at) =>
    jobs.toBulkJob({ id, body, ...(at !== undefined && { notBefore: new Date(at) }) }, 100, 60),
  )

  expect(pushed[0]).toEqual({ name: 'hookline', data: { body: data.body }, opts })
  expect(pushed.map(({ opts }) => opts)).toStrictEqual([opts, opts, { ...opts, delay: 50 }])
})

it('a claim has what the job and its progress say', () => {
  const claims = [
    jobOf(),
    jobOf({ data: { ...data, retryState: undefined, dueAt: 5 }, progress: { claims: 2, firstAt: 3 } }),
    jobOf({ data: { ...data, dueAt: 5 }, progress: { dueAt: 7 }, opts: {} }),
  ]
  const held = { id, body, retryState: state, token: 'token', claimedAt: 9, isCounted: false, isLogged: false }
  const first = { claimCount: 1, firstAt: new Date(200) }

  expect(claims.map((job) => jobs.toClaim(job, 'token', 9))).toEqual([
    { ...held, ...first, dueAt: new Date(120), job: claims[0] },
    { ...held, claimCount: 3, firstAt: new Date(3), dueAt: new Date(5), retryState: undefined, job: claims[1] },
    { ...held, ...first, dueAt: new Date(7), job: claims[2] },
  ])
  expect(jobs.toClaim(foreign, 'token', 9)).toBe(undefined)
})

it('a dead letter has the body, the state, the reason and the time, and of a job of others its data', () => {
  const letter = { id, body, reason: 'no', retryState: state, failedAt: new Date(300) }
  expect(jobs.toDeadLetter(jobOf())).toEqual(letter)
  expect(jobs.toDeadLetter(foreign)).toEqual({ ...letter, body: Buffer.from('{"to":"ada"}'), retryState: undefined })
  expect([jobOf(), foreign, jobOf({ data: {} }), jobOf({ data: null })].map(jobs.isOurs)).toEqual([
    true,
    false,
    false,
    false,
  ])
})

it('an outcome keeps the body, and counts the claim or does not', () => {
  const claim = jobs.toClaim(jobOf({ progress: { claims: 1, firstAt: 3 } }), 'token', 9) as jobs.BullmqClaim
  expect(jobs.dataWith(claim, state, 8)).toEqual({ ...data, dueAt: 8 })
  expect(jobs.dataWith(claim, undefined)).toEqual({ body: data.body })
  expect([jobs.toData(body, state), jobs.toData(body, undefined)]).toEqual([data, { body: data.body }])
  expect([true, false].map((isCounted) => jobs.progressWith(claim, isCounted))).toEqual([
    { claims: 2, firstAt: 3 },
    { claims: 1, firstAt: 3 },
  ])
  expect(jobs.progressWith({ ...claim, claimCount: 1 }, false)).toEqual({})
  expect(jobs.failure('no')).toMatchObject({ message: 'no', stack: '', name: new UnrecoverableError().name })
})

it('what Redis and BullMQ refuse is told apart, and shown without the command', async () => {
  const failure = (more: object) => Object.assign(new Error('NOAUTH'), more)
  const [gone, reply, reset] = [
    failure({ code: -3 }),
    failure({ name: 'ReplyError', command: 'AUTH' }),
    failure({ code: 'E' }),
  ]
  expect([gone, reply, reset, -3].map((error) => [isRefusal(error), isReply(error)])).toEqual([
    [true, false],
    [false, true],
    [false, false],
    [false, false],
  ])
  expect(await unlessRefused(Promise.reject(gone))).toBe(undefined)
  await expect(unlessRefused(Promise.reject(reset))).rejects.toBe(reset)
  expect([refused('a', 'no', undefined, '', reset).cause, refused('a', 'no', 'x', '').cause]).toEqual([
    reset,
    undefined,
  ])
  expect(refused('a', 'no', undefined, '', reply)).toMatchObject({
    code: 'queue_unavailable',
    cause: { name: 'ReplyError' },
  })
  expect(refused('a', 'no', undefined, '', reply).cause).not.toHaveProperty('command')
  expect(keyOf('bull', 'orders')).toBe('bull-hookline:orders')
})
