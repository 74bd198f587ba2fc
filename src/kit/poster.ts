/**
 * Sends requests to one URL, with any method, headers and bytes, including those that a sender would never send. Uses connections like
 * those of a sender. Does not follow redirects.
 */

import { Readable } from 'node:stream'
import { systemClock } from './clock.ts'
import { type AttemptError, explainConnectionError } from './connection-error.ts'
import { createConnector } from './connector.ts'
import { createDeadlines } from './deadlines.ts'
import { type PostRequest, post, type ResponseHeaders } from './post.ts'
import { Pool } from './undici.ts'

/** A complete response, or the error that occurred instead. */
export interface Exchange {
  /** The status of the response; undefined when `error` is set. */
  readonly status?: number
  readonly headers: ResponseHeaders
  readonly body: Buffer
  /** The time from connecting to the last byte, in milliseconds. */
  readonly durationMs: number
  readonly error?: AttemptError
  /** The error in sentences: what is wrong, what was found, and what to do. May quote the server, so escape it. */
  readonly reason?: string
}

interface PostOptions extends Partial<Pick<PostRequest, 'method' | 'path' | 'responseLimit'>> {
  readonly signal?: AbortSignal
  readonly isChunked?: boolean
}

/** The maximum time from connecting to the last byte, in milliseconds, as for a destination ("Outbound event delivery", Errors). */
const TIMEOUT_MS = 5_000

/** The maximum size of a response, in bytes, for any request. */
const MAX_RESPONSE_BYTES = 5_000_000

/** Connects as a sender does: a self-signed certificate is refused, even if the environment or the machine trusts it. */
const connect = createConnector({ ca: undefined, timeoutMs: TIMEOUT_MS, responseLimit: MAX_RESPONSE_BYTES })

export function createPoster({ origin, pathname, search, protocol, host, hostname, port }: URL, connections = 1) {
  const pool = new Pool(origin, { connections, connect })
  const timing = { deadlines: createDeadlines(TIMEOUT_MS, systemClock), clock: systemClock }

  return {
    /**
     * Posts a request. Never rejects: an abort ends the exchange with an error. A stream is sent in chunks, unless the headers have a
     * `Content-Length`.
     */
    post: (
      body: Uint8Array | Readable,
      headers: PostRequest['headers'],
      { signal, isChunked = false, ...options }: PostOptions = {},
    ) =>
      new Promise<Exchange>((resolve) => {
        const started = performance.now()
        const sent = isChunked ? Readable.from([body]) : body
        const request = { origin, path: pathname + search, headers, body: sent, ...options }
        const pending = post(pool, request, timing, ({ status, headers, body, error }) => {
          signal?.removeEventListener('abort', abort)
          const durationMs = performance.now() - started
          resolve(status === undefined ? failedExchange(error, durationMs) : { status, headers, body, durationMs })
        })
        const abort = (): void => pending.stop(new Error('aborted'))
        if (signal?.aborted) abort()
        else signal?.addEventListener('abort', abort)
      }),
    /**
     * Connects, with TLS for https, and sends nothing. Resolves to the explanation of the error if this fails or takes more than 5 seconds.
     */
    reach: () =>
      new Promise<ReturnType<typeof explainConnectionError> | undefined>((resolve) => {
        const target = { protocol, host, hostname, port: port || (protocol === 'https:' ? '443' : '80') }
        connect(target, (error, socket) => {
          socket?.destroy()
          resolve(error === null ? undefined : explainConnectionError(error))
        })
      }),
    close: () => pool.destroy(),
  }
}

function failedExchange(thrown: unknown, durationMs: number): Exchange {
  const { error, rule, found, advice } = explainConnectionError(thrown)
  return { headers: {}, body: Buffer.alloc(0), durationMs, error, reason: `${rule}. Got ${found}. ${advice}` }
}
