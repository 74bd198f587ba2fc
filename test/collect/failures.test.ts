/** What happens to calls that are not delivered: refused by the service, dropped from a full buffer, passed to onError. */

import { afterEach, describe, expect, it, vi } from 'vitest'
import { BatchError } from '../../src/client.ts'
import { HooklineError } from '../../src/protocol/error.ts'
import { eventsOf, inChunks, numbered, settle, setUp } from './dispatcher.ts'

afterEach(() => vi.restoreAllMocks())

describe('calls that the answer lists as refused', () => {
  async function failuresAfter(body: unknown) {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const { client, failures, sent } = setUp([{ status: 200, body: text }])
    for (let index = 0; index < 3; index++) client.track(numbered(index))
    await client.flush()
    expect(sent).toHaveLength(1)
    return failures
  }

  it('are reported with what is wrong with them', async () => {
    const refused = [
      { index: 2, messageId: 'm', code: 'call_invalid', path: 'properties.items[0]', detail: 'it is' },
      { index: 0, code: 'call_too_large' },
    ]
    const failures = await failuresAfter({ success: true, accepted: 1, refused })
    expect(failures.map(({ calls }) => eventsOf(calls))).toEqual([['Event 2'], ['Event 0']])
    expect(failures.map(({ error }) => error)).toEqual([
      expect.objectContaining({
        reason: 'call_refused',
        code: 'call_invalid',
        path: 'properties.items[0]',
        attempts: 1,
      }),
      expect.objectContaining({ reason: 'call_refused', code: 'call_too_large', path: undefined }),
    ])
    expect(failures[0]?.error.message).toContain('call_invalid, properties.items[0]')
  })

  it('are reported once, also when listed twice', async () => {
    expect(await failuresAfter({ refused: [{ index: 1 }, { index: 1 }] })).toHaveLength(1)
    expect(await failuresAfter({ refused: [{ index: 2 }, { index: 1, count: 2 }] })).toHaveLength(2)
  })

  it('are reported together when they were refused together', async () => {
    const refused = [
      { index: 0, code: 'call_invalid' },
      { index: 1, count: 2, code: 'too_many_refused' },
    ]
    const [, rest, ...others] = await failuresAfter({ accepted: 0, refused, refusedCount: 3 })
    expect([eventsOf(rest?.calls ?? []), others]).toEqual([['Event 1', 'Event 2'], []])
    expect(rest?.error).toMatchObject({ reason: 'call_refused', code: 'too_many_refused' })
    expect(rest?.error.message).toContain('2 calls together: too_many_refused.')
  })

  it.each([
    [1e9, ['Event 1', 'Event 2']],
    [-1, []],
  ])('a count of %j is read as far as it makes sense', async (count, events) => {
    const failures = await failuresAfter({ refused: [{ index: 1, count }] })
    expect(failures.flatMap(({ calls }) => eventsOf(calls))).toEqual(events)
  })

  it.each<[string, object, string, string[]]>([
    ['some', { accepted: 1, refused: [{ index: 1 }] }, '1 unlisted refusal among 2 calls', ['Event 0', 'Event 2']],
    ['all', { accepted: 0, refused: [] }, '3 unlisted refusals among 3 calls', ['Event 0', 'Event 1', 'Event 2']],
  ])(
    'are reported together when the answer counts them and does not list them: %s',
    async (_name, body, text, events) => {
      const failures = await failuresAfter(body)
      const { error, calls } = failures.at(-1) ?? {}
      expect(failures.slice(0, -1).every(({ error }) => 'reason' in error && error.reason === 'call_refused')).toBe(
        true,
      )
      expect(error).toMatchObject({ reason: 'maybe_refused', attempts: 1, code: undefined })
      expect(error?.message).toContain(text)
      expect(eventsOf(calls ?? [])).toEqual(events)
    },
  )

  it.each([
    ['one that takes more than there are', { accepted: 9, refused: [] }],
    ['one that is none', { accepted: -1, refused: [] }],
  ])('a count of what is accepted reports nothing: %s', async (_name, body) => {
    expect(await failuresAfter(body)).toEqual([])
  })

  it.each([
    ['that is cut', [JSON.stringify({ success: true, refused: [{ index: 0, detail: 'x'.repeat(1024 * 1024) }] })]],
    ['that is no JSON', ['{"success":true,"refused":[{"index":0},']],
  ])('are reported as one batch when they cannot be read from an answer %s', async (_name, body) => {
    const { client, failures } = setUp([{ status: 200, body: body.flatMap(inChunks) }])
    for (let index = 0; index < 3; index++) client.track(numbered(index))
    await client.flush()
    expect(failures.map(({ calls }) => eventsOf(calls))).toEqual([['Event 0', 'Event 1', 'Event 2']])
    expect(failures[0]?.error).toMatchObject({ reason: 'maybe_refused', message: expect.stringContaining('cut off') })
  })

  it.each([
    ['nothing', ''],
    ['null', 'null'],
    ['a list that is none', { refused: 'many' }],
    ['items that are none', { refused: [null, 7, 'x', {}, []] }],
    [
      'places that are none',
      { refused: [{ index: 3 }, { index: -1 }, { index: 0.5 }, { index: '0' }, { index: 'length' }] },
    ],
  ])('an answer of %s lists none', async (_name, body) => {
    const print = vi.spyOn(console, 'error')
    expect(await failuresAfter(body)).toEqual([])
    expect(print).not.toHaveBeenCalled()
  })
})

