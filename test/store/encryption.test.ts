/** What a queue stores encrypted: with its keys, without them, and when someone has changed it. */

import { randomBytes, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { inspectQueue } from '../../src/observe/inspect-queue.ts'
import { HooklineError } from '../../src/protocol/error.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { DeadLetterMessage } from '../../src/receive/stored-message.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { type EncryptionKey, encryptQueue, readSeals, type Seals } from '../../src/store/encryption.ts'
import type { ClaimedJob, Completion, HandleJob, Job, Queue, Room, WorkOptions } from '../../src/store/queue-types.ts'
import { capture, fixtures, type ManualClock, manualClock } from '../../src/testing.ts'
import { testQueue } from '../contracts/queue.ts'
import { testedMemoryQueue } from '../support/memory.ts'
import { jobOf } from '../support/queues.ts'
import { readAll } from '../support/read-all.ts'
import { deliver, secret, watchWarnings } from '../support/receive.ts'
import { testedSqliteQueue } from '../support/sqlite.ts'
import { throwing } from '../support/throwing.ts'
import { testEncryption } from './encrypted-cases.ts'
import { newFile } from './sqlite/set-up.ts'

const k1: EncryptionKey = { id: 'k1', key: randomBytes(32) }
const k2: EncryptionKey = { id: 'k2', key: randomBytes(32) }
const sealsOf = (...keys: readonly EncryptionKey[]): Seals => readSeals('encryption', { keys }) as Seals
const history = { maxAgeMs: 3_600_000 }

function openInMemory(clock: ManualClock): Queue {
  const queue = encryptQueue(memoryQueue({ clock }), sealsOf(k1), clock)
  const close: Queue['close'] = async (options) =>
    (await queue.close(options)).map((job) => ({ ...job, body: new Uint8Array(job.body) })) // They were Buffers.
  return { ...queue, close }
}

const createOnDisk = () =>
  testedSqliteQueue((options) => encryptQueue(sqliteQueue(options), sealsOf(k1), options.clock ?? manualClock()))

testQueue('an encrypted queue in memory', () => testedMemoryQueue(openInMemory), { isDurable: false })
testQueue('an encrypted SQLite file', createOnDisk)

describe('an encrypted SQLite file', () => {
  const folder = dirname(newFile(afterAll))
  const pathOf = (name: string): string => join(folder, name)
  testEncryption({
    open: (name) => sqliteQueue({ path: pathOf(name), name }),
    read: async (name) => {
      const files = readdirSync(folder).filter((file) => file.startsWith(name))
      return files.map((file) => readFileSync(pathOf(file), 'latin1')).join('\n')
    },
    rewritesLog: true,
  })
})

/** A receiver on a file, whose handler fails for pages, with another one for each set of keys. */
function setUpFile() {
  const path = newFile()
  const errors: HooklineError[] = []
  const letters: DeadLetterMessage[] = []
  const seen: string[] = []
  function openRaw(): Queue {
    const queue = sqliteQueue({ path, name: 'inbox' })
    onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
    return queue
  }
  function open(keys: readonly EncryptionKey[] | undefined) {
    const queue = openRaw()
    const receiver = createReceiver({
      secret,
      inbox: { queue, history, retries: [0], ...(keys && { encryption: { keys } }) },
      onError: (error) => errors.push(error),
      onDeadLetter: (letter) => void letters.push(letter),
    })
    const handler = ({ type }: { readonly type: string }) => {
      seen.push(type)
      if (type === 'page') throw new Error('the CRM of Ada is down')
    }
    receiver.on('*', handler, { name: 'crm' })
    return { receiver, queue }
  }
  /** Has a receiver with these keys store messages, and handle none. */
  async function store(keys: readonly EncryptionKey[] | undefined, ...messages: readonly object[]): Promise<void> {
    const { receiver } = open(keys)
    for (const message of messages) await deliver(receiver, message)
    await receiver.close({ graceMs: 0 })
  }
  return { open, store, openRaw, errors, letters, seen }
}

it('an inbox with keys handles what was stored before, and replays, redrives, forgets and drops by what is inside', async () => {
  const { open, store, seen } = setUpFile()
  await store(undefined, fixtures.group)
  const { receiver, queue } = open([k1])
  receiver.start()
  for (const message of [fixtures.track, fixtures.page]) await deliver(receiver, message)
  await queue.drain()
  expect(await receiver.replay({ event: fixtures.track.event })).toMatchObject({ count: 1 })
  await queue.drain()
  expect(seen.toSorted()).toEqual(['group', 'page', 'page', 'track', 'track'])
  expect(await receiver.redrive({ type: 'page', handler: 'crm' })).toBe(1)
  await queue.drain()
  expect(await receiver.drop({ type: 'track' })).toBe(0)
  expect(await receiver.forget('user-1')).toEqual({ deleted: 3, active: 0 })
})

describe('a message whose key is not listed', () => {
  const namesKey = { message: expect.stringMatching(/'k1'.*encryption\.keys/) }

  it('is a dead letter that no handler saw, and is handled once the key is back', async () => {
    const { open, store, errors, letters, seen } = setUpFile()
    await store([k1], fixtures.track)

    const without = open([k2])
    without.receiver.start()
    await without.queue.drain()
    const [letter] = await without.receiver.deadLetters()
    await without.receiver.close({ graceMs: 0 })

    expect(seen).toEqual([])
    expect(letter).toMatchObject({ reason: 'unreadable', message: undefined, error: namesKey })
    expect(errors).toMatchObject([{ code: 'internal', ...namesKey }])
    expect(letters).toMatchObject([{ id: letter?.id, reason: 'unreadable' }])
    const again = open([k2, k1])
    again.receiver.start()
    expect(await again.receiver.redrive({ reason: 'unreadable' })).toBe(1)
    await again.queue.drain()
    expect(seen).toEqual(['track'])
    expect(await readAll(again.receiver.history())).toMatchObject([{ message: fixtures.track }])
  })

  it('keeps its reason and its time in the lists of those who have no key', async () => {
    const { open, store, openRaw } = setUpFile()
    await store([k1], fixtures.track, fixtures.page)
    const { receiver, queue } = open([k1])
    receiver.start()
    await queue.drain()
    const [{ id, failedAt } = { id: '', failedAt: new Date(0) }] = await receiver.deadLetters()
    await receiver.close({ graceMs: 0 })
    const raw = openRaw()

    for (const inspected of [inspectQueue(raw), inspectQueue(raw, { encryption: { keys: [k2] } })]) {
      const [letter, ...others] = await readAll(inspected.deadLetters({ reason: 'handler_failed' }))
      expect(others).toEqual([])
      expect(letter).toMatchObject({ id, failedAt, reason: 'handler_failed', message: undefined })
      expect(letter).toMatchObject({ error: { message: expect.stringContaining("'k1'") } })
      expect(await inspected.redrive('all', { dryRun: true })).toEqual({ count: 1, reasons: { handler_failed: 1 } })
      expect(await readAll(inspected.history())).toMatchObject([{ receivedAt: undefined, message: undefined }])
      expect(await inspected.replay()).toMatchObject({ count: 0, types: { unreadable: 1 } })
    }
    const inspected = inspectQueue(raw, { encryption: { keys: [k1] } })
    expect(await readAll(inspected.deadLetters({ handler: 'crm' }))).toMatchObject([{ message: fixtures.page }])
    expect(await inspected.replay({ dryRun: true })).toMatchObject({ types: { track: 1 } })
  })

  it('of a destination is a dead letter that no URL saw, whose error names the key', async () => {
    const clock = manualClock()
    const queue = memoryQueue({ clock })
    const { dispatcher, requests } = capture()
    await encryptQueue(queue, sealsOf(k1), clock).push([jobOf(JSON.stringify(fixtures.track))])

    const options = { webhooks: [{ url: 'https://shop.example/webhooks' }], dispatcher, queue, clock }
    const destination = createDestination({ ...options, onAttempt: () => {}, encryption: { keys: [k2] } })
    await clock.advance(0)

    const letter = { reason: 'unreadable', message: undefined, error: namesKey.message }
    expect([requests, await destination.deadLetters()]).toMatchObject([[], [letter]])
    await destination.close({ graceMs: 0 })
  })
})

describe('a sealed value', () => {
  const seals = sealsOf(k1)
  const id = randomUUID()
  const body = Buffer.from('{"type":"track"}')
  const sealed = seals.seal('body', id, body)

  it('is opened where it was sealed, and is another one each time', () => {
    expect(seals.open('body', id, sealed)).toEqual(body)
    expect(seals.seal('body', id, body)).not.toEqual(sealed)
    const ivOf = (sealed: Uint8Array) => Buffer.from(sealed.subarray(5, 17)).toString('hex')
    const many = Array.from({ length: 600 }, () => ivOf(seals.seal('body', id, body)))
    expect(new Set(many).size).toBe(600)
  })

  it('has a form that later releases read, and one of a later release stays as it is', () => {
    const kept = '/wEoQS1aYS16MC05Ll86Ly14eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eMMZMOtAH0asHV2NTnvZfOSK3Ek21N9tgvW90XzJfg=='
    const seals = sealsOf({ id: 'A-Za-z0-9._:/-'.padEnd(40, 'x'), key: Buffer.alloc(32, 7) })
    const opened = seals.open('retryState', '00000000-0000-4000-8000-000000000000', Buffer.from(kept, 'base64'))
    const later = Buffer.from([0xff, 2, 2, ...Buffer.from('k1')])
    expect(`${opened}`).toBe('{}')
    expect([...sealed.subarray(0, 5)]).toEqual([0xff, 1, 2, ...Buffer.from('k1')])
    expect(() => seals.open('body', id, later)).toThrow(/format/)
    expect([seals.tryOpen('body', id, later), seals.reseal('body', id, later)]).toEqual([later, later])
  })

  it('is opened at no other place, and not when any of its bytes was changed or is missing', () => {
    expect(() => seals.open('body', randomUUID(), sealed)).toThrow(HooklineError)
    expect(() => seals.open('retryState', id, sealed)).toThrow(HooklineError)
    for (let at = 1; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => seals.open('body', id, changed), `byte ${at}`).toThrow(HooklineError)
      expect(() => seals.open('body', id, sealed.subarray(0, at)), `the first ${at}`).toThrow(HooklineError)
    }
  })

  it('is not opened by another key of its id', () => {
    const others = sealsOf({ id: 'k1', key: randomBytes(32) })
    expect(() => others.open('body', id, sealed)).toThrow(/'k1'/)
    expect(others.tryOpen('body', id, sealed)).toBe(sealed)
    expect(others.reseal('body', id, sealed)).toBe(sealed)
  })

  it('is sealed anew with the first key, once, as is what was plain', () => {
    const both = sealsOf(k2, k1)
    for (const given of [sealed, body]) {
      const again = both.reseal('body', id, given)
      expect(sealsOf(k2).open('body', id, again)).toEqual(body)
      expect(both.reseal('body', id, again)).toBe(again)
    }
    expect(both.reseal('note', id, new Uint8Array())).toEqual(new Uint8Array())
  })
})

