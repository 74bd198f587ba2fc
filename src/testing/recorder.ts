/** Keeps the requests that came, and lets a test wait for them. */

import type { Message } from '../protocol/message.ts'
import { refuseUnknown, requireWhole } from '../protocol/options.ts'
import { parse } from '../protocol/parse.ts'

/** The parts of a request. */
export interface RequestParts {
  readonly method: string
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
  readonly at: number
}

/** A request that came, whole. */
export class RecordedRequest implements RequestParts {
  readonly method: string
  /** The full URL it was sent to. */
  readonly url: string
  /** The path and the query of the URL. */
  readonly path: string
  /** By name in lower case; repeated ones are joined with a comma. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The exact bytes of the body. */
  readonly bytes: Buffer
  /** When it was there, in milliseconds since the epoch. */
  readonly at: number
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
   * The body as a message. Its signature is not looked at: `verify` does that.
   *
   * @throws HooklineError for a body that is not a message.
   */
  get message(): Message {
    this.#message ??= parse(this.bytes)
    return this.#message
  }
}

/** Requests, and a way to wait for them. */
export interface Recorded {
  /** Every request so far, in the order they came. */
  readonly requests: readonly RecordedRequest[]
  /**
   * Their messages, where what sends them is a destination: each delivery is one message. The batches of a client are
   * none; read the `bytes` of their requests.
   *
   * @throws HooklineError when one of the bodies is not a message.
   */
  readonly messages: readonly Message[]
  /**
   * Waits until this many requests are there, whether or not they are answered yet, and gives those.
   *
   * @param options `timeoutMs`: how long to wait, in real milliseconds. Default 5000.
   * @throws Error (as a rejection) that says how many came instead.
   * @throws TypeError (as a rejection) that names the argument.
   */
  received(count: number, options?: { readonly timeoutMs?: number }): Promise<readonly RecordedRequest[]>
}

/** A record under way. */
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
      for (const look of waiting) look()
      return request
    },
    async received(count, options = {}) {
      refuseUnknown(options, ['timeoutMs'])
      const { timeoutMs = 5000 } = options
      requireWhole('count', count, 1)
      requireWhole('timeoutMs', timeoutMs, 1)
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`received: waited ${timeoutMs} ms for ${count} requests, and ${requests.length} came.`))
        }, timeoutMs)
        const look = (): void => {
          if (requests.length < count) return
          clearTimeout(timer)
          waiting.delete(look)
          resolve(requests.slice(0, count))
        }
        waiting.add(look)
        look()
      })
    },
  }
}

/** Names and values in turns, as one object. */
export function joinHeaders(turns: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (let index = 0; index + 1 < turns.length; index += 2) {
    const [name, value] = [String(turns[index]).toLowerCase(), String(turns[index + 1])]
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return Object.fromEntries(headers)
}
