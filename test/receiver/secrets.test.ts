import { describe, expect, it, vi } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { deliver, secret, setUp } from '../support/receive.ts'

const { track } = fixtures

describe('a secret provider', () => {
  it('is asked on the first request, once for all that wait, and then not for five minutes', async () => {
    const provider = vi.fn(async () => secret)
    const { receiver, clock } = setUp({ secret: provider })
    expect(provider).not.toHaveBeenCalled()
    const received = await Promise.all([1, 2, 3].map(() => deliver(receiver, track)))
    expect(received.map(({ status }) => status)).toEqual([200, 200, 200])
    await clock.advance(5 * 60_000 - 1)
    await deliver(receiver, track)
    expect(provider).toHaveBeenCalledTimes(1)
    await clock.advance(1)
    await deliver(receiver, track)
    expect(provider).toHaveBeenCalledTimes(2)
  })

  it('is not asked for a request without a well-formed signature', async () => {
    const provider = vi.fn(async () => secret)
    const { receiver } = setUp({ secret: provider })
    await receiver.receive(Buffer.from('{}'), {})
    await receiver.receive(Buffer.from('{}'), { 'x-signature': 'junk' })
    expect(provider).not.toHaveBeenCalled()
  })

  it('is asked again when no secret fits: a rotation is seen at once', async () => {
    let current = 'old'
    const { receiver, clock } = setUp({ secret: async () => current })
    expect(await deliver(receiver, track, 'old')).toMatchObject({ status: 200 })
    current = 'new'
    await clock.advance(10_000)
    expect(await deliver(receiver, track, 'new')).toMatchObject({ status: 200 })
    expect(await deliver(receiver, track, 'old')).toMatchObject({ status: 401 })
  })

  it('is not asked again by a flood of forgeries', async () => {
    const provider = vi.fn(async () => secret)
    const { receiver, clock } = setUp({ secret: provider })
    await deliver(receiver, track)
    await clock.advance(9_999)
    for (let forgery = 0; forgery < 100; forgery++) await deliver(receiver, track, 'guess')
    expect(provider).toHaveBeenCalledTimes(1)
    await clock.advance(1)
    await Promise.all(Array.from({ length: 100 }, () => deliver(receiver, track, 'guess')))
    expect(provider).toHaveBeenCalledTimes(2)
  })

  it('that fails is not asked again by a flood either, and its fault refuses no request for good', async () => {
    const provider = vi.fn(async () => 'old')
    const { receiver, clock } = setUp({ secret: provider })
    await deliver(receiver, track, 'old')
    provider.mockRejectedValue(new Error('sealed'))
    await clock.advance(10_000)
    for (let request = 0; request < 100; request++) {
      expect(await deliver(receiver, track, 'new')).toMatchObject({
        status: 503,
        error: { code: 'secret_unavailable' },
      })
    }
    expect(provider).toHaveBeenCalledTimes(2)
    expect(await deliver(receiver, track, 'old')).toMatchObject({ status: 200 })
    provider.mockResolvedValue('new')
    await clock.advance(10_000)
    expect(await deliver(receiver, track, 'new')).toMatchObject({ status: 200 })
    expect(await deliver(receiver, track, 'guess')).toMatchObject({ status: 401 })
  })

  it('that hangs once is asked again after the cooldown, and its late answer counts for nothing', async () => {
    let answerLate: (secret: string) => void = () => {}
    const provider = vi.fn<() => Promise<string>>(async () => secret)
    provider.mockImplementationOnce(
      () =>
        new Promise((resolve) => {
          answerLate = resolve
        }),
    )
    const { receiver, clock } = setUp({ secret: provider })
    const first = deliver(receiver, track)
    await clock.advance(4_500)
    expect(await first).toMatchObject({ status: 503, error: { code: 'secret_unavailable' } })
    await clock.advance(5_500)
    expect(await deliver(receiver, track)).toMatchObject({ status: 200 })
    answerLate('an old secret')
    await clock.advance(0)
    expect(await deliver(receiver, track)).toMatchObject({ status: 200 })
    expect(provider).toHaveBeenCalledTimes(2)
  })

  it('that hangs and then fails, after a later question was answered, does no harm', async () => {
    let fail: (error: Error) => void = () => {}
    const provider = vi.fn<() => Promise<string>>(async () => secret)
    provider.mockImplementationOnce(
      () =>
        new Promise((_resolve, reject) => {
          fail = reject
        }),
    )
    const { receiver, clock } = setUp({ secret: provider })
    const first = deliver(receiver, track)
    await clock.advance(10_000)
    await first
    expect(await deliver(receiver, track)).toMatchObject({ status: 200 })
    fail(new Error('too late'))
    await clock.advance(0)
    expect(await deliver(receiver, track, 'guess')).toMatchObject({ status: 401 })
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('sealed'))],
    [
      'throws',
      () => {
        throw new Error('sealed')
      },
    ],
    ['gives nothing', async () => undefined],
    ['gives an empty secret', async () => ''],
    ['gives an empty list', async () => []],
    ['gives something else', async () => 5 as never],
  ])('that %s: 503, and it is asked again a second later', async (_what, fail) => {
    const provider = vi.fn<() => Promise<string>>(async () => secret)
    provider.mockImplementationOnce(fail as never)
    const { receiver, errors, clock } = setUp({ secret: provider })
    expect(await deliver(receiver, track)).toMatchObject({ status: 503, error: { code: 'secret_unavailable' } })
    expect(errors[0]?.cause).toBeInstanceOf(Error)
    await clock.advance(999)
    expect(await deliver(receiver, track)).toMatchObject({ status: 503 })
    expect(provider).toHaveBeenCalledOnce()
    await clock.advance(1)
    expect(await deliver(receiver, track)).toMatchObject({ status: 200 })
  })

  it('may give several', async () => {
    const { receiver } = setUp({ secret: () => ['new', secret] })
    const received = await deliver(receiver, track)
    expect(received.ok && received.delivery.secretIndex).toBe(1)
  })
})
