/** What an inspector keeps of real receivers: of messages that are handled at once, in an inbox, or once; and of users who are forgotten. */

import type { Receiver } from 'hookline'
import type { Queue } from 'hookline/queues'
import { fixtures, type ManualClock, signedRequest } from 'hookline/testing'
import { expect, it, onTestFinished } from 'vitest'
import { memoryDedupe } from '../../../src/receive/memory-dedupe.ts'
import type { ReceiverOptions } from '../../../src/receive/receiver-options.ts'
import { setUpInbox } from '../../../test/support/inbox.ts'
import { deliver, hostRequest, secret, setUp as setUpReceiver } from '../../../test/support/receive.ts'
import { throwing } from '../../../test/support/throwing.ts'
import { until } from '../../../test/support/until.ts'
import { watchReceiver } from '../src/watch-receiver.ts'
import { keptBy, pause } from './support.ts'

type Watched = Pick<ReturnType<typeof setUpReceiver>, 'receiver' | 'clock'>

function watch<Given extends Watched>(set: Given) {
  const { clock, receiver } = set
  const { counts, ...kept } = keptBy(clock)
  watchReceiver('shop', receiver, kept.journal, kept.series)
  onTestFinished(() => void receiver.close({ graceMs: 0 }))
  return { ...set, ...kept, counts: () => counts('shop') }
}

/** Watches a receiver, whose only handler does what the test says. */
function watchHandled<Given extends Watched>(set: Given) {
  const { clock, receiver } = set
  const handler = { run: (): unknown => undefined }
  const save = () => handler.run()
  receiver.on('*', save)
  /** Lets the workers handle a message. */
  const handle = async (message: object = fixtures.track): Promise<void> => {
    receiver.start()
    await deliver(receiver, message)
    await clock.advance(0)
  }
  return { ...watch(set), handler, handle }
}

const setUp = (inbox: Parameters<typeof setUpInbox>[0] = {}, options: ReceiverOptions = {}) =>
  watchHandled(setUpInbox(inbox, options))

/** A receiver with an inbox, of whose queue these methods differ. */
function setUpWith(differ: (memory: Queue, clock: ManualClock) => Partial<Queue>, options: ReceiverOptions = {}) {
  const set = setUpInbox({}, options)
  Object.assign(set.queue, differ({ ...set.memory }, set.clock))
  return watchHandled(set)
}

const fail = throwing('no')

const track = (id: number | string, more = {}) => ({ ...fixtures.track, messageId: `message-${id}`, ...more })

function sendTo({ receive }: Pick<Receiver, 'receive'>, message: object, headers: Record<string, string | string[]>) {
  const signed = signedRequest(JSON.stringify(message), secret)
  return receive(Buffer.from(signed.body), { ...signed.headers, ...headers })
}

it('a message waits once it is stored, and is done once it is handled', async () => {
  const { receiver, clock, rows, detail, counts, handler } = setUpWith(({ push }) => ({
    push: (jobs) => clock.advance(5).then(() => push(jobs)),
  }))
  const at = clock.now()
  const text = JSON.stringify(track(1))
  const request = hostRequest({}, text)
  const sent = { id: 1, kind: 'received', part: 'shop', at, bytes: text.length, messageIds: ['message-1'] }
  const row = { ...sent, type: 'track', name: 'Order Completed', user: 'user-1', status: 200 }
  const { headers, remoteAddress } = request
  await receiver.handle(request)
  expect(rows()).toEqual([{ ...row, state: 'waiting', attempts: 0 }])
  expect(counts()).toEqual([0, 0])
  await clock.advance(20)
  handler.run = () => pause(clock, 30)
  receiver.start()
  await clock.advance(30)
  const runs = [{ on: '*', name: 'save', durationMs: 30 }]
  expect(detail()).toEqual({
    row: { ...row, state: 'done', attempts: 1, durationMs: 30 },
    request: { method: 'POST', path: '/webhooks', remoteAddress, headers: Object.entries(headers) },
    body: { size: text.length, text },
    steps: [
      { what: 'arrived', at, bytes: text.length, isCopy: false, remoteAddress },
      { what: 'checked', at, isVerified: true, secretIndex: 0 },
      { what: 'stored', at: at + 5, durationMs: 5 },
      { what: 'answered', at: at + 5, status: 200, durationMs: 5 },
      { what: 'handled', at: at + 55, attempt: 1, durationMs: 30, runs },
    ],
    ...{ deliveryId: expect.any(String), isStored: true, canExplain: false },
  })
  expect(counts()).toEqual([1, 0])
})

it('a custom message shows what its body says of itself, and is forgotten with its user', async () => {
  const { receiver, clock, rows, journal } = setUp({}, { custom: true } as object)
  receiver.start()
  await deliver(receiver, { event: 'Ordered', userId: 'user-7', messageId: 'm-7' })
  await deliver(receiver, [{ userId: 'user-8' }, { userId: 'user-7' }])
  await deliver(receiver, ['text'])
  await clock.advance(0)
  expect(rows()).toMatchObject([
    { type: 'custom', state: 'done', name: undefined, user: undefined },
    { type: 'custom', state: 'done' },
    { type: 'custom', name: 'Ordered', user: 'user-7', messageIds: ['m-7'], state: 'done' },
  ])
  expect(journal.forget('user-7')).toBe(2)
  expect(rows()).toHaveLength(1)
})

