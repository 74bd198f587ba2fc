/** Sorts the calls of one request: those that can be delivered, and those that are refused, each with its reason. */

import type { Submission } from '../destination/api.ts'
import { HooklineError, type HooklineErrorCode, invalidField, kindOf } from '../message/error.ts'
import type { Json } from '../message/json.ts'
import { type Arrival, NESTING_LIMIT, nestsTooDeep, readCall } from './call.ts'

/** A call that was refused, as the answer lists it. */
interface RefusedCall {
  /** Index of the call in the batch. */
  readonly index: number
  readonly messageId?: string
  readonly code: HooklineErrorCode
  readonly path?: string
  readonly detail: string
}

/** The accepted and refused calls of a request. */
export interface SortedCalls {
  readonly accepted: readonly Submission[]
  /** The first of the refused calls. */
  readonly refused: readonly RefusedCall[]
  /** Number of refused calls, listed or not. */
  readonly refusedCount: number
}

/** Most calls of a batch. 500 KB cannot hold more valid ones; it bounds the work for invalid ones. */
const CALLS_LIMIT = 20_000

/** Most refused calls that are listed. A reason can be longer than its call, and a small request must not get a huge answer. */
const LISTED_LIMIT = 500

/** Most bytes of the context and the integrations of a batch, counted once for each call that gets them. */
const SHARED_LIMIT = 8 * 1024 * 1024

/**
 * Reads the call of a path that takes one.
 *
 * @throws HooklineError as {@link readCall}.
 */
export function readSingle(body: Json, arrival: Omit<Arrival, 'shared'>): SortedCalls {
  return { accepted: [readCall(body, { ...arrival, shared: {} })], refused: [], refusedCount: 0 }
}

/**
 * Reads the calls of a batch, each on its own.
 *
 * @throws HooklineError `call_invalid` or `call_too_large`, for a batch that cannot be read at all.
 */
export function readBatch(body: Json, arrival: Omit<Arrival, 'shared'>): SortedCalls {
  const { batch, context, integrations, sentAt } = body
  if (!Array.isArray(batch)) {
    throw invalidField('call_invalid', 'batch', 'must be a list of calls', kindOf(batch), 'the calls as a list')
  }
  if (batch.length > CALLS_LIMIT) {
    const rule = `must hold at most ${CALLS_LIMIT} calls`
    throw invalidField('call_invalid', 'batch', rule, `${batch.length} calls`, 'fewer calls per batch')
  }
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

/** Keeps one small request from becoming more bytes of messages than memory holds. */
function checkShared(shared: Json, calls: number): void {
  if (nestsTooDeep(shared)) {
    const rule = `must nest at most ${NESTING_LIMIT} levels deep`
    throw invalidField('call_invalid', 'context', rule, 'more levels', 'fewer levels')
  }
  const bytes = Buffer.byteLength(JSON.stringify(shared)) * calls
  if (bytes > SHARED_LIMIT) {
    const rule = `must take at most ${SHARED_LIMIT} bytes, counted for every call of the batch`
    throw invalidField(
      'call_too_large',
      'context',
      rule,
      `${bytes} bytes`,
      'a smaller context, or fewer calls per batch',
    )
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