describe('when the buffer is full', () => {
  const full = { maxQueued: 3, flushAt: 3, maxInFlight: 1 } as const

  it('throw, the default: the call throws queue_full and is not recorded', async () => {
    const { client, clock, dispatcher, failures } = setUp(['silence'], { maxQueued: 3, flushAt: 3 })
    for (let index = 0; index < 3; index++) client.track(numbered(index))
    await settle()
    expect(() => client.track(numbered(3))).toThrow(HooklineError)
    expect(() => client.track(numbered(3))).toThrow(expect.objectContaining({ code: 'queue_full' }))
    expect(() => client.track(numbered(3))).toThrow(
      /^The buffer of the client is full\. Got 3 undelivered calls \(\d+ bytes\)\. Raise `maxQueued`/,
    )
    await clock.advance(11_000)
    client.track(numbered(4))
    await client.flush()
    expect(eventsOf(dispatcher.calls)).toEqual([
      'Event 0',
      'Event 1',
      'Event 2',
      'Event 0',
      'Event 1',
      'Event 2',
      'Event 4',
    ])
    expect(failures).toEqual([])
  })

  it('drop_oldest: onError gets those that waited longest', async () => {
    const { client, dispatcher, failures } = setUp([], { ...full, whenFull: 'drop_oldest' })
    for (let index = 0; index < 5; index++) client.track(numbered(index))
    expect(failures.map(({ calls }) => eventsOf(calls))).toEqual([['Event 0'], ['Event 1']])
    expect(failures[0]?.error).toBeInstanceOf(BatchError)
    expect(failures[0]?.error).toMatchObject({ reason: 'queue_full', attempts: 0 })
    await client.flush()
    expect(eventsOf(dispatcher.calls)).toEqual(['Event 2', 'Event 3', 'Event 4'])
  })

  it('drop_oldest: what is on its way cannot give way', async () => {
    const { client, failures, sent } = setUp(['silence'], { ...full, whenFull: 'drop_oldest' })
    for (let index = 0; index < 3; index++) client.track(numbered(index))
    await settle()
    expect(sent).toHaveLength(1)
    client.track(numbered(3))
    expect(failures.map(({ calls }) => eventsOf(calls))).toEqual([['Event 3']])
  })

  it('drop_oldest: a flush does not wait for what is dropped', async () => {
    const { client, failures } = setUp(['silence'], { maxQueued: 1, flushAt: 1, whenFull: 'drop_oldest' })
    client.track(numbered(0))
    const flushed = client.flush()
    client.track(numbered(1))
    await flushed
    expect(failures.map(({ calls }) => eventsOf(calls))).toEqual([['Event 0']])
  })

  it('bytes count as well', async () => {
    const note = 'x'.repeat(20_000)
    const { client, failures } = setUp([], { maxQueuedBytes: 32 * 1024, whenFull: 'drop_oldest' })
    client.track(numbered(0))
    client.track(numbered(1))
    client.track({ ...numbered(2), properties: { note } })
    expect(failures).toEqual([])
    client.track({ ...numbered(3), properties: { note } })
    expect(failures.map(({ calls }) => eventsOf(calls))).toEqual([['Event 0', 'Event 1', 'Event 2']])
  })

  it('what is delivered makes room, in calls and in bytes', async () => {
    const properties = { note: 'x'.repeat(20_000) }
    const { client, dispatcher } = setUp([200, 400], { maxQueued: 2, maxQueuedBytes: 64 * 1024 })
    for (let index = 0; index < 10; index++) {
      client.track({ ...numbered(index), properties })
      await client.flush()
    }
    expect(dispatcher.calls).toHaveLength(10)
  })
})