it('a worker may handle a message before it is known to be stored', async () => {
  const { receiver, clock, rows, steps, detail, counts } = setUpWith(({ push }, clock) => ({
    push: async (jobs) => {
      await push(jobs)
      await pause(clock, 30)
    },
  }))
  receiver.start()

  const answered = deliver(receiver, fixtures.track)
  await clock.advance(10)
  expect(rows()).toMatchObject([{ state: 'done', attempts: 1 }])
  expect(rows()[0]?.status).toBeUndefined()

  await clock.advance(20)
  await answered
  expect(rows()).toMatchObject([{ id: 1, state: 'done', status: 200, attempts: 1 }])
  expect([...(steps() ?? [])].sort()).toEqual(['answered', 'arrived', 'checked', 'handled', 'stored'])
  expect(detail()?.isStored).toBe(true)
  expect(counts()).toEqual([1, 0])
})

it('attempts that fail say when the next is due; then it is done', async () => {
  const { clock, handler, handle, rows, detail, counts, series } = setUp({ retries: [1_000, 5_000] })
  handler.run = fail
  const start = clock.now()
  await handle()
  const failed = { state: 'waiting', code: 'handler_failed', status: 200 }
  expect(rows()).toMatchObject([{ ...failed, attempts: 1, retryAt: start + 1_000 }])
  await clock.advance(1_000)
  expect(rows()).toMatchObject([{ ...failed, attempts: 2, retryAt: start + 6_000 }])
  handler.run = () => pause(clock, 40)
  await clock.advance(5_040)
  expect(rows()).toMatchObject([
    { id: 1, state: 'done', attempts: 3, durationMs: 40, code: undefined, retryAt: undefined },
  ])
  const attempts = detail()?.steps.filter(({ what }) => what === 'failed' || what === 'handled')
  expect(attempts).toMatchObject([
    { what: 'failed', attempt: 1, next: start + 1_000, runs: [{ error: { code: 'Error', message: 'no' } }] },
    { what: 'failed', attempt: 2, next: start + 6_000, error: { code: 'handler_failed' } },
    { what: 'handled', attempt: 3, durationMs: 40 },
  ])
  expect(counts()).toEqual([1, 2])
  const { p95 } = series.readPart('shop', 60)
  expect(p95.filter((ms) => ms !== null)).toEqual([expect.closeTo(40, -1)])
})

it('a dead letter that is redriven waits, then is done', async () => {
  const { receiver, clock, handler, handle, journal, rows, detail, steps } = setUp({ retries: [] })
  handler.run = fail
  await handle()
  expect(rows()).toMatchObject([{ state: 'dead', code: 'handler_failed', attempts: 1 }])
  expect(detail()?.steps).toContainEqual(expect.objectContaining({ what: 'failed', next: 'dead_letter' }))
  const id = detail()?.deliveryId as string
  expect((await receiver.deadLetters()).map((letter) => letter.id)).toEqual([id])
  handler.run = () => {}
  await clock.advance(5_000)
  const { version } = journal
  await receiver.redrive([id])
  journal.changed('shop', [id], 'redriven', clock.now(), version)
  expect(rows()).toMatchObject([{ id: 1, state: 'waiting', code: undefined }])
  await clock.advance(10)
  expect(rows()).toMatchObject([{ id: 1, state: 'done' }])
  expect(steps()?.slice(-2)).toEqual(['redriven', 'handled'])
})

it('a message that the inbox could not store is failed, and done once it comes again', async () => {
  let isAway = true
  const { receiver, clock, rows, steps, counts } = setUpWith(({ push }) => ({
    push: (jobs) => (isAway ? Promise.reject(new Error('away')) : push(jobs)),
  }))
  await deliver(receiver, fixtures.track)
  expect(rows()).toMatchObject([{ state: 'failed', status: 503, code: 'inbox_unavailable', attempts: 0 }])

  isAway = false
  await deliver(receiver, fixtures.track)
  receiver.start()
  await clock.advance(0)

  expect(rows()).toMatchObject([{ id: 1, state: 'done', status: 200, attempts: 1, code: undefined }])
  isAway = true
  await deliver(receiver, fixtures.track)
  expect(rows()).toMatchObject([{ id: 1, state: 'done', status: 503 }])
  expect([steps()?.filter((what) => what === 'answered').length, counts()]).toEqual([3, [1, 2]])
})

