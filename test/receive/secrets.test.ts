import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createReceiver, type ReceiverOptions, sign } from '../../src/index.ts'
import { secretsOf } from '../../src/receive/inspected.ts'
import { fixtures } from '../../src/testing.ts'
import { deliver, secret, setUp } from '../support/receive.ts'

const { track } = fixtures

const message = JSON.stringify(track)
const other = JSON.stringify(fixtures.page)

it.each<[string, string, string, ReceiverOptions]>([
  ['a message', message, message, {}],
  ['a message of a source', message, message, {}],
  ['each element of a batch', `[${message},${other}]`, `[${message},${other}]`, { batches: true }],
])(
  'a rotation, in which the receiver knows both secrets before the sender has the new one, does not change the id of %s',
  async (what, body, signed, options) => {
    async function idsOf(secrets: readonly string[], signedWith: string): Promise<string[]> {
      const secret = what.endsWith('source') ? { source: () => 'shop', secrets: () => secrets } : secrets
      const { receiver } = setUp({ ...options, secret })
      const ids: string[] = []
      receiver.on('*', (_message, { id }) => void ids.push(id))
      const headers = { 'x-signature': sign(signed, signedWith) }
      expect(await receiver.receive(Buffer.from(body), headers)).toMatchObject({ status: 200 })
      return ids
    }
    const before = await idsOf(['old'], 'old')
    expect(before).not.toEqual([])
    expect(await idsOf(['new', 'old'], 'old')).toEqual(before)
    expect(await idsOf(['new', 'old'], 'new')).toEqual(before)
    expect(await idsOf(['new'], 'new')).not.toEqual(before)
  },
)

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
    const both = await Promise.all([1, 2].map(() => deliver(receiver, track, 'new')))
    expect(both.map(({ status }) => status)).toEqual([200, 200])
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
    const unavailable = { status: 503, error: { code: 'secret_unavailable' } }
    for (let request = 0; request < 100; request++)
      expect(await deliver(receiver, track, 'new')).toMatchObject(unavailable)
    expect(provider).toHaveBeenCalledTimes(2)
    expect(await deliver(receiver, track, 'old')).toMatchObject({ status: 200 })
    provider.mockResolvedValue('new')
    await clock.advance(10_000)
    expect(await deliver(receiver, track, 'new')).toMatchObject({ status: 200 })
    expect(await deliver(receiver, track, 'guess')).toMatchObject({ status: 401 })
  })

  it.each([
    ['answer', (held: PromiseWithResolvers<string>) => held.resolve('an old secret')],
    ['failure', (held: PromiseWithResolvers<string>) => held.reject(new Error('sealed'))],
  ])('that hangs once is asked again after the cooldown, and its late %s counts for nothing', async (_what, end) => {
    const held = Promise.withResolvers<string>()
    const provider = vi.fn(async () => secret).mockReturnValueOnce(held.promise)
    const { receiver, clock } = setUp({ secret: provider })
    const first = deliver(receiver, track)
    await clock.advance(4_500)
    expect(await first).toMatchObject({ status: 503, error: { code: 'secret_unavailable' } })
    await clock.advance(5_500)
    expect(await deliver(receiver, track)).toMatchObject({ status: 200 })
    end(held)
    await clock.advance(0)
    expect(await deliver(receiver, track)).toMatchObject({ status: 200 })
    expect(await deliver(receiver, track, 'guess')).toMatchObject({ status: 401 })
    expect(provider).toHaveBeenCalledTimes(2)
  })

  it('that hangs keeps a request for ten seconds at most, and its answer counts when it comes', async () => {
    const held = Promise.withResolvers<string>()
    const provider = vi.fn(() => held.promise)
    const { receiver, clock } = setUp({ secret: provider, deadlineMs: 60_000 })
    const first = deliver(receiver, track)
    await clock.advance(9_999)
    const second = deliver(receiver, track)
    await clock.advance(1)
    for (const received of [await first, await second]) {
      expect(received).toMatchObject({ status: 503, error: { code: 'secret_unavailable' } })
    }
    expect(clock.timers).toBe(1) // Of the deadlines, which is left to fire.
    held.resolve(secret)
    await clock.advance(0)
    expect(await deliver(receiver, track)).toMatchObject({ status: 200 })
    expect(provider).toHaveBeenCalledOnce()
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('sealed'))],
    ['gives nothing', async () => undefined],
    ['gives an empty secret', async () => ''],
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
})

describe('a secret that looks as if it was read wrongly', () => {
  const warn = vi.spyOn(process, 'emitWarning')
  beforeEach(() => void warn.mockReset().mockImplementation(() => {}))
  afterAll(() => warn.mockRestore())

  const warnings = () => warn.mock.calls.map(([text, options]) => [/`.*?`/.exec(String(text))?.[0], options])
  const warning = (name: string) => [`\`${name}\``, { code: 'HOOKLINE_SECRET' }]

  it.each(['s3cret\n', ' s3cret', '\ufeffs3cret', '"s3cret"'])(
    'is used as it is, and warned about once: %j',
    async (odd) => {
      const { receiver } = setUp({ secret: odd })

      expect(warnings()).toEqual([warning('secret')])
      expect(String(warn.mock.calls)).not.toContain('s3cret')
      for (const _ of [1, 2]) expect(await deliver(receiver, track, odd)).toMatchObject({ status: 200 })
      expect(await deliver(receiver, track, 's3cret')).toMatchObject({ status: 401 })
      expect(warn).toHaveBeenCalledOnce()
    },
  )

  it('is named by its place in a list', () => {
    setUp({ secret: ['new', ' old'] })
    expect(warnings()).toEqual([warning('secret[1]')])
  })

  it.each(['s3cret', '"', 'a "quoted" word', '"a\'', 'two words'])('is none of these: %j', (usual) => {
    setUp({ secret: usual })
    expect(warn).not.toHaveBeenCalled()
  })
})

describe('secretsOf', () => {
  const request = { path: '/shop', query: '', headers: {} }

  it.each<[string, ReceiverOptions, string[]]>([
    ['one', { secret: 'a secret' }, ['a secret']],
    ['several, in their order', { secret: ['new', 'old'] }, ['new', 'old']],
    ['a provider', { secret: async () => ['new', 'old'] }, ['new', 'old']],
    [
      'the source of the request',
      { secret: { source: ({ path }) => path.padEnd(200), secrets: async (path) => path } },
      ['/shop'.padEnd(200)],
    ],
    ['an unknown source', { secret: { source: () => 'shop', secrets: () => undefined } }, []],
    ['a source without a name', { secret: { source: () => undefined, secrets: () => 'a secret' } }, []],
    ['a source of a long name', { secret: { source: () => 'n'.repeat(201), secrets: () => 'a secret' } }, []],
    ['unsigned messages', { allowUnsigned: true }, []],
  ])('those of %s', async (_name, options, expected) => {
    const given = { ...options }
    const receiver = createReceiver(given)
    Object.assign(given, { secret: 'another' }) // The receiver does not notice it, either.
    expect(await secretsOf(receiver, request)).toEqual(expected)
  })
})
