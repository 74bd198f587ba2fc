import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { memoryDedupe } from '../../src/dedupe/memory.ts'
import type { Dedupe } from '../../src/dedupe/store.ts'
import type { Delivery } from '../../src/handling/delivery.ts'
import { OpenDelivery } from '../../src/handling/open-delivery.ts'
import { readEnvelope } from '../../src/inbox/envelope.ts'
import { idOfDigest } from '../../src/message/id.ts'
import { createKeys, sign } from '../../src/message/signature.ts'
import { memoryQueue } from '../../src/queues/memory/index.ts'
import { bytesSigned } from '../../src/receiver/batches.ts'
import type { ReceiverOptions } from '../../src/receiver/options.ts'
import { countEvents, setUpBatches, track, WAYS, type Way } from '../support/batches.ts'
import { secret, watchWarnings } from '../support/receive.ts'
import { until } from '../support/until.ts'

const some = ['ada', 'ben', 'cy'].map((user) => track(user))
const texts = some.map((message) => JSON.stringify(message))
const [first = ''] = texts
const signature = sign(first, secret)

function setUp(way: Way, options: ReceiverOptions = {}) {
  const set = setUpBatches(way, { batches: 'first_signed', ...options })
  const all: Delivery[] = []
  set.receiver.on('*', set.handle).on(
    '*',
    (_message, delivery) => {
      all.push(delivery)
    },
    { unverified: true },
  )
  const textsOf = (deliveries: readonly Delivery[]): string[] =>
    deliveries.map(({ bytes }) => Buffer.from(bytes).toString())
  return {
    ...set,
    trusting: () => textsOf(all),
    strict: () => textsOf(set.seen.map(({ delivery }) => delivery)),
    all,
  }
}

