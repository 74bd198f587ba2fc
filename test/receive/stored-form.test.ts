/** What an inbox has stored is read by later releases: the literals are the bytes that it writes. */

import { expect, it } from 'vitest'
import type { Delivery } from '../../src/receive/delivery.ts'
import { handleJob } from '../support/inbox.ts'

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
  ['a signed message', signed, { verified: 'signature', secretIndex: 1 }],
  ['an unsigned message', unsigned, { verified: false, secretIndex: undefined }],
])('%s reaches its handlers as it arrived', async (_what, stored, expected) => {
  const { handler, outcome } = await handleJob({ id: 'the id', body: stored })
  expect(outcome).toEqual({ complete: true })
  const [given, delivery] = handler.mock.calls[0] as [unknown, Delivery]
  expect(given).toEqual(message)
  const known = { id: 'the id', bodySource: 'argument', source: undefined, method: 'POST' }
  expect(delivery).toMatchObject({ ...expected, ...known, receivedAt: new Date('2026-01-15T09:30:00Z') })
  expect(delivery.headers).toMatchObject({ 'content-type': 'application/json', 'x-trace': 'é 1' })
  expect(Buffer.from(delivery.bytes).toString()).toBe(body)
})

it('a retry state goes on where it was', async () => {
  const { state } = await handleJob(
    { body: signed, claimCount: 2, retryState: failedOnce },
    { signal: AbortSignal.abort() },
  )
  expect(state).toEqual({ ...JSON.parse(failedOnce.toString()), releases: 2 })
})
