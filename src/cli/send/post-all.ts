/** Posts messages at a rate, so many at a time, and no faster than they are read. */

import { setTimeout as delay } from 'node:timers/promises'
import type { AttemptError } from '../../http/connection-error.ts'
import { USER_AGENT } from '../../message/limits.ts'
import { sign } from '../../message/signature.ts'
import { type Tampering, tamper } from '../../sender/tamper.ts'
import type { Exchange, Poster } from '../exchange.ts'
import type { Headers } from '../headers.ts'
import type { Item } from './source.ts'

/** How to post. */
export interface PostSettings {
  /** Undefined: unsigned. */
  readonly secret: string | undefined
  readonly headers: Headers
  readonly tampering: Tampering | undefined
  /** Posts in a second; undefined: as many as the endpoint takes. */
  readonly rate: number | undefined
  readonly concurrency: number
  readonly signal: AbortSignal
}

/** One attempt, or a line that is no message. */
export interface Result {
  readonly line?: number
  readonly type?: unknown
  readonly messageId?: unknown
  /** Whether the endpoint took it: any 2xx. */
  readonly ok: boolean
  readonly status?: number
  readonly error?: AttemptError | 'no_message'
  readonly reason?: string
  /** The beginning of the body of an answer that is not 2xx. */
  readonly answer?: string
  readonly durationMs?: number
}

/** The most characters of an answer that are kept. */
const ANSWER_LENGTH = 300

/**
 * Posts every item. When the signal fires, the attempts under way are given up.
 *
 * @param report Called with each result, and how much of everything is sent. When it returns a promise, its worker waits.
 * @returns How many attempts were given up.
 */
export async function postAll(
  items: AsyncGenerator<Item>,
  poster: Poster,
  settings: PostSettings,
  report: (result: Result, share: number | undefined) => Promise<void> | undefined,
): Promise<number> {
  const { secret, headers, tampering, rate, concurrency, signal } = settings
  const pace = createPace(rate, signal)
  let givenUp = 0

  async function postItem({ line, prepared, fault, share }: Item): Promise<void> {
    const place = line === undefined ? {} : { line }
    if (prepared === undefined) {
      return report({ ...place, ok: false, error: 'no_message', ...(fault && { reason: fault }) }, share)
    }
    const signature = secret === undefined ? undefined : sign(prepared.bytes, secret)
    const sent = tamper(prepared.bytes, signature, tampering)
    const all = { ...headers, 'content-type': 'application/json', 'user-agent': USER_AGENT, ...signed(sent.signature) }
    const { type, messageId } = prepared.message
    for (let copy = 0; copy < sent.copies; copy += 1) {
      await pace()
      if (signal.aborted) return
      const exchange = await poster.post(sent.bytes, all, { isChunked: sent.isChunked })
      if (signal.aborted && exchange.error !== undefined) givenUp += 1
      else await report({ ...place, type, messageId, ...toResult(exchange) }, share)
    }
  }

  async function work(): Promise<void> {
    for (;;) {
      const { done, value } = await items.next()
      if (done || signal.aborted) return
      await postItem(value)
    }
  }

  const abort = (): void => void poster.close()
  signal.addEventListener('abort', abort)
  await Promise.all(Array.from({ length: concurrency }, work))
  signal.removeEventListener('abort', abort)
  return givenUp
}

function signed(signature: string | undefined): Headers {
  return signature === undefined ? {} : { 'x-signature': signature }
}

function toResult({ status, body, durationMs, error, reason }: Exchange): Result {
  if (status === undefined) return { ok: false, durationMs, ...(error && { error }), ...(reason && { reason }) }
  const ok = status >= 200 && status < 300
  const answer = body.toString().slice(0, ANSWER_LENGTH)
  return { ok, status, durationMs, ...(!ok && answer !== '' && { answer }) }
}

/** What a late timer may make up for. */
const BURST_MS = 100

/** Waits for the next turn of a rate. */
function createPace(rate: number | undefined, signal: AbortSignal): () => Promise<void> {
  let turn = 0
  return async () => {
    if (rate === undefined) return
    const now = performance.now()
    turn = Math.max(turn + 1000 / rate, now - BURST_MS)
    if (turn > now) await delay(turn - now, undefined, { signal }).catch(() => {})
  }
}