describe.each(WAYS)('a batch that signs its first element, %s', (way) => {
  it('verifies that one, and gives the others to handlers that ask for them', async () => {
    const set = setUp(way)
    const received = await set.post(some, 'first')
    expect(received).toMatchObject({ ok: true, status: 200 })
    expect(received.elements?.map(({ delivery }) => delivery.verified)).toEqual(['signature', false, false])
    expect(set.strict()).toEqual([first])
    expect(set.trusting()).toEqual(texts)
    expect(set.all.map(({ verified }) => verified)).toEqual(['signature', false, false])
    expect(new Set(set.all.map(({ id }) => id)).size).toBe(3)
  })

  it('knows the first by its signature, as if it had come alone: repeating it in a batch does nothing', async () => {
    const set = setUp(way)
    await set.send(first, signature)
    expect(set.seen[0]?.delivery.id).toBe(idOfDigest(signature))
    for (const rest of [[], [texts[1]], [texts[2]]]) await set.send(`[${[first, ...rest]}]`, signature)
    expect(set.strict()).toEqual(way === 'inline' ? [first, first, first, first] : [first])
    expect(new Set(set.seen.map(({ delivery }) => delivery.id))).toEqual(new Set([idOfDigest(signature)]))
    const others = set.all.filter(({ verified }) => !verified)
    expect(new Set(others.map(({ id }) => id)).size).toBe(2) // In one place behind one signature, and yet two messages.
    expect(others).toHaveLength(2)
  })

  it.each([
    ['white space', ` [ ${texts.join(' , ')} ] `],
    ['a byte order mark', `\ufeff[${texts}]`],
  ])('signs the bytes of the element without %s around it', async (_what, body) => {
    const set = setUp(way)
    expect(await set.send(body, signature)).toMatchObject({ ok: true })
    expect(set.trusting()).toEqual(texts)
    expect(set.strict()).toEqual([first])
  })

  it.each([
    ['the first is another', `[${texts[1]},${first}]`],
    ['the first has one more space', `[${first.replace('{', '{ ')}]`],
    ['the first is written in other letters', `[${first.replace('ada', '\\u0061da')}]`],
    ['the first is inside another array', `[[${first}]]`],
    ['the first is inside an object', `{"first":${first}}`],
    ['it is no array', ` ${first}`],
    ['it is empty', '[]'],
    ['nothing stands before the comma', `[,${first}]`],
    ['it is cut off', `${first.slice(0, -1)}`],
  ])('is refused when %s', async (_what, body) => {
    const set = setUp(way)
    expect(await set.receiver.receive(Buffer.from(body), { 'x-signature': signature })).toMatchObject({ status: 401 })
    expect([set.seen, set.all]).toEqual([[], []])
  })

  it('is not verified by a signature of no bytes', async () => {
    const set = setUp(way)
    for (const body of ['[]', '[,{}]', '[ ']) {
      const received = await set.receiver.receive(Buffer.from(body), { 'x-signature': sign('', secret) })
      expect(received).toMatchObject({ status: 401, error: { code: 'signature_mismatch' } })
    }
  })

  it.each([
    ['is no JSON behind the first', `[${first},{a:1}]`, 400, 'body_not_json'],
    ['has no end', `[${first}`, 400, 'body_not_json'],
    ['is too large', `[${Array(4).fill(first)}]`, 413, 'batch_too_large'],
  ])('is refused when it %s, and its body goes nowhere', async (_what, body, status, code) => {
    const onRejected = vi.fn()
    const set = setUp(way, { batchLimit: 3, ...(way !== 'inbox' && { onRejected }) })
    const received = await set.send(body, signature)
    expect(received).toMatchObject({ ok: false, status, error: { code } })
    expect([set.seen, set.all]).toEqual([[], []])
    expect(onRejected).not.toHaveBeenCalled()
    if (way === 'inbox') expect(await set.receiver.deadLetters()).toEqual([])
  })

  it('reports an invalid element that is not signed, and keeps it nowhere', async () => {
    const onRejected = vi.fn()
    const set = setUp(way, way === 'inbox' ? {} : { onRejected })
    const received = await set.send(`[${first},{"type":"purchase"},[1]]`, signature)
    expect(received).toMatchObject({ ok: false, status: 200, error: { code: 'message_type_unknown' } })
    expect(set.errors.map(({ code }) => code)).toEqual(['message_type_unknown', 'body_not_json'])
    expect(onRejected).not.toHaveBeenCalled()
    if (way === 'inbox') expect(await set.receiver.deadLetters()).toEqual([])
    expect(set.trusting()).toEqual([first])
  })

  it('keeps an invalid first element, which is signed', async () => {
    const onRejected = vi.fn()
    const set = setUp(way, way === 'inbox' ? {} : { onRejected })
    const body = '[{"type":"purchase"}]'
    expect(await set.send(body, sign('{"type":"purchase"}', secret))).toMatchObject({ status: 200 })
    const kept =
      way === 'inbox'
        ? (await set.receiver.deadLetters()).map(({ bytes, verified }) => [bytes, verified])
        : onRejected.mock.calls.map(([, { bytes }]) => [bytes, 'signature'])
    expect(kept).toEqual([[Buffer.from('{"type":"purchase"}'), 'signature']])
  })

  it('cannot suppress an element of an array that is signed as a whole', async () => {
    const set = setUp(way)
    const whole = `[${texts}]`
    // The attacker saw the signed array, puts it first, and sends its second element behind it, in its place.
    expect(await set.send(`[${whole},${texts[1]}]`, sign(whole, secret))).toMatchObject({ status: 401 })
    expect([set.strict(), set.trusting()]).toEqual([[], []])
    expect(await set.send(whole, sign(whole, secret))).toMatchObject({ ok: true })
    expect(set.strict()).toEqual(texts)
  })

  it('looks the same from outside, whichever of the two is signed or neither', async () => {
    const [key] = createKeys(secret)
    const body = Buffer.from(`[${texts}]`)
    for (const given of [signature, sign(body, secret), '0'.repeat(40)]) {
      const checked: number[] = []
      const batch = new OpenDelivery({}, 0)
      batch.setBody({ bytes: body, source: 'stream' })
      const counting = {
        sign: () => '',
        matches: (bytes: Uint8Array, text: string): boolean => {
          checked.push(bytes.length)
          return key?.matches(bytes, text) ?? false
        },
      }
      bytesSigned(batch, counting, given)
      expect(checked).toEqual([body.length, first.length])
    }
  })
})

