/** A dispatcher that answers by a script, and the client that posts to it under a manual clock. */

import type { Dispatcher } from 'undici'
import { type ClientOptions, createClient, type RecordedCall } from '../../src/client.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

interface Sent {
  readonly origin: string
  readonly path: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly calls: readonly RecordedCall[]
}

/** A status, an answer, an error of the network, or nothing at all until the client hangs up. */
export type Answer =
  | number
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string | Buffer[] }
  | Error
  | 'silence'

/** Answers the first request with the first answer and so on; those after the last are taken with 200. */
function scripted(answers: Iterable<Answer> = []) {
  const script = answers[Symbol.iterator]()
  const sent: Sent[] = []
  const aborted: Sent[] = []

  function dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const request = read(options)
    sent.push(request)
    let over = false
    const controller = {
      abort(reason: Error) {
        if (over) return
        over = true
        aborted.push(request)
        handler.onResponseError?.(controller, reason)
      },
    } as Dispatcher.DispatchController
    const { value: answer = 200 } = script.next()
    handler.onRequestStart?.(controller, {})
    if (answer === 'silence') return true
    queueMicrotask(() => {
      if (over) return
      if (answer instanceof Error) handler.onResponseError?.(controller, answer)
      else respond(typeof answer === 'number' ? { status: answer } : answer)
      over = true
    })
    return true

    function respond({ status, headers = {}, body = '{"success":true}' }: Exclude<Answer, number | Error | 'silence'>) {
      handler.onResponseStart?.(controller, 103, {})
      handler.onResponseStart?.(controller, status, headers)
      for (const chunk of typeof body === 'string' ? [Buffer.from(body)] : body) {
        if (!over) handler.onResponseData?.(controller, chunk)
      }
      if (!over) handler.onResponseEnd?.(controller, {})
    }
  }

  return {
    sent,
    aborted,
    dispatch,
    get calls() {
      return sent.flatMap(({ calls }) => calls)
    },
  }
}

function read({ origin, path, method, headers, body }: Dispatcher.DispatchOptions): Sent {
  const list = headers as readonly string[]
  const pairs = list.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), list[index + 1]]] : []))
  const text = (body as Buffer).toString()
  const { batch } = JSON.parse(text)
  return { origin: String(origin), path, method, headers: Object.fromEntries(pairs), body: text, calls: batch }
}

export const ENDPOINT = 'https://analytics.example.com/v1/batch'

/** A client under a manual clock that posts to a script; each retry waits as long as it may. */
export function setUp(answers: Iterable<Answer> = [], options: Partial<ClientOptions> = {}) {
  const clock = manualClock()
  const dispatcher = scripted(answers)
  const failures: { readonly error: Error; readonly calls: readonly RecordedCall[] }[] = []
  const client = createClient('write-key', {
    endpoint: ENDPOINT,
    dispatcher,
    clock,
    random: () => 0.999_999,
    onError: (error, calls) => failures.push({ error, calls }),
    ...options,
  })
  return { client, clock, failures, ...dispatcher, dispatcher }
}

export function numbered(index: number) {
  return { userId: 'user-1', event: `Event ${index}` }
}

export function inChunks(body: string): Buffer[] {
  const bytes = Buffer.from(body)
  return Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, at) =>
    bytes.subarray(at * 65_536, (at + 1) * 65_536),
  )
}

export function eventsOf(calls: readonly RecordedCall[]): unknown[] {
  return calls.map((call) => (call.type === 'track' ? call.event : call.type))
}

/** Lets what was begun come to its end, without time passing. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
