/** The client under a manual clock, and what it posts to a script. */

import type { Dispatcher } from 'undici'
import { type ClientOptions, createClient, type RecordedCall } from '../../src/client.ts'
import { capture, manualClock } from '../../src/testing.ts'

/** A status, an answer, an error of the network, or nothing at all until the client hangs up. */
export type Answer =
  | number
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | Error
  | 'hang'

export const ENDPOINT = 'https://analytics.example.com/v1/batch'

/**
 * A client whose first request gets the first answer and so on; those after the last are taken with 200. Each retry waits as long as it may.
 */
export function setUp(answers: Iterable<Answer> = [], options: Partial<ClientOptions> = {}) {
  const clock = manualClock()
  const script = answers[Symbol.iterator]()
  const { dispatcher, requests } = capture({ clock, script: [() => (script.next().value ?? 200) as 200] })
  const exchanges: Dispatcher.DispatchController[] = []
  const failures: { readonly error: Error; readonly calls: readonly RecordedCall[] }[] = []
  const client = createClient('write-key', {
    endpoint: ENDPOINT,
    dispatcher: {
      dispatch(request, handler) {
        const start = handler.onRequestStart
        handler.onRequestStart = (exchange, context) => {
          exchanges.push(exchange)
          start?.call(handler, exchange, context)
        }
        return dispatcher.dispatch(request, handler)
      },
    },
    clock,
    random: () => 0.999_999,
    onError: (error, calls) => failures.push({ error, calls }),
    ...options,
  })
  return {
    client,
    clock,
    failures,
    requests,
    /** The calls of each request, and all of them. */
    batches: () => requests.map(({ bytes }) => JSON.parse(String(bytes)).batch as readonly RecordedCall[]),
    calls: () => requests.flatMap(({ bytes }) => JSON.parse(String(bytes)).batch as readonly RecordedCall[]),
    /** How many requests the client ended. */
    aborted: () => exchanges.filter(({ aborted }) => aborted).length,
  }
}

export const numbered = (index: number) => ({ userId: 'user-1', event: `Event ${index}` })

export function eventsOf(calls: readonly RecordedCall[] = []): unknown[] {
  return calls.map((call) => (call.type === 'track' ? call.event : call.type))
}

/** Lets what was begun come to its end, without time passing. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