it('a copy of a replay is a row of its own, which has its id', async () => {
  const { receiver, clock, handler, handle, rows, detail } = setUp({ retries: [], history: { maxAgeMs: 3_600_000 } })
  await handle({ ...fixtures.track, messageId: 'm-1' })
  await clock.advance(1_000)
  handler.run = fail

  await receiver.replay({ id: 'fix-42' })
  await clock.advance(0)

  const messageIds = ['m-1']
  expect(rows()).toMatchObject([
    { id: 2, state: 'dead', at: clock.now(), messageIds, replayId: 'fix-42' },
    { id: 1, state: 'done', at: clock.now() - 1_000, messageIds, replayId: undefined },
  ])
  expect(detail(2)?.steps).toMatchObject([{ what: 'failed', attempt: 1, next: 'dead_letter' }])
})

it('what a stranger sends is no part of a message whose key it is', async () => {
  const { receiver, handle, rows } = setUp({ key: ({ messageId }) => String(messageId) })
  await handle({ ...fixtures.track, messageId: 'order-1' })
  const [known] = rows()
  await receiver.receive(Buffer.from('order-1'), { 'content-type': 'application/json' })
  expect(rows()).toMatchObject([{ id: 2, state: 'refused', code: 'signature_missing' }, known])
})

it('a copy of what is handled once is answered, and not handled; what was done stays so when that fails', async () => {
  const dedupe = { ...memoryDedupe() }
  const { receiver, rows, steps, counts } = watchHandled(setUpReceiver({ dedupe }))
  await deliver(receiver, fixtures.track)
  await deliver(receiver, fixtures.track)
  expect(rows()).toMatchObject([{ id: 1, state: 'done', status: 200, attempts: 1 }])
  expect(steps()).toEqual(['arrived', 'checked', 'handled', 'answered', 'arrived', 'checked', 'answered'])

  dedupe.claim = () => Promise.reject(new Error('away'))
  await deliver(receiver, fixtures.track)
  expect(rows()).toMatchObject([{ id: 1, state: 'done', status: 503, attempts: 1, code: undefined }])
  expect(counts()).toEqual([1, 1])
})

it('a message that no handler matches is ignored, and in no plot', async () => {
  const { receiver, rows, steps, counts } = watch(setUpReceiver())
  receiver.on('page', () => {})
  await deliver(receiver, track(1))
  expect(rows()).toMatchObject([{ state: 'ignored' }])
  expect(steps()).toContain('ignored')
  expect(counts()).toEqual([0, 0])
})

it('a refused message keeps its type, which only the first bytes may name', async () => {
  const { receiver, rows } = watch(setUpReceiver())
  const late = { filler: 'x'.repeat(20_000), ...track(3) }
  for (const message of [track(1), track(2, { type: 'strange' }), late]) await deliver(receiver, message, 'another')
  const types = rows().map(({ state, type }) => `${state} ${type}`)
  expect(types.sort()).toEqual(['refused track', 'refused undefined', 'refused undefined'])
})

it('a sender repeats what failed, and then what is done: one row, whose last arrival is a copy', async () => {
  const { receiver, handler, rows, detail, counts } = watchHandled(setUpReceiver())
  handler.run = fail
  await deliver(receiver, track(1))
  expect(counts()).toEqual([0, 1])
  expect(detail()?.steps.at(-1)).toMatchObject({ what: 'answered', error: undefined })
  expect(rows()).toMatchObject([{ state: 'failed', status: 500, code: 'handler_failed', attempts: 1 }])

  handler.run = () => {}
  for (const id of ['0', '1']) await sendTo(receiver, track(1), { 'x-request-id': id })
  expect(rows()).toMatchObject([{ state: 'done', status: 200, attempts: 3, code: undefined }])
  expect(detail()?.steps.filter(({ what }) => ['arrived', 'failed', 'handled'].includes(what))).toMatchObject([
    { what: 'arrived', isCopy: false },
    { what: 'failed', attempt: 1, next: 'sender', runs: [{ error: { code: 'Error', message: 'no' } }] },
    { what: 'arrived', isCopy: true },
    { what: 'handled', attempt: 2 },
    { what: 'arrived', isCopy: true },
    { what: 'handled', attempt: 3 },
  ])
  expect(detail()?.request?.headers).toContainEqual(['x-request-id', '1'])
})

it('of a batch each element is a row, the refused one, too', async () => {
  const { receiver, rows } = watchHandled(setUpReceiver({ batches: true }))
  await deliver(receiver, [track(1), { ...track(2), type: 'unknown' }, track(3)])
  const shown = rows().map(({ state, attempts, code }) => `${state} ${attempts} ${code}`)
  expect(shown).toEqual(['refused 0 message_type_unknown', 'done 1 undefined', 'done 1 undefined'])
})

it('an attempt of an inbox that ends after its user was forgotten brings nothing back', async () => {
  const { receiver, handler, handle, rows, clock } = setUp()
  let isHandling = false
  handler.run = () => {
    isHandling = true
    return pause(clock, 100)
  }
  await handle({ ...fixtures.track, userId: 'gone' })
  await until(() => isHandling)
  await receiver.forget('gone')
  expect(rows()).toEqual([])
  await clock.advance(100)
  await receiver.close({ graceMs: 1_000 })
  expect(rows()).toEqual([])
})
