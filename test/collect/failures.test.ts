/** What happens to calls that are not delivered: refused by the service, dropped from a full buffer, passed to onError. */

import { describe, expect, it, vi } from 'vitest'
import { BatchError } from '../../src/client.ts'
import { watchConsole } from '../support/console.ts'
import { keepLines } from '../support/logger.ts'
import { watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'
import { eventsOf, numbered, settle, setUp as setUpClient } from './dispatcher.ts'

function setUp(...given: Parameters<typeof setUpClient>) {
  const set = setUpClient(...given)
  const record = (from: number, to: number) => {
    for (let index = from; index <= to; index++) set.client.track(numbered(index))
  }
  return { ...set, record, failed: () => set.failures.map(({ calls }) => eventsOf(calls)) }
}

const full = { maxQueued: 3, flushAt: 3, maxInFlight: 1 } as const

describe('calls that the answer lists as refused', () => {
  /** What is reported of a batch of three. */
  async function failuresAfter(body: unknown) {
    const answer = { status: 200, body: typeof body === 'string' ? body : JSON.stringify(body) }
    const { client, record, failures, failed, requests } = setUp([answer])
    record(0, 2)
    await client.flush()
    expect(requests).toHaveLength(1)
    return { failed: failed(), errors: failures.map(({ error }) => error) }
  }

  it('are reported with what is wrong with them', async () => {
    const refused = [
      { index: 2, messageId: 'm', code: 'call_invalid', path: 'properties.items[0]', detail: 'it is' },
      { index: 0, code: 'call_too_large' },
    ]

    const { failed, errors } = await failuresAfter({ success: true, accepted: 1, refused })

    expect(failed).toEqual([['Event 2'], ['Event 0']])
    expect(errors).toMatchObject([
      { reason: 'call_refused', code: 'call_invalid', path: 'properties.items[0]', attempts: 1 },
      { reason: 'call_refused', code: 'call_too_large', path: undefined },
    ])
    expect(errors[0]?.message).toContain('call_invalid, properties.items[0]')
  })

  const all = [['Event 0', 'Event 1', 'Event 2']]
  const cut = { refused: [{ index: 0, detail: 'x'.repeat(1024 * 1024) }] }
  it.each<[string, unknown, string[][], reason?: string]>([
    ['once, also when listed twice', { refused: [{ index: 1 }, { index: 1 }] }, [['Event 1']]],
    ['together when they were refused together', { refused: [{ index: 1, count: 2 }] }, [['Event 1', 'Event 2']]],
    ['as far as a count makes sense', { refused: [{ index: 1, count: 1e9 }] }, [['Event 1', 'Event 2']]],
    ['not at all with a count below one', { refused: [{ index: 1, count: -1 }] }, []],
    ['not at all when there is no answer', '', []],
    ['not at all when its items are none', { refused: [null, 7, 'x', {}, []] }, []],
    ['not at all at places that are none', { refused: [3, -1, 0.5, '0', 'length'].map((index) => ({ index })) }, []],
    ['as one batch when the answer is cut', cut, all, 'maybe_refused'],
    ['as one batch when the answer is no JSON', '{"success":true,"refused":[{"index":0},', all, 'maybe_refused'],
  ])('are reported %s', async (_how, body, expected, reason = 'call_refused') => {
    const printed = watchConsole()
    const { failed, errors } = await failuresAfter(body)
    expect(failed).toEqual(expected)
    expect(errors).toMatchObject(expected.map(() => ({ reason })))
    expect(printed).toEqual([])
  })

  it('are reported together when the answer counts them and does not list them', async () => {
    const { failed, errors } = await failuresAfter({ accepted: 1, refused: [{ index: 1 }] })
    expect(failed).toEqual([['Event 1'], ['Event 0', 'Event 2']])
    expect(errors).toMatchObject([
      { reason: 'call_refused' },
      { reason: 'maybe_refused', attempts: 1, code: undefined },
    ])
    expect(errors[1]?.message).toContain('refused 1 of 2 calls without saying which')
  })
})

describe('when the buffer is full', () => {
  it('throw, the default: the call throws queue_full and is not recorded', async () => {
    const { client, clock, failures, record, calls, batches } = setUp(['hang'], { maxQueued: 3, flushAt: 3 })
    record(0, 2)
    await settle()

    expect(() => record(3, 3)).toThrow(expect.objectContaining({ code: 'queue_full' }))
    expect(() => record(3, 3)).toThrow(/ 3 .*`maxQueued`/)

    await clock.advance(11_000)
    record(4, 4)
    await client.flush()
    expect(batches().map(({ length }) => length)).toEqual([3, 3, 1])
    expect(eventsOf(calls()).slice(3)).toEqual(['Event 0', 'Event 1', 'Event 2', 'Event 4'])
    expect(failures).toEqual([])
  })

  it('drop_oldest: onError gets those that waited longest', async () => {
    const { client, failures, record, failed, calls } = setUp([], { ...full, whenFull: 'drop_oldest' })
    record(0, 4)
    expect(failed()).toEqual([['Event 0'], ['Event 1']])
    expect(failures[0]?.error).toBeInstanceOf(BatchError)
    expect(failures[0]?.error).toMatchObject({ reason: 'queue_full', attempts: 0 })
    await client.flush()
    expect(eventsOf(calls())).toEqual(['Event 2', 'Event 3', 'Event 4'])
  })

  it('drop_oldest: what is on its way cannot give way', async () => {
    const { record, failed, requests } = setUp(['hang'], { ...full, whenFull: 'drop_oldest' })
    record(0, 2)
    await settle()
    expect(requests).toHaveLength(1)
    record(3, 3)
    expect(failed()).toEqual([['Event 3']])
  })

  it('drop_oldest: a flush does not wait for what is dropped', async () => {
    const { client, record, failed } = setUp(['hang'], { maxQueued: 1, flushAt: 1, whenFull: 'drop_oldest' })
    record(0, 0)
    const flushed = client.flush()
    record(1, 1)
    await flushed
    expect(failed()).toEqual([['Event 0']])
  })

  it('bytes count as well', async () => {
    const properties = { note: 'x'.repeat(20_000) }
    const { client, failures, record, failed } = setUp([], { maxQueuedBytes: 32 * 1024, whenFull: 'drop_oldest' })
    record(0, 1)
    client.track({ ...numbered(2), properties })
    expect(failures).toEqual([])
    client.track({ ...numbered(3), properties })
    expect(failed()).toEqual([['Event 0', 'Event 1', 'Event 2']])
  })

  it('what is delivered makes room, in calls and in bytes', async () => {
    const properties = { note: 'x'.repeat(20_000) }
    const { client, calls } = setUp([200, 400], { maxQueued: 2, maxQueuedBytes: 64 * 1024 })
    for (let index = 0; index < 10; index++) {
      client.track({ ...numbered(index), properties })
      await client.flush()
    }
    expect(calls()).toHaveLength(10)
  })
})

it('close() says how many lines of a logger were left out', async () => {
  const { logger, fields } = keepLines()
  const { client, record } = setUp([400, 400], { logger, flushAt: 2 })
  record(0, 3)
  await client.close()
  expect(fields()).toEqual([
    { code: 'batch_refused', calls: 2, status: 400 },
    { code: 'batch_refused', more: 2 },
  ])
})

describe('onError', () => {
  it.each([
    ['throws', throwing('mine')],
    ['rejects', () => Promise.reject(new Error('mine'))],
  ])('that %s is a warning, and the client goes on', async (_name, onError) => {
    const warnings = watchWarnings()
    const { client, record, calls } = setUp([400], { onError })

    for (const index of [0, 1]) {
      record(index, index)
      await client.flush()
    }

    expect(eventsOf(calls())).toEqual(['Event 0', 'Event 1'])
    const warning = { code: 'HOOKLINE_ON_ERROR', detail: 'mine' }
    expect(warnings).toHaveBeenCalledExactlyOnceWith(expect.any(String), warning)
  })

  it('that is async is awaited by close(), as by flush(), as long as its time lasts', async () => {
    const { client, clock, record } = setUp([400], { onError: () => new Promise(() => {}) })
    record(0, 0)

    const closed = vi.fn()
    void client.close({ timeoutMs: 500 }).then(closed)
    await clock.advance(499)
    expect(closed).not.toHaveBeenCalled()

    await clock.advance(1)
    expect(closed).toHaveBeenCalledWith([])
  })

  it('that records again while the buffer is full throws, and nothing else is lost', async () => {
    const warnings = watchWarnings()
    const { client, record, calls } = setUp([], {
      ...full,
      whenFull: 'drop_oldest',
      onError: (_error, calls) => {
        for (const call of calls) if (call.type === 'track') client.track(call)
      },
    })

    record(0, 3)
    await client.flush()
    record(9, 9)
    await client.flush()

    expect(warnings.mock.calls).toMatchObject([[expect.any(String), { code: 'HOOKLINE_ON_ERROR' }]])
    expect(eventsOf(calls())).toEqual(['Event 1', 'Event 2', 'Event 3', 'Event 9'])
  })
})
