/** Sorts the calls of one request into those that can be delivered and those that are refused, each with its reason. */

import { HooklineError, type HooklineErrorCode, invalidField, kindOf } from '../protocol/error.ts'
import type { Json } from '../protocol/parse.ts'
import type { Submission } from '../send/destination-types.ts'
import { type Arrival, NESTING_LIMIT, nestsTooDeep, readCall, readFault } from './collected-call.ts'

/** A call that was refused, as the answer lists it. */
interface RefusedCall {
  /** The index of the call in the batch. */
  readonly index: number
  /** The number of calls from this index on that were refused together. Default: 1. */
  readonly count?: number
  readonly messageId?: string | undefined
  readonly code: HooklineErrorCode
  readonly path?: string | undefined
  readonly detail: string
}

export interface SortedCalls {
  readonly accepted: readonly Submission[]
  readonly refused: readonly RefusedCall[]
  readonly refusedCount: number
}

/** The maximum number of calls in a batch. No more valid calls than this fit into 500 KB; the limit bounds the work for invalid calls. */
const CALLS_LIMIT = 20_000

/**
 * The maximum number of calls of a batch that are refused one by one; the remaining calls are refused together. Without this limit, the
 * answer to a batch of many small invalid calls could be longer than the batch.
 */
const REFUSED_LIMIT = 500

/** The maximum size of the context and the integrations of a batch in bytes, counted once for each call of the batch. */
const SHARED_LIMIT = 2 * 1024 * 1024

/** Reads a body that is a single call. @throws HooklineError when the call is refused. */
export function readSingle(body: Json, arrival: Omit<Arrival, 'batch'>): SortedCalls {
  try {
    return { accepted: [readCall(body, { ...arrival, batch: {} })], refused: [], refusedCount: 0 }
  } catch (error) {
    if (!(error instanceof HooklineError)) throw error
    const { code, path, detail } = readFault(error)
    throw new HooklineError(code, detail, path === undefined ? {} : { path })
  }
}

/** Reads a body that is a batch. @throws HooklineError when the batch is refused as a whole. */
export function readBatch(body: Json, arrival: Omit<Arrival, 'batch'>): SortedCalls {
  const { batch: calls, context, integrations, sentAt } = body
  if (!Array.isArray(calls)) {
    throw invalidField('call_invalid', 'batch', 'must be a list of calls', kindOf(calls), 'the calls as a list')
  }
  if (calls.length > CALLS_LIMIT) {
    const rule = `must hold at most ${CALLS_LIMIT} calls`
    throw invalidField('call_invalid', 'batch', rule, `${calls.length} calls`, 'fewer calls per batch')
  }
  checkShared({ context, integrations }, calls.length)

  const batch = { context, integrations, sentAt }
  const accepted: Submission[] = []
  const refused: RefusedCall[] = []
  for (const [index, call] of calls.entries()) {
    try {
      accepted.push(readCall(call, { ...arrival, batch }))
    } catch (error) {
      if (!(error instanceof HooklineError)) throw error
      if (refused.length === REFUSED_LIMIT) {
        const rest = calls.length - index
        return { accepted, refused: [...refused, refuseRest(index, rest)], refusedCount: refused.length + rest }
      }
      refused.push(describeRefusal(error, index, call))
    }
  }
  return { accepted, refused, refusedCount: refused.length }
}

/** Refuses all calls from an index on, as one item. */
function refuseRest(index: number, count: number): RefusedCall {
  const fault = `More than ${REFUSED_LIMIT} calls of the batch would be refused.`
  const advice = 'Correct the refused calls before this index, and send the remaining calls in another batch.'
  return { index, count, code: 'too_many_refused', detail: `${fault} ${advice}` }
}

/** Refuses a small request whose shared fields would fill the memory when they are repeated in each message. */
function checkShared(fields: Json, callCount: number): void {
  let bytes = 0
  for (const [field, value] of Object.entries(fields)) {
    if (nestsTooDeep({ value })) {
      const rule = `must be nested at most ${NESTING_LIMIT} levels deep`
      throw invalidField('call_invalid', field, rule, 'a deeper value', 'a value with fewer levels')
    }
    bytes += Buffer.byteLength(JSON.stringify(value) ?? '') * callCount
    if (bytes > SHARED_LIMIT) {
      const rule = `must have at most ${SHARED_LIMIT} bytes, counted once for each call of the batch`
      const advice = 'fewer or shorter fields, or fewer calls per batch'
      throw invalidField('call_too_large', field, rule, `${bytes} bytes`, advice)
    }
  }
}

function describeRefusal(error: HooklineError, index: number, call: unknown): RefusedCall {
  const { messageId }: { readonly messageId?: unknown } = call ?? {}
  return { index, messageId: typeof messageId === 'string' ? messageId : undefined, ...readFault(error) }
}