/** Has an inbox work on a queue that only remembers what it was given. */
function setUpWork(keys: readonly EncryptionKey[]) {
  const clock = manualClock()
  let given: { readonly handle: HandleJob; readonly options: WorkOptions } | undefined
  const memory = memoryQueue({ clock })
  const work: Queue['work'] = (handle, options) => {
    given = { handle, options }
    return () => {}
  }
  const queue = { ...memory, work, isTransactional: true }
  const inbox = { queue, transactional: true, history, encryption: { keys } }
  const receiver = createReceiver({ secret, clock, onError: () => {}, inbox })
  const handler = ({ type }: { readonly type: string }) => {
    if (type === 'page') throw new Error('no')
  }
  receiver.on('*', handler, { name: 'crm' }).start()
  const { handle, options } = given as unknown as NonNullable<typeof given>
  async function claim(message: object): Promise<ClaimedJob> {
    await deliver(receiver, message)
    const [job] = (await memory.close({ graceMs: 0 })) as [Job]
    return { ...job, claimCount: 1, firstAt: new Date(5), retryState: undefined }
  }
  return { clock, handle, options, claim }
}

const signal = new AbortController().signal
const begin = async () => ({ db: {}, commit: async () => {}, rollback: async () => {} })
const textOf = (kind: 'note' | 'retryState', { id }: Job, sealed: Uint8Array) =>
  JSON.parse(`${Buffer.from(sealsOf(k1).open(kind, id, sealed))}`)

