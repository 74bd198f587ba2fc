/** The calls of one request: those that can be delivered, and those that are refused, each with the reason. */

import { HooklineError, type HooklineErrorCode } from '../protocol/error.ts'
import type { Json } from '../protocol/json.ts'
import type { Submission } from '../sender/api.ts'
import { type Arrival, readCall } from './call.ts'
import { nestsTooDeep } from './nesting.ts'

/** A call that was refused, as the answer lists it. */
interface RefusedCall {
  /** Its place in the batch, counted from 0. */
  readonly index: number
  readonly messageId?: string
  readonly code: HooklineErrorCode
  readonly path?: string
  readonly detail: string
}

/** What became of the calls of a request. */
export interface SortedCalls {
  readonly accepted: readonly Submission[]
  /** The first of those that were refused. */
  readonly refused: readonly RefusedCall[]
  /** How many were refused, listed or not. */
  readonly refusedCount: number
}

/** No 500 KB hold more calls that are valid; it bounds the work for those that are not. */
const CALLS_LIMIT = 20_000

/** Most refused calls that are listed: the reason is longer than a call can be, and a small request gets no huge answer. */
const LISTED_LIMIT = 500

/** Most bytes that the context and the integrations of a batch come to when each of its calls gets them. */
const SHARED_LIMIT = 8 * 1024 * 1024

/**
 * Reads the one call of a path that takes one.
 *
 * @throws HooklineError what {@link readCall} throws.
 */
export function readSingle(body: Json, arrival: Omit<Arrival, 'shared'>): SortedCalls {
  return { accepted: [readCall(body, { ...arrival, shared: {} })], refused: [], refusedCount: 0 }
}

/**
 * Reads the calls of a batch, each for itself.
 *
 * @throws HooklineError `call_invalid` or `call_too_large`, for a batch that cannot be read at all.
 */
export function readBatch(body: Json, arrival: Omit<Arrival, 'shared'>): SortedCalls {
  const { batch, context, integrations, sentAt } = body
  if (!Array.isArray(batch)) throw invalid('batch', 'must be a list of calls')
  if (batch.length > CALLS_LIMIT) throw invalid('batch', `must hold at most ${CALLS_LIMIT} calls`)
  checkShared({ context, integrations }, batch.length)

  const shared = { context, integrations, sentAt }
  const accepted: Submission[] = []
  const refused: RefusedCall[] = []
  let refusedCount = 0
  for (const [index, call] of batch.entries()) {
    try {
      accepted.push(readCall(call, { ...arrival, shared }))
    } catch (error) {
      if (!(error instanceof HooklineError)) throw error
      refusedCount++
      if (refused.length < LISTED_LIMIT) refused.push(describe(error, index, call))
    }
  }
  return { accepted, refused, refusedCount }
}

/** One request must not become more messages' worth of bytes than memory holds. */
function checkShared(shared: Json, calls: number): void {
  if (nestsTooDeep(shared)) throw invalid('context', 'is nested too deep')
  if (Buffer.byteLength(JSON.stringify(shared)) * calls > SHARED_LIMIT) {
    const path = 'context'
    throw new HooklineError('call_too_large', 'context is too large for a batch of so many calls.', { path })
  }
}

function describe({ code, path, message }: HooklineError, index: number, call: unknown): RefusedCall {
  const messageId = (call as Json | null)?.messageId
  return {
    index,
    ...(typeof messageId === 'string' && { messageId }),
    code,
    ...(path !== undefined && { path }),
    detail: message,
  }
}

function invalid(path: string, fault: string): HooklineError {
  return new HooklineError('call_invalid', `${path} ${fault}.`, { path })
}