describe('whatever stands behind a first message that is signed', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      ...texts,
      first.slice(1),
      '[',
      ']',
      '{',
      '}',
      ',',
      '"',
      '\\',
      ' ',
      '\n',
      '\ufeff',
      'null',
      signature,
    ),
    fc.json({ maxDepth: 2 }),
    fc.string({ unit: 'binary', maxLength: 5 }),
  )

  const junk = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''))
  const elements = fc.array(fc.oneof(fc.constantFrom(...texts), fc.json({ maxDepth: 2 })), { maxLength: 4 })
  const before = fc.oneof({ arbitrary: fc.constantFrom('', ' ', '\ufeff'), weight: 4 }, { arbitrary: junk, weight: 1 })
  const behind = fc.oneof(
    elements.map((list) => `${list.map((each) => `,${each}`).join('')}]`),
    junk,
  )

  it('no handler takes it for verified', async () => {
    const set = setUp('inline')
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(before, behind, async (start, end) => {
        set.seen.length = 0
        const body = Buffer.from(`${start}[${first}${end}`)
        const received = await set.receiver.receive(body, { 'x-signature': signature })
        for (const { delivery } of set.seen) expect(Buffer.from(delivery.bytes).toString()).toBe(first)
        for (const { delivery } of received.elements?.slice(1) ?? []) expect(delivery.verified).toBe(false)
        statuses.add(received.status)
      }),
      { numRuns: 1_000 },
    )
    expect([...statuses].sort()).toEqual([200, 400, 401])
  })
})

describe('unverified messages', () => {
  it('cannot suppress a verified message by its key', async () => {
    const set = setUp('inline', { dedupe: { store: memoryDedupe(), key: ({ messageId }) => String(messageId) } })
    const real = JSON.stringify(track('ben', { messageId: '7' }))
    const guess = JSON.stringify(track('guess', { messageId: '7' }))
    await set.send(`[${first},${guess}]`, signature)
    await set.send(real, sign(real, secret))
    expect(set.strict()).toEqual([first, real])
  })

  it('reach a handler of a type, of an event, of a list, of all and of an audience, each only when it asks', async () => {
    const set = setUpBatches('inline', { batches: 'first_signed' })
    const calls: string[] = []
    const call = (name: string) => () => void calls.push(name)
    for (const unverified of [true, false]) {
      const name = unverified ? 'asks' : 'does not'
      set.receiver
        .on('track', call(`type ${name}`), { unverified })
        .on(['track', 'page'], call(`list ${name}`), { unverified })
        .on('track', 'Seen', call(`event ${name}`), { unverified })
        .on('*', call(`all ${name}`), { unverified })
        .onAudience('vip', { entered: call(`audience ${name}`), exited: call(`exit ${name}`) }, { unverified })
    }
    await set.post(
      [{ type: 'page', userId: 'x' }, some[1], { type: 'identify', userId: 'ada', traits: { vip: true } }],
      'first',
    )
    const ofOthers = calls.slice(4) // Of the page, which is verified.
    expect(calls.slice(0, 4).sort()).toEqual(['all asks', 'all does not', 'list asks', 'list does not'])
    expect(ofOthers.sort()).toEqual(['all asks', 'all asks', 'audience asks', 'event asks', 'list asks', 'type asks'])
  })

  it('that no handler takes are answered, with a warning once', async () => {
    const warn = watchWarnings()
    let other = setUpBatches('inline', { batches: 'first_signed' })
    const set = setUpBatches('inline', { batches: 'first_signed' })
    set.receiver.on('*', set.handle)
    expect(await set.post(some.slice(0, 1), 'first')).toMatchObject({ ok: true })
    expect(warn).not.toHaveBeenCalled()
    for (let time = 0; time < 2; time++) expect(await set.post(some, 'first')).toMatchObject({ ok: true, status: 200 })
    expect(warn.mock.calls).toEqual([[expect.stringContaining('unverified: true'), { code: 'HOOKLINE_UNVERIFIED' }]])
    warn.mockClear()
    for (const register of [
      () => other.receiver.on('page', other.handle, { unverified: true }),
      () => other.receiver.onAudience('vip', { entered: other.handle }, { unverified: true }),
    ]) {
      other = setUpBatches('inline', { batches: 'first_signed' })
      register()
      await other.post(some, 'first')
    }
    expect(warn.mock.calls.filter(([, options]) => String(Object(options).code) === 'HOOKLINE_UNVERIFIED')).toEqual([])
  })

  it('have keys of their own in an inbox', async () => {
    const queue = memoryQueue()
    const key = ({ messageId }: { messageId?: string }): string => String(messageId)
    const set = setUpBatches('inbox', { batches: 'first_signed', inbox: { queue, key } })
    set.receiver.on('*', set.handle, { unverified: true })
    const [real, guess] = [track('ben', { messageId: '7' }), track('guess', { messageId: '7' })]
    await set.post([track('ada', { messageId: '1' }), guess], 'first')
    await set.post([real], 'body')
    expect(set.users()).toEqual(['ada', 'guess', 'ben'])
    await set.receiver.close()
  })

  it('are said to be so where an inbox lists them', async () => {
    const set = setUpBatches('inbox', { batches: 'first_signed', inbox: { queue: memoryQueue(), retries: [] } })
    const fail = (): never => {
      throw new Error('no')
    }
    set.receiver.on('*', fail, { unverified: true })
    await set.post(some.slice(0, 2), 'first')
    await until(async () => (await set.receiver.deadLetters()).length === 2)
    expect((await set.receiver.deadLetters()).map(({ verified }) => verified).sort()).toEqual([false, 'signature'])
    await set.receiver.close()
  })

  it('are all those of an envelope that does not say what is signed', () => {
    const head = {
      hookline: 2,
      at: 0,
      source: 'stream',
      signature,
      secretIndex: 0,
      element: { of: signature, index: 1 },
    }
    const read = (more: object) =>
      readEnvelope(Buffer.from(`${JSON.stringify({ ...head, headers: {}, ...more })}\n${texts[1]}`)).verified
    expect([read({}), read({ isUncovered: true }), read({ isUncovered: false })]).toEqual([false, false, 'signature'])
  })

  it('are asked for by an option that is checked', () => {
    const { receiver, handle } = setUpBatches('inline')
    const mistake = (value: unknown): never => value as never
    expect(() => receiver.on('track', handle, mistake({ unverifed: true }))).toThrow('Did you mean `unverified`?')
    expect(() => receiver.on('track', 'Seen', handle, mistake({ unverified: 1 }))).toThrow(
      '`on: unverified` must be a boolean',
    )
    expect(() => receiver.on('track', handle, undefined).on('track', 'Seen', handle, undefined)).not.toThrow()
    expect(() => receiver.on('track', 'Seen', mistake({}))).toThrow('`on: handler` must be a function. Got an object.')
    expect(() => receiver.on('track', handle, mistake(null))).toThrow('`on: options` must be an object. Got null.')
    expect(() => receiver.onAudience('vip', { entered: handle }, mistake({ unverified: 'yes' }))).toThrow(
      'must be a boolean',
    )
  })
})

