/** Keeps requests, and lets a test wait for them. */

import { requireInteger, requireOptions } from '../kit/checks.ts'
import type { Message } from '../protocol/message.ts'
import { parse } from '../protocol/parse.ts'

/** The parts of a request, from which a {@link RecordedRequest} is created. */
export interface RequestParts {
  readonly method: string
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
  readonly at: Date
}

/** A request that was read to its end. */
export class RecordedRequest implements RequestParts {
  readonly method: string
  /** The full URL. */
  readonly url: string
  /** The path and the query of the URL. */
  readonly path: string
  /** The headers, keyed by name in lower case; repeated headers are joined with a comma. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The exact bytes of the body. */
  readonly bytes: Buffer
  /** When the request was read to its end. */
  readonly at: Date
  #message: Message | undefined

  constructor({ method, url, path, headers, bytes, at }: RequestParts) {
    this.method = method
    this.url = url
    this.path = path
    this.headers = headers
    this.bytes = bytes
    this.at = at
  }

  /**
   * The body as a message. Reading it does not check the signature; call `verify` to check the signature.
   *
   * @throws HooklineError for a body that is not a message.
   */
  get message(): Message {
    this.#message ??= parse(this.bytes)
    return this.#message
  }
}

/** The requests recorded so far, and a way to wait for more. */
export interface Recorded {
  /** Every request so far, oldest first. */
  readonly requests: readonly RecordedRequest[]
  /**
   * The messages that a sender or a destination sent, one in each request. The requests of a client hold batches: read their
   * `bytes`.
   *
   * @throws HooklineError when one of the bodies is not a message.
   */
  readonly messages: readonly Message[]
  /**
   * Waits until this many requests have arrived, answered or not. Resolves to these requests.
   *
   * @param options `timeoutMs`: how long to wait, in real milliseconds. Default 5000.
   * @throws Error (as a rejection) with the number of requests when the timeout expires.
   * @throws TypeError (as a rejection) that names the argument.
   */
  received(count: number, options?: { readonly timeoutMs?: number }): Promise<readonly RecordedRequest[]>
}

export interface Recorder extends Recorded {
  add(parts: RequestParts): RecordedRequest
}

export function createRecorder(): Recorder {
  const requests: RecordedRequest[] = []
  const waiting = new Set<() => void>()

  return {
    requests,
    get messages() {
      return requests.map(({ message }) => message)
    },
    add(parts) {
      const request = new RecordedRequest(parts)
      requests.push(request)
      for (const check of waiting) check()
      return request
    },
    async received(count, options = {}) {
      requireOptions('received', options, ['timeoutMs'])
      const { timeoutMs = 5000 } = options
      requireInteger('count', count, 1)
      requireInteger('timeoutMs', timeoutMs, 1)
      const { promise, resolve, reject } = Promise.withResolvers<readonly RecordedRequest[]>()
      const check = (): void => {
        if (requests.length >= count) resolve(requests.slice(0, count))
      }
      const giveUp = (): void =>
        reject(new Error(`Waited ${timeoutMs} ms for ${count} requests. Got ${requests.length}. ${ADVICE}`))
      const timer = setTimeout(giveUp, timeoutMs)
      waiting.add(check)
      check()
      return promise.finally(() => {
        clearTimeout(timer)
        waiting.delete(check)
      })
    },
  }
}

const ADVICE = 'Check that the code under test sends them, or raise `timeoutMs`.'

/** Joins alternating names and values into an object that is keyed by lower-case names. */
export function joinHeaders(list: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string[]>()
  for (let index = 0; index + 1 < list.length; index += 2) {
    const name = String(list[index]).toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), String(list[index + 1])])
  }
  return Object.fromEntries([...headers].map(([name, values]) => [name, values.join(', ')]))
}
