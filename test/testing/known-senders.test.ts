/** Requests in the form of each known sender: what receivers take of them through each adapter. With an inbox: test/receive. */

import { hash } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sign, verify } from '../../src/protocol/signature.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { DeliveryMethod } from '../../src/receive/delivery.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { KNOWN_SENDERS, type KnownSender, SENDER_NAMES } from '../../src/testing/known-senders.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { bufferedHosts, type Host, hosts } from '../support/hosts.ts'
import { secret } from '../support/receive.ts'

const mapped = { order: { id: 7, total: 12.5 } }

/** What a receiver of each sender is created with, as docs/senders.md says it, and how many messages its requests below have. */
const SENDERS: Readonly<Record<KnownSender, readonly [options: ReceiverOptions, count: number]>> = {
  segment: [{ secret }, 7],
  'segment-actions': [{ secret, methods: ['POST', 'PUT', 'PATCH'] }, 7 + 3 + 1],
  'customer.io': [{ secret, methods: ['POST', 'PUT', 'PATCH', 'DELETE'], batches: true }, 7 + 4 + 1 + 3],
  rudderstack: [{ header: { name: 'x-webhook-key', value: secret }, methods: ['POST', 'PUT', 'PATCH'] }, 7 + 3 + 1],
}

/** Every request that a sender may make. */
function requestsOf(as: KnownSender) {
  const how = (method?: DeliveryMethod) => ({ as, ...(method && { method }) }) as { as: 'rudderstack' }
  const single = Object.values(fixtures).map((message) => signedRequest(message, secret, how()))
  if (as === 'segment') return single
  const byMethod = KNOWN_SENDERS[as].methods.map((method) => signedRequest(fixtures.track, secret, how(method)))
  const batch = as === 'customer.io' ? [signedRequest([fixtures.track, fixtures.page, mapped], secret, how())] : []
  return [...single, ...byMethod, signedRequest(mapped, secret, how()), ...batch]
}

/** Each sender through two hosts, and each host with a sender. */
const PAIRS = [...hosts, ...bufferedHosts].map((host, index): [KnownSender, string, Host] => {
  return [SENDER_NAMES[index % SENDER_NAMES.length] as KnownSender, host.name, host]
})

it.each(PAIRS)('each request of %s is taken through %s, and a forged one is not', async (as, _name, host) => {
  const [options, count] = SENDERS[as]
  let handled = 0
  const receiver = createReceiver({ onError: () => {}, ...options, custom: true } as object)
  receiver.on('*', () => void handled++)
  const running = await host.start(receiver, 'nothing')
  onTestFinished(() => running.close())
  for (const { method, headers, bytes } of requestsOf(as)) {
    const reply = await running.send({ method, headers, chunks: [bytes] })
    expect([reply?.status, reply?.text]).toEqual([200, '{"ok":true}'])
  }
  expect(handled).toBe(count)
  const { headers: forged, bytes } = signedRequest(fixtures.track, 'a guess', { as } as { as: 'rudderstack' })
  const proof = as === 'rudderstack' ? 'x-webhook-key' : 'x-signature'
  const { [proof]: guessed = '', ...rest } = forged as Record<string, string>
  const right = { ...(requestsOf(as)[0]?.headers as Record<string, string> | undefined) }[proof] ?? ''
  for (const wrong of [{ [proof]: guessed }, { [proof]: '' }, { [proof]: [right, right] }, {}]) {
    expect((await running.send({ headers: { ...rest, ...wrong }, chunks: [bytes] }))?.status).toBe(401)
  }
  expect(handled).toBe(count)
})