function counting(store: Dedupe) {
  const claimed = new Set<string>()
  const claim: Dedupe['claim'] = (key) => {
    claimed.add(key)
    return store.claim(key)
  }
  return { claimed, store: { ...store, claim } }
}

describe('elements that nothing signs and no handler takes', () => {
  const junk = ['{"type":"page","userId":"x"}', '{"type":"track","event":"Other","userId":"x"}', '{"type":"junk"}', '1']
  const body = `[${[first, ...junk]}]`

  it.each(WAYS)('leave nothing behind, %s', async (way) => {
    watchWarnings()
    const { claimed, store } = counting(memoryDedupe())
    const inbox = memoryQueue()
    const push = vi.fn(inbox.push)
    const ways: Record<Way, ReceiverOptions> = {
      inline: {},
      dedupe: { dedupe: store },
      inbox: { inbox: { ...inbox, push } },
    }
    const set = setUpBatches(way, { batches: 'first_signed', ...ways[way] })
    set.receiver.on('*', set.handle).on('track', 'Asked', set.handle, { unverified: true })
    const events = countEvents()
    const kept: (readonly string[])[] = []
    set.receiver.observe({
      answered: ({ elements }) =>
        void kept.push(elements.map(({ delivery }) => Buffer.from(delivery.bytes).toString())),
    })
    const received = await set.receiver.receive(Buffer.from(body), { 'x-signature': signature })
    expect(received).toMatchObject({ status: 200, error: { code: 'message_type_unknown' } })
    expect(received.elements?.map(({ ok }) => ok)).toEqual([true, true, true, false, false])
    expect(kept).toEqual([[first]])
    expect([...claimed]).toEqual(way === 'dedupe' ? [idOfDigest(signature)] : [])
    expect(push.mock.calls.map(([jobs]) => jobs.length)).toEqual(way === 'inbox' ? [1] : [])
    const isStored = way === 'inbox'
    expect(events).toEqual({
      received: 1,
      rejected: 2, // What is invalid is reported.
      stored: isStored ? 1 : 0,
      handled: isStored ? 0 : 1,
      failed: 0,
    })
    await set.receiver.close()
  })

  it.each(['inline', 'dedupe'] as const)('leave nothing behind when the first fails, %s', async (way) => {
    const set = setUpBatches(way, { batches: 'first_signed', deadlineMs: 10 })
    set.receiver.on('*', set.handle).on('alias', set.handle, { unverified: true })
    set.handler.run = () => new Promise(() => {})
    const kept: number[] = []
    set.receiver.observe({ answered: ({ elements }) => void kept.push(elements.length) })
    const pending = set.receiver.receive(Buffer.from(body), { 'x-signature': signature })
    await until(() => set.seen.length === 1)
    await set.clock.advance(10)
    expect(await pending).toMatchObject({ status: 503, error: { code: 'handler_timeout' } })
    expect(kept).toEqual([1])
  })

  it('are not stored by a process without handlers, which says so once', async () => {
    const warn = watchWarnings()
    const set = setUpBatches('inbox', { batches: 'first_signed' })
    for (let time = 0; time < 2; time++) {
      expect(await set.receiver.receive(Buffer.from(`[${texts}]`), { 'x-signature': signature })).toMatchObject({
        ok: true,
      })
    }
    expect(await set.queue.counts()).toMatchObject({ waiting: 1 })
    expect(warn.mock.calls).toEqual([[expect.stringContaining('only stores'), { code: 'HOOKLINE_UNVERIFIED' }]])
    // Whoever stores for a worker registers the handlers of the worker, and does not start them.
    set.receiver.on('track', set.handle, { unverified: true })
    await set.receiver.receive(Buffer.from(`[${texts}]`), { 'x-signature': signature })
    expect(await set.queue.counts()).toMatchObject({ waiting: 3 })
    expect(set.seen).toEqual([])
    await set.receiver.close()
  })
})

