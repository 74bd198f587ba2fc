/** One request of a subcommand, and its complete answer or what went wrong. Redirects are not followed. */

import { connect, isIP } from 'node:net'
import { Readable } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { type AttemptError, type Explanation, explainConnectionError } from '../http/connection-error.ts'
import { Pool } from '../http/undici.ts'
import { RESPONSE_LIMIT } from '../message/limits.ts'

/** What came back. */
export interface Exchange {
  /** The status of a complete answer; undefined when `error` is set. */
  readonly status?: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The beginning of the answer's body. */
  readonly body: Buffer
  /** From connecting to the last byte, in milliseconds. */
  readonly durationMs: number
  readonly error?: AttemptError
  /** What is wrong, what was found, what to do. It may quote the server: escape it. */
  readonly reason?: string
}

/** Posts to one address. */
export interface Poster {
  /** Never rejects. A stream needs a `Content-Length`, or is sent in chunks. */
  post(body: Uint8Array | Readable, headers: PostHeaders, options?: PostOptions): Promise<Exchange>
  close(): Promise<void>
}

/** By name; or names and values in turns. */
type PostHeaders = Readonly<Record<string, string>> | readonly string[]

/** Options of {@link Poster.post}. */
interface PostOptions {
  /** Default POST. */
  readonly method?: string
  /** With the query. Default: that of the URL. */
  readonly path?: string
  /** How much of the answer's body is read, in bytes. Default 64 KiB. */
  readonly limit?: number
  /** From connecting to the last byte. Default 5000, as the destination has ("Outbound event delivery", Errors). */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Whether to send the body in chunks, without its length. */
  readonly isChunked?: boolean
}

/** Creates a poster. Connections open with the first posts and are kept. */
export function createPoster(url: URL, connections = 1): Poster {
  const pool = new Pool(url.origin, { connections, headersTimeout: 0, bodyTimeout: 0 })
  const ownPath = url.pathname + url.search

  return {
    async post(body, headers, options = {}) {
      const { method = 'POST', path = ownPath, limit = RESPONSE_LIMIT, timeoutMs = 5_000, signal } = options
      const started = performance.now()
      // Not AbortSignal.timeout(): it would keep each post in memory until its time is over.
      const controller = new AbortController()
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        controller.abort()
      }, timeoutMs)
      const abort = (): void => controller.abort()
      if (signal?.aborted) abort()
      else signal?.addEventListener('abort', abort)
      try {
        const { statusCode, ...answer } = await pool.request({
          path,
          method,
          headers: headers as string[],
          body: options.isChunked ? Readable.from([body]) : body,
          signal: controller.signal,
        })
        const chunks: Buffer[] = []
        let size = 0
        for await (const chunk of answer.body) {
          chunks.push(chunk)
          size += chunk.length
          if (size >= limit) break
        }
        const excerpt = Buffer.concat(chunks).subarray(0, limit)
        return { status: statusCode, headers: answer.headers, body: excerpt, durationMs: performance.now() - started }
      } catch (thrown) {
        const cause = isLate ? Object.assign(new Error('no complete response'), { code: 'ETIMEDOUT' }) : thrown
        const { error, rule, found, advice } = explainConnectionError(cause)
        const reason = `${rule}. Got ${found}. ${advice}`
        return { headers: {}, body: Buffer.alloc(0), durationMs: performance.now() - started, error, reason }
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
      }
    },
    close: () => pool.destroy(),
  }
}

/** Connects, with TLS for https, and sends nothing. Says what is wrong when that fails or takes more than 5 seconds. */
export function reach({ protocol, hostname, port }: URL): Promise<Explanation | undefined> {
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const isTls = protocol === 'https:'
    const socket = isTls
      ? connectTls({ host, port: Number(port || 443), servername: isIP(host) === 0 ? host : '' })
      : connect({ host, port: Number(port || 80) })
    const end = (error?: Error): void => {
      socket.destroy()
      resolve(error && explainConnectionError(error))
    }
    socket.setTimeout(5_000, () => end(Object.assign(new Error('no connection'), { code: 'ETIMEDOUT' })))
    socket.once(isTls ? 'secureConnect' : 'connect', () => end()).on('error', end)
  })
}