describe('a request in the form of a sender', () => {
  it('has the fields of a recorded message, in place of those of the specification', () => {
    const { body, headers } = signedRequest(fixtures.alias, secret, { as: 'segment-actions' })
    const { timestamp: at, 'Previous ID': _, 'User ID': __, version: ___, ...alias } = fixtures.alias
    const times = { timestamp: at, originalTimestamp: at, receivedAt: at, sentAt: at }
    const added = { ...times, channel: 'server', context: {}, messageId: expect.any(String) }
    expect(JSON.parse(body)).toEqual({ ...alias, ...added, version: 2, integrations: {} })
    const sent = signedRequest(fixtures.alias, secret, { as: 'rudderstack' }).body
    expect(JSON.parse(sent)).toEqual({ ...alias, ...added, integrations: { All: true } })
    const own = { 'content-type': 'application/json', 'user-agent': 'Segment (Actions)' }
    expect(headers).toEqual({ ...own, 'x-signature': sign(body, secret) })
  })

  it('has the previous id of an alias, in whichever spelling it is passed', () => {
    const { previousId: _, ...spaced } = fixtures.alias
    const written = { type: 'alias', 'Previous ID': 'anonymous-1', 'User ID': 'user-1' }
    for (const alias of [fixtures.alias, spaced, written]) {
      const message = JSON.parse(signedRequest({ ...alias, messageId: undefined }, secret, { as: 'customer.io' }).body)
      expect(message).toMatchObject({ previousId: 'anonymous-1', userId: 'user-1', messageId: expect.any(String) })
    }
  })

  it('keeps a body of the user, and a request to delete, as it is', () => {
    for (const as of ['segment-actions', 'customer.io'] as const) {
      const sent = [mapped, fixtures.delete, '[1, 2]'].map((given) => signedRequest(given, secret, { as }).body)
      expect(sent).toEqual([JSON.stringify(mapped), JSON.stringify(fixtures.delete), '[1, 2]'])
    }
  })

  it('without a signature: the secret is in a header of your choice', () => {
    const { headers } = signedRequest(fixtures.track, secret, { as: 'rudderstack', header: 'Authorization' })
    expect(headers).toEqual({ 'content-type': 'application/json', 'user-agent': 'RudderLabs', authorization: secret })
    expect(() => signedRequest(fixtures.track, '', { as: 'rudderstack' })).toThrow(TypeError)
  })

  it.each<[string, object, string]>([
    ['another sender', { as: 'customerio' }, "Did you mean 'customer.io'?"],
    ['a method that the sender has not', { as: 'rudderstack', method: 'DELETE' }, "'POST', 'PUT', 'PATCH'"],
    ['a method of the default', { method: 'PUT' }, "Did you mean 'POST'? Valid values: 'POST'."],
    ['a header for a sender that signs', { header: 'x-key' }, 'needs a sender that does not sign'],
    ['a header that the request has', { as: 'rudderstack', header: 'Content-Type' }, 'does not already have'],
  ])('%s: a TypeError', (_what, options, text) => {
    expect(() => signedRequest(fixtures.track, secret, options as { as: 'rudderstack' })).toThrow(text)
  })
})

const idsOf = (body: string) => [JSON.parse(body)].flat().map(({ messageId }) => messageId)

it('gives a message without an id a new one, so that two requests are no copies', () => {
  const [one, other] = [signedRequest(fixtures.track, 'secret'), signedRequest(fixtures.track, 'secret')]
  expect(one.headers['x-signature']).not.toBe(other.headers['x-signature'])
  expect(verify(one.bytes, one.headers['x-signature'], 'secret')).toBe(true)
  const { messageId, ...others } = JSON.parse(one.body)
  expect([others, messageId]).toEqual([fixtures.track, expect.stringMatching(/^[0-9a-f-]{36}$/)])
})

it('keeps an id that is passed, a request to delete, and a text', () => {
  const fixed = { ...fixtures.track, messageId: 'fixed' }
  const text = JSON.stringify(fixtures.track)
  for (const message of [fixed, fixtures.delete, text]) {
    expect(signedRequest(message, 'secret')).toEqual(signedRequest(message, 'secret'))
  }
  expect(signedRequest(text, 'secret').body).toBe(text)
})

it('the fixtures stay as they are: tests of users compare with them', () => {
  expect(hash('sha1', JSON.stringify(fixtures))).toBe('36d86048e57010226ea6579e33aa415e6a1954d9')
})

it('gives each message of a batch its own, under the signature of all', () => {
  const messages = [fixtures.track, { ...fixtures.page, messageId: 'fixed' }, fixtures.track]
  const { body, bytes, headers } = signedRequest(messages, 'secret')
  expect([new Set(idsOf(body)).size, idsOf(body)[1]]).toEqual([3, 'fixed'])
  expect(verify(bytes, headers['x-signature'], 'secret')).toBe(true)
})