describe('onError', () => {
  it.each([
    [
      'throws',
      () => {
        throw new Error('mine')
      },
    ],
    ['rejects', () => Promise.reject(new Error('mine'))],
  ])('that %s is a warning, and the client goes on', async (_name, onError) => {
    const emit = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const { client, dispatcher } = setUp([400], { onError })
    client.track(numbered(0))
    await client.flush()
    client.track(numbered(1))
    await client.flush()
    expect(eventsOf(dispatcher.calls)).toEqual(['Event 0', 'Event 1'])
    expect(emit).toHaveBeenCalledExactlyOnceWith('onError failed', { code: 'HOOKLINE_ON_ERROR', detail: 'mine' })
  })

  it('that is async is awaited by flush', async () => {
    let stored = () => {}
    const { client } = setUp([400], {
      onError: () =>
        new Promise<void>((resolve) => {
          stored = resolve
        }),
    })
    client.track(numbered(0))
    let flushed = false
    const flushing = client.flush().then(() => {
      flushed = true
    })
    await settle()
    expect(flushed).toBe(false)
    stored()
    await flushing
    const again = setUp([400], { onError: () => Promise.reject(new Error('mine')) })
    const emit = vi.spyOn(process, 'emitWarning').mockReturnValue()
    again.client.track(numbered(0))
    await again.client.flush()
    expect(emit).toHaveBeenCalledOnce()
  })

  it('that is async is awaited by close, as long as its time lasts', async () => {
    const { client, clock } = setUp([400], { onError: () => new Promise(() => {}) })
    client.track(numbered(0))
    let rest: unknown
    const closing = client.close({ timeoutMs: 500 }).then((calls) => {
      rest = calls
    })
    await clock.advance(499)
    expect(rest).toBeUndefined()
    await clock.advance(1)
    await closing
    expect(rest).toEqual([])
  })

  it('that records again while the buffer is full throws, and nothing else is lost', async () => {
    const events = ['Event 1', 'Event 2', 'Event 3']
    const emit = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const { client, dispatcher } = setUp([], {
      maxQueued: 3,
      flushAt: 3,
      whenFull: 'drop_oldest',
      onError: (_error, calls) => {
        for (const call of calls) if (call.type === 'track') client.track(call)
      },
    })
    for (let index = 0; index < 4; index++) client.track(numbered(index))
    await client.flush()
    const detail = expect.stringContaining('The buffer of the client is full.')
    expect(emit.mock.calls).toEqual([['onError failed', { code: 'HOOKLINE_ON_ERROR', detail }]])
    expect(eventsOf(dispatcher.calls)).toEqual(events)
    client.track(numbered(9))
    await client.flush()
    expect(eventsOf(dispatcher.calls)).toEqual([...events, 'Event 9'])
  })
})