it('a captured message with junk behind it, sent until a store of 100 000 is full, is handled once', async () => {
  const set = setUpBatches('dedupe', { batches: 'first_signed' })
  set.receiver.on('*', set.handle, { unverified: true })
  for (let time = 0; time < 102; time++) {
    const junk = Array.from({ length: 999 }, (_, index) => `{"type":"page","userId":"${time}.${index}"}`)
    const received = await set.receiver.receive(Buffer.from(`[${[first, ...junk]}]`), { 'x-signature': signature })
    expect(received).toMatchObject({ status: 200 })
  }
  await set.receiver.receive(Buffer.from(first), { 'x-signature': signature })
  const signed = set.seen.filter(({ delivery }) => delivery.verified)
  expect([signed.length, set.seen.length]).toEqual([1, 1 + 102 * 999])
})

describe('elements that nothing signs and a handler takes', () => {
  it('are not handled again when their batch comes again, and take no room of those that are signed', async () => {
    const { claimed, store } = counting(memoryDedupe())
    const set = setUpBatches('inline', { batches: 'first_signed', dedupe: store })
    set.receiver.on('*', set.handle, { unverified: true })
    let isBroken = true
    set.handler.run = ({ userId }) => {
      if (isBroken && userId === 'cy') throw new Error('out of stock')
    }
    expect(await set.post(some, 'first')).toMatchObject({ status: 500 })
    isBroken = false
    expect(await set.post(some, 'first')).toMatchObject({ status: 200 })
    expect(await set.post(some, 'first')).toMatchObject({ status: 200 })
    expect(set.users()).toEqual(['ada', 'ben', 'cy', 'cy'])
    expect([...claimed]).toEqual([idOfDigest(signature)])
  })
})
