/** Which requests are one message, and what a run waits for. */

import { describe, expect, it } from 'vitest'
import { type Arrival, createLedger, findWaits, type Scenario } from '../../../src/cli/check-sender/messages.ts'

const WAIT_MS = 60_000

function setUp(...scenarios: Scenario[]) {
  const ledger = createLedger(scenarios, '/webhooks')
  const settings = { count: scenarios.length, startedAt: 0, waitMs: WAIT_MS }
  return {
    ledger,
    /** A request that is answered at once. */
    arrive(body: object | string, at = 0, method = 'POST', path = '/webhooks'): Arrival {
      const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
      const arrival = ledger.add({ method, path, headers: {}, bytes, at })
      return Object.assign(arrival, { endedAt: at, isAnswered: true })
    },
    waits: (now: number) => findWaits(ledger, settings, now).map(({ what, until }) => `${what}: ${until}`),
  }
}

describe('a message', () => {
  it.each([
    ['its bytes', 'no JSON', 'no JSON'],
    [
      'its fields in another order, nested ones too',
      '{"a":{"b":1,"c":[2,{"d":3}]},"e":4}',
      '{ "e":4,"a":{"c":[2,{"d":3}],"b":1.0} }',
    ],
    ['its messageId', '{"messageId":"m1","timestamp":1}', '{"messageId":"m1","timestamp":2}'],
  ])('is recognised by %s', (_by, first, second) => {
    const { ledger, arrive } = setUp('failed', 'taken')
    expect([arrive(first), arrive(second), arrive(second)].map(({ answer }) => answer.status)).toEqual([500, 500, 200])
    expect(ledger.messages).toHaveLength(1)
  })

  it('is another one with another value, and gets the next answers; more than there are get 200', () => {
    const { ledger, arrive } = setUp('failed', 'missing')
    expect([1, 2, 3].map((id) => arrive({ id }).answer.status)).toEqual([500, 404, 200])
    expect(ledger.messages.map(({ scenario }) => scenario)).toEqual(['failed', 'missing', undefined])
  })

  it('is only what is posted to the path, with a body', () => {
    const { ledger, arrive } = setUp('failed')
    const answers = [arrive('{}', 0, 'GET'), arrive('{}', 0, 'POST', '/'), arrive('')].map(
      ({ answer }) => answer.status,
    )
    expect(answers).toEqual([405, 404, 400])
    expect(ledger.messages).toEqual([])
    expect(ledger.arrivals).toHaveLength(3)
  })

  it('may be nested deeper than the stack', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    const { arrive } = setUp('failed')
    expect([arrive(deep), arrive(deep), arrive(deep)].map(({ answer }) => answer.status)).toEqual([500, 500, 200])
  })

  it('is forgotten in a flood', () => {
    const { ledger, arrive } = setUp('failed')
    for (let id = 0; id < 2_000; id += 1) arrive({ id })
    expect(ledger.arrivals).toHaveLength(1_000)
  })
})

describe('a run waits', () => {
  it('for messages, from the last thing that happened', () => {
    const { arrive, waits } = setUp('taken', 'missing')
    expect(waits(0)).toEqual(['2 more messages: 60000'])
    arrive({ id: 1 }, 5_000)
    expect(waits(5_000)).toContain('1 more message: 65000')
    expect(waits(65_000)).toEqual([])
  })

  it('for each retry, and then twice as long as it took for those that should not come', () => {
    const { arrive, waits } = setUp('failed', 'invalid')
    arrive({ id: 1 }, 0)
    arrive({ id: 2 }, 0)
    expect(waits(1)).toEqual(['a retry of message 1: 60000', 'retries that should not come: 60000'])
    arrive({ id: 1 }, 3_000)
    expect(waits(3_000)).toEqual(['a retry of message 1: 63000', 'retries that should not come: 11000'])
    arrive({ id: 1 }, 10_000)
    expect(waits(10_000)).toEqual(['retries that should not come: 26000'])
    expect(waits(26_000)).toEqual([])
  })

  it('for the end of an attempt', () => {
    const { arrive, waits } = setUp('silent')
    delete arrive({ id: 1 }, 0).endedAt
    expect(waits(1)).toContain('the end of message 1: 11000')
  })
})
