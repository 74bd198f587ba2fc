/** The result of posting a batch: the calls that were not delivered, and why. */

import type { BufferedCall } from './recorded-call.ts'

/**
 * Why calls were not delivered:
 *
 * - `batch_refused`: the answer to the batch was final, for example a 401.
 * - `out_of_retries`: every attempt failed, each in a way that allows a retry.
 * - `call_refused`: the collection service accepted the batch, but listed this call as refused.
 * - `maybe_refused`: the collection service accepted the batch, but its answer does not say which of these calls it refused.
 *   Some of these calls may have been delivered; the text of the error says how many were refused, if that is known.
 * - `queue_full`: the call was dropped because the buffer was full.
 */
export type BatchErrorReason = 'batch_refused' | 'out_of_retries' | 'call_refused' | 'maybe_refused' | 'queue_full'

/** Details of a {@link BatchError}. */
export interface BatchErrorDetails {
  /** The status of the last answer; undefined if the last attempt got no answer. */
  readonly status?: number
  /** The number of attempts to post the batch. */
  readonly attempts?: number
  /** The code that the collection service gave for a refused call. */
  readonly code?: string
  /** The field of a refused call that is at fault, as a dotted path. */
  readonly path?: string
}

/**
 * The error that `onError` gets, together with the calls that were not delivered. Its message quotes neither a call, nor the text of an
 * answer, nor the write key, so it is safe to log.
 */
export class BatchError extends Error {
  override readonly name = 'BatchError'
  /** Why the calls were not delivered. */
  readonly reason: BatchErrorReason
  /** The status of the last answer; undefined if the last attempt got no answer. */
  readonly status: number | undefined
  /** The number of attempts to post the batch; 0 if it was never posted. */
  readonly attempts: number
  /** The code that the collection service gave for a refused call. */
  readonly code: string | undefined
  /** The field of a refused call that is at fault, as a dotted path. */
  readonly path: string | undefined

  constructor(reason: BatchErrorReason, message: string, details: BatchErrorDetails = {}) {
    super(message)
    this.reason = reason
    this.status = details.status
    this.attempts = details.attempts ?? 0
    this.code = details.code
    this.path = details.path
  }
}

export interface BatchFailure {
  readonly error: BatchError
  readonly calls: readonly BufferedCall[]
}

/**
 * Reads which calls the answer to a batch lists as refused. An example of an answer is
 * `{"accepted":19,"refused":[{"index":0,"code":"call_invalid","path":"event"}]}`. An item with a `count` stands for
 * that many calls from its index on. An answer in any other form, such as that of another collection service, lists
 * none. If an answer mentions refused calls but is cut off or broken, every call may have been refused.
 */
export function readFailures(body: string, calls: readonly BufferedCall[], attempts: number): readonly BatchFailure[] {
  if (!body.includes('"refused"')) return []
  let answer: { readonly refused?: unknown; readonly accepted?: unknown }
  try {
    answer = Object(JSON.parse(body))
  } catch {
    if (!body.trimStart().startsWith('{')) return []
    return [{ error: new BatchError('maybe_refused', UNREADABLE, { attempts }), calls }]
  }
  if (!Array.isArray(answer.refused)) return []

  const listed = new Set<BufferedCall>()
  const failures = answer.refused.flatMap((item): BatchFailure[] => {
    const { index, count, code, path } = Object(item)
    const end = index + (Number.isInteger(count) ? count : 1)
    const refused: BufferedCall[] = []
    for (let at = index; Number.isInteger(at) && at < end; at++) {
      const call = calls[at]
      if (call === undefined || listed.has(call)) break
      listed.add(call)
      refused.push(call)
    }
    return refused.length === 0 ? [] : [{ error: refusedError(code, path, refused.length, attempts), calls: refused }]
  })
  const unlisted = countUnlisted(answer.accepted, calls.length, listed.size)
  if (unlisted === 0) return failures
  const others = calls.filter((call) => !listed.has(call))
  const fault = `The collection service refused ${unlisted} of ${showCount(others.length, 'call')} without saying which`
  const message = `${fault}. ${SHORTER_BATCHES}`
  return [...failures, { error: new BatchError('maybe_refused', message, { attempts }), calls: others }]
}

const SHORTER_BATCHES = 'Lower `flushAt`, so that an answer can list every refused call.'

const UNREADABLE = `The collection service answered with a list of refused calls that is cut off or broken. ${SHORTER_BATCHES}`

/** Counts the calls that are neither accepted nor listed as refused: a service may list only the first refused calls. */
function countUnlisted(accepted: unknown, calls: number, listed: number): number {
  if (typeof accepted !== 'number' || !Number.isInteger(accepted) || accepted < 0) return 0
  return Math.max(0, calls - accepted - listed)
}

function refusedError(code: unknown, path: unknown, calls: number, attempts: number): BatchError {
  const details: { attempts: number; code?: string; path?: string } = { attempts }
  if (isPrintable(code)) details.code = code
  if (isPrintable(path)) details.path = path
  const reason = [details.code, details.path].filter((part) => part !== undefined).join(', ') || 'no reason given'
  const [refused, advice] =
    calls === 1
      ? ['the call', 'Correct the call where it is recorded.']
      : [`${calls} calls together`, 'Correct the calls that were refused one by one, and record these calls again.']
  return new BatchError('call_refused', `The collection service refused ${refused}: ${reason}. ${advice}`, details)
}

/** Writes a number with its noun: `1 call`, `2 calls`. */
export function showCount(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** Returns whether a value from the wire looks like a name. An error may quote only such a value. */
function isPrintable(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.[\] -]{1,100}$/.test(value)
}
