/** Requests in the form of each known sender: what receivers take of them, through each adapter and with each inbox. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { sign } from '../../src/protocol/signature.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { type KnownSender, SENDER_NAMES } from '../../src/testing/known-senders.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { bufferedHosts, type Host, hosts } from '../support/hosts.ts'
import { COUNTS, checkInbox, create, mapped, requestsOf, secret } from './sender-requests.ts'

/** Each sender through two hosts, and each host with a sender. */
const PAIRS = [...hosts, ...bufferedHosts].map((host, index): [KnownSender, string, Host] => {
  return [SENDER_NAMES[index % SENDER_NAMES.length] as KnownSender, host.name, host]
})

it.each(PAIRS)('each request of %s is taken through %s, and a forged one is not', async (as, _name, host) => {
  const { receiver, handled } = create(as)
  const running = await host.start(receiver, 'nothing')
  onTestFinished(() => running.close())
  for (const { method, headers, bytes } of requestsOf(as)) {
    const reply = await running.send({ method, headers, chunks: [bytes] })
    expect([reply?.status, reply?.text]).toEqual([200, '{"ok":true}'])
  }
  expect(handled).toHaveLength(COUNTS[as])
  const forged = signedRequest(fixtures.track, 'a guess', { as } as { as: 'rudderstack' })
  const proof = as === 'rudderstack' ? 'x-webhook-key' : 'x-signature'
  const right = requestsOf(as)[0]?.headers as Record<string, string>
  for (const value of [
    (forged.headers as Record<string, string>)[proof] as string,
    '',
    [right[proof] as string, right[proof] as string],
  ]) {
    const reply = await running.send({ headers: { ...forged.headers, [proof]: value }, chunks: [forged.bytes] })
    expect(reply?.status).toBe(401)
  }
  const { [proof]: _, ...headers } = forged.headers as Record<string, string>
  expect((await running.send({ headers, chunks: [forged.bytes] }))?.status).toBe(401)
  expect(handled).toHaveLength(COUNTS[as])
})

describe.each(SENDER_NAMES)('%s', (as) => {
  it('with an inbox in memory', () => checkInbox(as, memoryQueue()))
})

describe('a request in the form of a sender', () => {
  it('has the fields of a recorded message, in place of those of the specification', () => {
    const { body, headers } = signedRequest(fixtures.alias, secret, { as: 'segment-actions' })
    const message = JSON.parse(body)
    const { timestamp } = fixtures.alias
    expect(message).toMatchObject({ type: 'alias', previousId: 'anonymous-1', userId: 'user-1', version: 2 })
    expect(message).toMatchObject({ messageId: expect.any(String), originalTimestamp: timestamp, sentAt: timestamp })
    expect(message).not.toHaveProperty('Previous ID')
    expect(headers).toEqual({
      'content-type': 'application/json',
      'user-agent': 'Segment (Actions)',
      'x-signature': sign(body, secret),
    })
  })

  it('has the previous id of an alias, in whichever spelling it is passed', () => {
    const { previousId: _, ...spaced } = fixtures.alias
    for (const alias of [
      fixtures.alias,
      spaced,
      { type: 'alias', 'Previous ID': 'anonymous-1', 'User ID': 'user-1' },
    ]) {
      const message = JSON.parse(signedRequest({ ...alias, messageId: undefined }, secret, { as: 'customer.io' }).body)
      expect(message).toMatchObject({ previousId: 'anonymous-1', userId: 'user-1', messageId: expect.any(String) })
    }
  })

  it('keeps a body of the user as it is', () => {
    for (const as of ['segment-actions', 'customer.io'] as const) {
      expect(signedRequest(mapped, secret, { as }).body).toBe(JSON.stringify(mapped))
      expect(signedRequest('[1, 2]', secret, { as }).body).toBe('[1, 2]')
    }
  })

  it('without a signature: the secret is in a header of your choice', () => {
    const { headers } = signedRequest(fixtures.track, secret, { as: 'rudderstack', header: 'Authorization' })
    expect(headers).toEqual({ 'content-type': 'application/json', 'user-agent': 'RudderLabs', authorization: secret })
    expect(() => signedRequest(fixtures.track, '', { as: 'rudderstack' })).toThrow(TypeError)
  })

  it.each<[string, object, string]>([
    ['another sender', { as: 'customerio' }, "Did you mean 'customer.io'?"],
    ['a method that the sender has not', { as: 'rudderstack', method: 'DELETE' }, 'Pass one of POST, PUT, PATCH.'],
    ['a method of the default', { method: 'PUT' }, 'Pass POST.'],
    ['a header for a sender that signs', { header: 'x-key' }, 'needs a sender that does not sign'],
    [
      'a header that the request has',
      { as: 'rudderstack', header: 'Content-Type' },
      'that the request does not already have',
    ],
  ])('%s: a TypeError', (_what, options, text) => {
    expect(() => signedRequest(fixtures.track, secret, options as { as: 'rudderstack' })).toThrow(text)
  })
})