test('a note that a transaction commits is sealed', async () => {
  const { handle, claim } = setUpWork([k1])
  const completed: Completion[] = []
  const commit = async (completions: readonly Completion[]) => void completed.push(...completions)
  const job = await claim(fixtures.track)
  const outcome = await handle(job, signal, undefined, async () => ({ ...(await begin()), commit }))
  expect(outcome).toEqual({ complete: true, log: expect.anything() })
  const [{ claim: completedJob, log: note = new Uint8Array() }] = completed as [Completion]
  expect(completedJob).toBe(job)
  expect([note[0], textOf('note', job, note)]).toEqual([0xff, { handlers: ['crm'] }])
})

test('whether a job runs alone is decided by its retry state', async () => {
  const { handle, options, claim } = setUpWork([k1])
  const job = await claim(fixtures.page)
  const { retryState } = (await handle(job, signal, undefined, begin)) as { retryState: Uint8Array }
  expect(options.runsAlone?.({ ...job, retryState, claimCount: 2 })).toBe(false)
  expect(options.runsAlone?.({ ...job, retryState, claimCount: 3 })).toBe(true)
  expect(options.room).toBeUndefined()
})

test('a state that is saved while a message is handled is sealed, and kept where it cannot be opened', async () => {
  const { handle, claim } = setUpWork([k1])
  const job = await claim(fixtures.page)
  const { retryState } = (await handle(job, signal, undefined, begin)) as { retryState: Uint8Array }
  const saved: Uint8Array[] = []
  await handle({ ...job, retryState }, signal, async (state) => void saved.push(state), begin) // It was redriven.
  const states = saved.map((state) => [state[0], textOf('retryState', job, state)])
  expect(states).toMatchObject([[0xff, { attempts: 0 }]])
  const unreadable = await handle({ ...job, id: randomUUID(), retryState }, signal)
  expect(unreadable).toEqual({ deadLetter: expect.any(String), retryState })
})

