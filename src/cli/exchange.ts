/** One POST of a subcommand, and its complete answer or what went wrong. Redirects are not followed. */

import { type AttemptError, explainConnectionError } from '../http/connection-error.ts'
import { Pool } from '../http/undici.ts'
import { RESPONSE_LIMIT } from '../message/limits.ts'

/** What came back. */
export interface Exchange {
  /** The status of a complete answer; undefined when `error` is set. */
  readonly status?: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The first 64 KiB of the answer's body. */
  readonly body: Buffer
  /** From connecting to the last byte, in milliseconds. */
  readonly durationMs: number
  readonly error?: AttemptError
  /** What is wrong, what was found, what to do. It may quote the server: escape it. */
  readonly reason?: string
}

/** Posts to one address. */
export interface Poster {
  /** Never rejects. Without a length, the body is sent in chunks. */
  post(body: Uint8Array, headers: Readonly<Record<string, string>>, options?: PostOptions): Promise<Exchange>
  close(): Promise<void>
}

/** Options of {@link Poster.post}. */
export interface PostOptions {
  /** From connecting to the last byte. Default 5000, as the destination has ("Outbound event delivery", Errors). */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Creates a poster. Connections open with the first posts and are kept. */
export function createPoster(url: URL, connections = 1): Poster {
  const pool = new Pool(url.origin, { connections, headersTimeout: 0, bodyTimeout: 0 })
  const path = url.pathname + url.search

  return {
    async post(body, headers, { timeoutMs = 5_000, signal } = {}) {
      const started = performance.now()
      const timeout = AbortSignal.timeout(timeoutMs)
      const signals = signal === undefined ? [timeout] : [timeout, signal]
      try {
        const request = { path, method: 'POST', headers, body, signal: AbortSignal.any(signals) } as const
        const { statusCode: status, headers: answered, body: stream } = await pool.request(request)
        const chunks: Buffer[] = []
        let size = 0
        for await (const chunk of stream) {
          chunks.push(chunk)
          size += chunk.length
          if (size >= RESPONSE_LIMIT) break
        }
        const excerpt = Buffer.concat(chunks).subarray(0, RESPONSE_LIMIT)
        return { status, headers: answered, body: excerpt, durationMs: performance.now() - started }
      } catch (thrown) {
        const cause = timeout.aborted ? Object.assign(new Error('no complete response'), { code: 'ETIMEDOUT' }) : thrown
        const { error, rule, found, advice } = explainConnectionError(cause)
        const reason = `${rule}. Got ${found}. ${advice}`
        return { headers: {}, body: Buffer.alloc(0), durationMs: performance.now() - started, error, reason }
      }
    },
    close: () => pool.destroy(),
  }
}
