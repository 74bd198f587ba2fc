/** Every condition of a request, for a receiver with each combination of `methods`, `header`, `custom` and `batches`. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { type Condition, conditions, type Outcome, secret } from '../contracts/conditions.ts'
import { hmac } from '../support/hmac.ts'
import { type Host, hosts } from '../support/hosts.ts'
import type { Wire } from '../support/wire.ts'

interface Combination {
  readonly method: 'POST' | 'PATCH'
  readonly header: boolean
  readonly custom: boolean
  readonly batches: boolean
}

const combinations: readonly Combination[] = (['POST', 'PATCH'] as const).flatMap((method) =>
  [false, true].flatMap((header) =>
    [false, true].flatMap((custom) => [false, true].map((batches) => ({ method, header, custom, batches }))),
  ),
)

const host = hosts.find(({ name }) => name === 'node:http') as Host

const ARRAY = 'an array whose signature covers all of it'
const VALUES = ['a JSON string', 'null']

/** The outcome of a condition for a receiver with these options. */
function outcomeOf({ name, wire, outcome, path }: Condition, given: Combination): Outcome {
  const signed = (typeof outcome === 'object' ? outcome.exact : outcome) as Outcome
  if (given.header) {
    // The header that is right is the right signature: the same requests are refused.
    if (signed === 'signature_missing' || wire.headers['x-signature'] === '') return 'header_missing'
    if (String(signed).startsWith('signature_')) return 'header_mismatch'
  }
  if ((given.batches || given.custom) && name === ARRAY) return 200
  if (given.custom && (VALUES.includes(name) || path === 'type')) return 200
  return signed
}

/** Takes what a signature would be as the value of a header. */
function withHeader(wire: Wire): Wire {
  const { 'x-signature': value, ...headers } = wire.headers
  return value === undefined ? wire : { ...wire, headers: { ...headers, 'x-key': value } }
}

describe.each(combinations)('$method, header $header, custom $custom, batches $batches', (given) => {
  const { method, header, custom, batches } = given
  const meant = conditions.filter(({ options }) => !header || options?.secret === undefined)

  it.each(meant)('$name', async (condition) => {
    const handled: unknown[] = []
    const codes: string[] = []
    const right = hmac(Buffer.concat(condition.wire.chunks), secret)
    const receiver = createReceiver({
      ...(header ? { header: { name: 'x-key', value: right } } : { secret }),
      methods: [method],
      custom,
      batches,
      clock: manualClock(),
      onError: ({ code }) => codes.push(code),
      ...condition.options,
    } as ReceiverOptions)
    receiver.on('*', (message) => void handled.push(message))
    const running = await host.start(receiver, 'nothing')
    onTestFinished(() => running.close())
    const wire = { ...condition.wire, method }
    const reply = await running.send(header ? withHeader(wire) : wire)
    const expected = outcomeOf(condition, given)
    expect(codes).toEqual(expected === 200 ? [] : [expected])
    expect(handled).toHaveLength(expected === 200 ? 1 : 0)
    if (expected === 200) expect(reply?.status).toBe(200)
    else expect(JSON.parse(reply?.text ?? '')).toMatchObject({ code: expected, status: reply?.status })
    expect(reply?.text).not.toMatch(new RegExp(`${secret}|${right}`))
  })

  it('another method is refused before anything else', async () => {
    const running = await host.start(createReceiver({ secret, methods: [method], onError: () => {} }), 'nothing')
    onTestFinished(() => running.close())
    const reply = await running.send({ method: method === 'POST' ? 'PATCH' : 'POST', headers: {}, chunks: [] })
    expect([reply?.status, reply?.headers.allow]).toEqual([405, method])
  })
})