test('what is not encrypted is passed on', async () => {
  const [push, close, drop] = [vi.fn(async () => []), vi.fn(async () => []), vi.fn(async () => 0)]
  const queue = encryptQueue({ ...memoryQueue(), push, close, drop }, sealsOf(k1), manualClock())
  const [db, filter] = [{}, { olderThan: new Date(5), reason: 'no' }]
  for (const more of [{}, { matches: () => true }]) await queue.drop({ ...filter, ...more })
  await queue.push([], { db })
  await queue.close({ graceMs: 5 })
  expect(drop.mock.calls).toEqual([[filter], [{ ...filter, matches: expect.any(Function) }]])
  expect([push.mock.calls, close.mock.calls]).toEqual([[[[], { db }]], [[{ graceMs: 5 }]]])
})

describe('a key that a function returns', () => {
  it('is asked for once, and refuses messages and claims nothing until it is there', async () => {
    const warn = watchWarnings()
    const clock = manualClock()
    const memory = memoryQueue({ clock })
    await memory.push([jobOf('{"hookline":1}')]) // It is no envelope: a claim would make it a dead letter.
    const key = vi.fn<() => Promise<Uint8Array>>(throwing('the KMS is down'))
    const errors: HooklineError[] = []
    const onError = (error: HooklineError) => void errors.push(error)
    const inbox = { queue: memory, encryption: { keys: [{ id: 'kms', key }] } }
    const receiver = createReceiver({ secret, clock, inbox, onError }).on('*', () => {})
    expect(key).not.toHaveBeenCalled()

    const refused = await deliver(receiver, fixtures.track)
    receiver.start()
    await clock.advance(10_000)

    const unavailable = { code: 'queue_unavailable' }
    expect(refused).toMatchObject({ status: 503, error: { code: 'inbox_unavailable', cause: unavailable } })
    expect(inspect(errors)).toContain('the KMS is down')
    expect(await receiver.health()).toMatchObject({ waiting: 1, active: 0, deadLetters: 0 })
    await expect(receiver.deadLetters()).rejects.toMatchObject(unavailable)
    await expect(receiver.forget('user-1')).rejects.toMatchObject(unavailable)
    const warned = expect.objectContaining({ code: 'HOOKLINE_ENCRYPTION' })
    expect(warn).toHaveBeenCalledWith('encryption.keys failed', warned)
    expect(key.mock.calls.length).toBeLessThan(40) // Once a second, and for each call.
    key.mockRejectedValue(new Error('the KMS is still down'))
    await clock.advance(1_000)
    key.mockReset().mockResolvedValue(k1.key as Uint8Array)
    await clock.advance(1_000)
    const accepted = await Promise.all([deliver(receiver, fixtures.track), deliver(receiver, fixtures.group)])
    await clock.advance(0)

    expect(accepted).toMatchObject([{ status: 200 }, { status: 200 }])
    expect(await receiver.health()).toMatchObject({ waiting: 0, active: 0, deadLetters: 1 })
    expect(key).toHaveBeenCalledTimes(1)
  })

  it('holds what would be claimed while it fails, and no push, when another key is the first', async () => {
    watchWarnings()
    const { clock, handle, options, claim } = setUpWork([
      k1,
      { id: 'old', key: () => Promise.reject(new Error('disabled')) },
    ])
    const job = await claim(fixtures.track)
    expect([options.room?.count(), options.room?.nextAt()]).toEqual([0, new Date(clock.now() + 1_000)])
    await expect(handle(job, signal)).rejects.toMatchObject({ code: 'queue_unavailable' })
  })

  it('leaves the room to its owner once it is there', async () => {
    let room: Room | undefined
    const work: Queue['work'] = (_handle, options) => {
      room = options.room
      return () => {}
    }
    const seals = sealsOf({ id: 'kms', key: () => k1.key as Uint8Array })
    const queue = encryptQueue({ ...memoryQueue(), work }, seals, manualClock())
    queue.work(() => Promise.reject(), { concurrency: 9, room: { count: () => 2, nextAt: () => new Date(5) } })
    expect(room?.count()).toBe(0)
    await seals.waitToOpen()
    expect([room?.count(), room?.nextAt()]).toEqual([2, new Date(5)])
  })

  it('must return 32 bytes', async () => {
    const [text, old] = ['c2VjcmV0IGtleSBvZiB0aGlydHktdHdvIGJ5dGVzISE=', { id: 'old', key: throwing('disabled') }]
    await sealsOf({ id: 'kms', key: async () => k1.key as Uint8Array }, old).waitToSeal() // The first key is enough.
    for (const wrong of [text, randomBytes(31), undefined]) {
      const seals = sealsOf({ id: 'kms', key: () => wrong as Uint8Array })
      const error = await seals.waitToSeal().catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'queue_unavailable', cause: expect.any(TypeError) })
      expect(inspect(error)).not.toContain(text)
    }
  })
})

