/** What release 0.1 stored is read right: the literals are the bytes that its code wrote. */

import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { Delivery } from '../../src/handling/delivery.ts'
import { handleJob, setUpInbox } from '../support/inbox.ts'

const body = '{"type":"track","userId":"ü1","event":"Order Completed","properties":{"total":39.0}}'
const message = { type: 'track', userId: 'ü1', event: 'Order Completed', properties: { total: 39 } }
const signature = '9953e06aa00a1d9b09ae960efbcfb9d9e7a680cb'
const signed = Buffer.from(
  `{"hookline":1,"at":1768469400000,"source":"argument","signature":"${signature}","secretIndex":1,"headers":{"content-type":"application/json","x-trace":"é 1","x-list":["a","b"],"x-signature":"${signature}"}}\n${body}`,
)
const unsigned = Buffer.from(
  `{"hookline":1,"at":1768469400000,"source":"argument","headers":{"content-type":"application/json","x-trace":"é 1"}}\n${body}`,
)
const failedOnce = Buffer.from(
  '{"attempts":1,"releases":1,"error":{"code":"handler_failed","message":"1 of 1 handlers failed.","causes":[{"name":"TypeError","message":"no"}]}}',
)

it.each([
  ['a signed message', signed, { id: signature, verified: true, secretIndex: 1 }],
  [
    'an unsigned message',
    unsigned,
    { id: expect.stringMatching(/^c1060c881e8e/), verified: false, secretIndex: undefined },
  ],
])('%s reaches its handlers as it arrived', async (_what, stored, expected) => {
  const { handler, outcome } = await handleJob({ body: stored })
  expect(outcome).toEqual({ complete: true })
  const [given, delivery] = handler.mock.calls[0] as [unknown, Delivery]
  expect(given).toEqual(message)
  expect(delivery).toMatchObject({
    ...expected,
    bodySource: 'argument',
    source: undefined,
    receivedAt: new Date('2026-01-15T09:30:00Z'),
  })
  expect(delivery.headers).toMatchObject({ 'content-type': 'application/json', 'x-trace': 'é 1' })
  expect(Buffer.from(delivery.bytes).toString()).toBe(body)
})

it('a retry state counts its attempts and releases, which are no crashes', async () => {
  const crashes = (claimCount: number) => handleJob({ body: signed, claimCount, retryState: failedOnce })
  expect((await crashes(7)).outcome).toEqual({ complete: true })
  const { outcome, state } = await crashes(8)
  expect(outcome).toMatchObject({ deadLetter: 'crashed' })
  expect(state).toMatchObject({ attempts: 1, releases: 1, error: { code: 'internal' } })
})

it('a retry state goes on where it was', async () => {
  const { state } = await handleJob({ body: signed, retryState: failedOnce }, AbortSignal.abort())
  expect(state).toEqual({ ...JSON.parse(failedOnce.toString()), releases: 2 })
})

it.each([
  [
    'handler_failed',
    failedOnce,
    { attempts: 1, error: { code: 'handler_failed', causes: [{ name: 'TypeError', message: 'no' }] } },
  ],
  [
    'message_invalid',
    '{"attempts":1,"releases":0,"error":{"code":"message_invalid","message":"event must be a string that is not empty.","path":"event","causes":[]}}',
    { attempts: 1, error: { code: 'message_invalid', path: 'event' } },
  ],
  [
    'crashed',
    '{"attempts":1,"releases":1,"error":{"code":"internal","message":"The process died 6 times while it handled this message.","causes":[]}}',
    { attempts: 1, error: { code: 'internal' } },
  ],
  [
    'unreadable',
    '{"attempts":0,"releases":0,"error":{"code":"internal","message":"What is in the inbox cannot be read: parts of it are missing.","causes":[]}}',
    { attempts: 0, error: { code: 'internal' } },
  ],
])('a dead letter with the reason %s is listed with its error', async (reason, retryState, expected) => {
  const letter = { id: randomUUID(), body: signed, reason, retryState: Buffer.from(retryState), failedAt: new Date(5) }
  const { receiver } = setUpInbox({}, {}, { deadLetters: async () => [letter] })
  const [listed] = await receiver.deadLetters()
  expect(listed).toMatchObject({ ...expected, id: letter.id, reason, message, failedAt: new Date(5) })
  expect(listed?.headers).toMatchObject({ 'x-list': ['a', 'b'] })
})
