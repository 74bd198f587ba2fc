/**
 * The requests to a file's worker thread and its replies. What there is one of for each job is packed into one buffer, which is
 * transferred: cloning an object for each takes 2 µs a job, a third of what it costs to store one.
 */

import { HooklineError, type HooklineErrorCode } from '../../message/error.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import type { QueueUse, Replayed } from '../api.ts'
import type { CheckedHistoryPage, CheckedPage } from '../store.ts'

export interface QueueSettings {
  readonly name: string
  readonly use?: QueueUse
  readonly dedupeWindowMs: number
  readonly maxJobs: number
  readonly timeoutMs: number
}

export type Request = { readonly queue: QueueSettings } & (
  | Push
  | Claim
  | Finish
  | Release
  | ({ readonly kind: 'save'; readonly retryState: Uint8Array } & ClaimRef)
  | { readonly kind: 'undoClaim'; readonly claim: number }
  | { readonly kind: 'nextDueAt' }
  | { readonly kind: 'counts'; readonly now: number }
  | ({ readonly kind: 'deadLetters' } & CheckedPage)
  | ({ readonly kind: 'redrive'; readonly now: number } & Letters)
  | ({ readonly kind: 'drop' } & Letters)
  | { readonly kind: 'jobs'; readonly after: number; readonly limit: number }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
  | ({ readonly kind: 'history' } & CheckedHistoryPage)
  | { readonly kind: 'findHandled'; readonly ids: readonly string[] }
  | { readonly kind: 'replay'; readonly now: number; readonly jobs: readonly Replayed[] }
  | { readonly kind: 'note'; readonly name: string; readonly text: string | undefined }
  | ({ readonly kind: 'dropHandled' } & Dropped)
)

/** Those of these ids; or the oldest, at most `limit`. */
export interface Letters {
  readonly ids: readonly string[] | 'all'
  readonly limit: number
}

/** Of the history: those before this time, and the oldest while there are more bytes. Ids stay known from `windowStart` on. */
export interface Dropped {
  readonly before: number
  readonly maxBytes: number
  readonly limit: number
  readonly windowStart: number
}

export interface Push {
  readonly kind: 'push'
  readonly now: number
  readonly jobs: readonly PushedRow[]
}

/** A digest of its name; null without one. */
export type Group = number | null

interface PushedRow {
  readonly dueAt: number
  readonly group: Group
  readonly id: Uint8Array
  readonly body: Uint8Array
}

export interface Claim {
  readonly kind: 'claim'
  readonly now: number
  readonly limit: number
  readonly claim: number
}

/** One job and the claim on it. Whatever names a claim that has ended changes nothing. */
export interface ClaimRef {
  readonly seq: number
  readonly claim: number
  readonly group: Group
}

export interface Finish extends ClaimRef {
  readonly kind: 'finish'
  readonly now: number
  readonly outcome: (typeof OUTCOMES)[number]
  readonly retryAt: number
  readonly reason: Uint8Array | undefined
  /** With `keep`, what is kept. */
  readonly retryState: Uint8Array | undefined
}

export interface Release {
  readonly kind: 'release'
  readonly claims: readonly ClaimRef[]
  readonly wereHandled: boolean
}

interface ClaimedRow extends ClaimRef {
  readonly id: Uint8Array
  readonly claimCount: number
  readonly firstAt: number
  readonly dueAt: number
  readonly body: Uint8Array
  readonly retryState: Uint8Array | undefined
}

export interface UnreadableRow {
  readonly id: string
  readonly reason: string
}

export interface Claims {
  readonly jobs: readonly ClaimedRow[]
  readonly unreadable: readonly UnreadableRow[]
  readonly nextDueAt: number | undefined
}

export type Reply =
  | { readonly value: unknown }
  | { readonly failure: { readonly code: HooklineErrorCode; readonly message: string } }

export function unavailable(subject: string, path: string, cause: unknown): HooklineError {
  if (cause instanceof HooklineError) return cause
  return new HooklineError('queue_unavailable', cannotUse(subject, path, cause), { cause })
}

export function failureOf(error: unknown, { name }: QueueSettings, path: string): Reply {
  const { code, message } = unavailable(`Queue ${name}`, path, error)
  return { failure: { code, message } }
}

/** `queues` holds those of the packed requests, `others` the requests that are not packed. */
export interface RequestMessage {
  readonly queues: readonly QueueSettings[]
  readonly others: readonly Request[]
  readonly buffer: ArrayBuffer
}

/** A reply without a value is undefined. The jobs of a claim are packed in the buffer: their number is in place of them. */
export interface ReplyMessage {
  readonly replies: readonly (Reply | undefined)[]
  readonly buffer: ArrayBuffer
  /** Whether the thread ends now, because the file must be opened anew. */
  readonly isLast: boolean
}

/** The names of queues that have due jobs. */
export interface DueMessage {
  readonly due: readonly string[]
}

const PACKED = ['push', 'finish']
const OUTCOMES = ['complete', 'keep', 'retry', 'hold', 'deadLetter'] as const