describe('the options', () => {
  const text = randomBytes(32).toString('base64')
  const wrong: readonly (readonly [option: string, encryption: unknown])[] = [
    ['encryption', text],
    ['encryption.keys', { keys: [] }],
    ['encryption.keys[0]: options` must be an object. Got bytes.', { keys: [k1.key] }],
    ['secret', { keys: [{ ...k1, secret: text }] }],
    ...['with space', '', 'x'.repeat(41)].map(
      (id) => ['encryption.keys[0].id', { keys: [{ id, key: k1.key }] }] as const,
    ),
    ['encryption.keys[1].id', { keys: [k1, { id: 'k1', key: k2.key }] }],
    ['encryption.keys[0].key', { keys: [{ id: 'k1', key: text }] }],
    ['encryption.keys[1].key', { keys: [k1, { id: 'k2', key: randomBytes(16) }] }],
  ]

  test.each(wrong)('`%s` is a TypeError that names it: %#', (option, encryption) => {
    const create = [
      () => createReceiver({ secret, inbox: { queue: memoryQueue(), encryption: encryption as never } }),
      () => createDestination({ webhooks: [{ url: 'https://shop.example' }], encryption: encryption as never }),
      () => inspectQueue(memoryQueue(), { encryption: encryption as never }),
    ]
    for (const call of create) {
      expect(call).toThrow(TypeError)
      expect(call).toThrow(option)
      expect(call).not.toThrow(text)
    }
  })

  it('are shown nowhere', async () => {
    const receiver = createReceiver({ secret, inbox: { queue: memoryQueue(), encryption: { keys: [k1] } } })
    const inspected = inspectQueue(memoryQueue(), { encryption: { keys: [k1] } })
    const shown = inspect([receiver, inspected, sealsOf(k1)], { depth: 20, showHidden: true, maxArrayLength: 1_000 })
    const key = Buffer.from(k1.key as Uint8Array)
    const forms = [key.toString('hex'), key.toString('base64'), [...key.subarray(0, 6)].join(', ')]
    for (const form of forms) expect(shown).not.toContain(form)
    await receiver.close({ graceMs: 0 })
  })
})

it('rewrite changes nothing where the engine cannot, and says what is left', async () => {
  const queue = memoryQueue()
  await queue.push([jobOf('plain')])
  await encryptQueue(queue, sealsOf(k1), manualClock()).push([jobOf('sealed'), jobOf('sealed')])
  const { rewrite } = inspectQueue(queue, { encryption: { keys: [k2, k1] } })
  expect(await rewrite()).toEqual({ count: 0, left: { '': 1, k1: 2 } })
  await expect(inspectQueue(queue).rewrite()).rejects.toThrow(TypeError)
})
