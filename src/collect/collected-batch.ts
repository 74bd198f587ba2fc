/** Sorts the calls of one request: those that can be delivered, and those that are refused, each with its reason. */

import { HooklineError, type HooklineErrorCode, invalidField, kindOf } from '../protocol/error.ts'
import type { Json } from '../protocol/parse.ts'
import type { Submission } from '../send/destination-types.ts'
import { type Arrival, NESTING_LIMIT, nestsTooDeep, readCall, readFault } from './collected-call.ts'

/** A call that was refused, as the answer lists it. */
interface RefusedCall {
  /** Index of the call in the batch. */
  readonly index: number
  /** Number of calls from the index on that were refused together. Default: 1. */
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

/** Most calls of a batch. 500 KB cannot hold more valid ones; it bounds the work for invalid ones. */
const CALLS_LIMIT = 20_000

/** Most calls of a batch that are refused one by one: a reason is longer than the smallest call, and costs as much to find. */
const REFUSED_LIMIT = 500

/** Most bytes of the context and the integrations of a batch, counted once for each call that gets them. */
const SHARED_LIMIT = 2 * 1024 * 1024

export function readSingle(body: Json, arrival: Omit<Arrival, 'shared'>): SortedCalls {
  try {
    return { accepted: [readCall(body, { ...arrival, shared: {} })], refused: [], refusedCount: 0 }
  } catch (error) {
    if (!(error instanceof HooklineError)) throw error
    const { code, path, detail } = readFault(error)
    throw new HooklineError(code, detail, path === undefined ? {} : { path })
  }
}

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
  for (const [index, call] of batch.entries()) {
    try {
      accepted.push(readCall(call, { ...arrival, shared }))
    } catch (error) {
      if (!(error instanceof HooklineError)) throw error
      if (refused.length === REFUSED_LIMIT) {
        const rest = batch.length - index
        return { accepted, refused: [...refused, refusalOfRest(index, rest)], refusedCount: refused.length + rest }
      }
      refused.push(describe(error, index, call))
    }
  }
  return { accepted, refused, refusedCount: refused.length }
}

function refusalOfRest(index: number, count: number): RefusedCall {
  const fault = `A batch must hold at most ${REFUSED_LIMIT} calls that are refused. Got more.`
  const advice = 'Correct the refused calls before this index, and send those from it on in another batch.'
  return { index, count, code: 'too_many_refused', detail: `${fault} ${advice}` }
}

/** Keeps one small request from becoming more bytes of messages than memory holds. */
function checkShared(fields: Json, calls: number): void {
  let bytes = 0
  for (const [field, value] of Object.entries(fields)) {
    if (nestsTooDeep({ value })) {
      const rule = `must nest at most ${NESTING_LIMIT} levels deep`
      throw invalidField('call_invalid', field, rule, 'more levels', 'fewer levels')
    }
    bytes += Buffer.byteLength(JSON.stringify(value) ?? '') * calls
    if (bytes > SHARED_LIMIT) {
      const rule = `must take at most ${SHARED_LIMIT} bytes, counted for every call of the batch`
      const advice = 'fewer fields in it, or fewer calls per batch'
      throw invalidField('call_too_large', field, rule, `${bytes} bytes`, advice)
    }
  }
}

function describe(error: HooklineError, index: number, call: unknown): RefusedCall {
  const messageId = (call as Json | null)?.messageId
  return { index, messageId: typeof messageId === 'string' ? messageId : undefined, ...readFault(error) }
}