/** The bytes are copied: a small Buffer is a view of a pool of many. */
export function packRequests(requests: readonly Request[]): RequestMessage {
  const { add, addBytes, join } = createWriter()
  const queues = [...new Set(requests.map(({ queue }) => queue))]
  const others: Request[] = []
  for (const request of requests) {
    add(PACKED.indexOf(request.kind), queues.indexOf(request.queue))
    if (request.kind === 'push') {
      add(request.now, request.jobs.length)
      for (const { dueAt, group, id, body } of request.jobs) {
        add(dueAt, group ?? NO_GROUP)
        addBytes(id)
        addBytes(body)
      }
    } else if (request.kind === 'finish') {
      add(
        request.now,
        request.seq,
        request.claim,
        request.group ?? NO_GROUP,
        OUTCOMES.indexOf(request.outcome),
        request.retryAt,
      )
      addBytes(request.reason)
      addBytes(request.retryState)
    } else {
      others.push(request)
    }
  }
  return { queues, others, buffer: join() }
}

/** The bytes are views of the buffer. */
export function unpackRequests({ queues, others, buffer }: RequestMessage): Request[] {
  const { next, nextBytes, isOver } = createReader(buffer)
  const requests: Request[] = []
  const nextGroup = (): Group => groupFrom(next())
  const nextJob = (): PushedRow => {
    return { dueAt: next(), group: nextGroup(), id: nextBytes() as Uint8Array, body: nextBytes() as Uint8Array }
  }
  for (let other = 0; !isOver(); ) {
    const kind = PACKED[next()]
    const queue = queues[next()] as QueueSettings
    if (kind === 'push') {
      requests.push({ queue, kind, now: next(), jobs: listOf(next(), nextJob) })
    } else if (kind === 'finish') {
      const claim = { now: next(), seq: next(), claim: next(), group: nextGroup() }
      const fields = { ...claim, outcome: OUTCOMES[next()], retryAt: next() }
      requests.push({ queue, kind, ...fields, reason: nextBytes(), retryState: nextBytes() } as Request)
    } else {
      requests.push(others[other++] as Request)
    }
  }
  return requests
}

export function packReplies(replies: readonly Reply[], isLast: boolean): ReplyMessage {
  const { add, addBytes, join } = createWriter()
  const packed = replies.map((reply) => {
    if ('failure' in reply || reply.value === undefined) return 'failure' in reply ? reply : undefined
    const { jobs } = reply.value as Partial<Claims>
    if (jobs === undefined) return reply
    for (const { seq, claim, group, claimCount, firstAt, dueAt, id, body, retryState } of jobs) {
      add(seq, claim, group ?? NO_GROUP, claimCount, firstAt, dueAt)
      for (const bytes of [id, body, retryState]) addBytes(bytes)
    }
    return { value: { ...(reply.value as Claims), jobs: jobs.length } }
  })
  return { replies: packed, buffer: join(), isLast }
}

/** Each job has bytes of its own, so that one that is kept for long keeps no others. */
export function unpackReplies({ replies, buffer }: ReplyMessage): readonly Reply[] {
  const { next, nextBytes } = createReader(buffer)
  function nextJob(): ClaimedRow {
    const ref = { seq: next(), claim: next(), group: groupFrom(next()) }
    const fields = { ...ref, claimCount: next(), firstAt: next(), dueAt: next() }
    const [id, body, retryState] = [nextBytes() as Uint8Array, nextBytes() as Uint8Array, nextBytes()]
    return { ...fields, id, body: body.slice(), retryState: retryState?.slice() }
  }
  return replies.map((reply) => {
    if (reply === undefined || 'failure' in reply) return reply ?? { value: undefined }
    const { value } = reply as { readonly value: { readonly jobs?: number } }
    const length = value?.jobs
    return length === undefined ? reply : { value: { ...value, jobs: listOf(length, nextJob) } }
  })
}

function listOf<T>(length: number, make: () => T): T[] {
  const list: T[] = []
  while (list.length < length) list.push(make())
  return list
}

const NO_GROUP = -1

function groupFrom(number: number): Group {
  return number === NO_GROUP ? null : number
}

const NO_BYTES = -1

/** Collects numbers, the lengths of bytes among them, and those bytes; the first number is how many there are. */
function createWriter() {
  const numbers: number[] = [0]
  const parts: Uint8Array[] = []
  return {
    add: (...values: readonly number[]) => void numbers.push(...values),
    addBytes(bytes: Uint8Array | undefined): void {
      numbers.push(bytes?.byteLength ?? NO_BYTES)
      if (bytes !== undefined) parts.push(bytes)
    },
    join(): ArrayBuffer {
      numbers[0] = numbers.length
      let offset = numbers.length * Float64Array.BYTES_PER_ELEMENT
      const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, part) => sum + part.byteLength, offset))
      new Float64Array(bytes.buffer, 0, numbers.length).set(numbers)
      for (const part of parts) {
        bytes.set(part, offset)
        offset += part.byteLength
      }
      return bytes.buffer
    },
  }
}

function createReader(buffer: ArrayBuffer) {
  const count = new Float64Array(buffer, 0, 1)[0] as number
  const numbers = new Float64Array(buffer, 0, count)
  let offset = numbers.byteLength
  let index = 1
  const next = (): number => numbers[index++] as number
  return {
    next,
    nextBytes(): Uint8Array | undefined {
      const length = next()
      if (length === NO_BYTES) return undefined
      offset += length
      return new Uint8Array(buffer, offset - length, length)
    },
    isOver: () => index >= count,
  }
}
