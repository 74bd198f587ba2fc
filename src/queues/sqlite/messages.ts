/**
 * The requests to a file's worker thread and its replies. What there is one of for each job is packed into one buffer, which is
 * transferred: cloning an object for each takes 2 µs a job, a third of what it costs to store one.
 */

import { HooklineError, type HooklineErrorCode } from '../../message/error.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import type { QueueUse } from '../queue.ts'

/** What the thread needs to know about a queue. */
export interface QueueSettings {
  readonly name: string
  /** What it is reserved for. */
  readonly use?: QueueUse
  readonly dedupeWindowMs: number
  /** Number.MAX_SAFE_INTEGER for no bound. */
  readonly maxJobs: number
  /** How long to wait while another process writes, in milliseconds. */
  readonly timeoutMs: number
}

/** One call of a queue's store. `now` is the time by the queue's clock. */
export type Request = { readonly queue: QueueSettings } & (
  | Push
  | Claim
  | Finish
  | Release
  | { readonly kind: 'undoClaim'; readonly claim: number }
  | { readonly kind: 'nextDueAt' }
  | { readonly kind: 'counts'; readonly now: number }
  | { readonly kind: 'deadLetters'; readonly after: string | undefined; readonly limit: number }
  | { readonly kind: 'redrive'; readonly now: number; readonly ids: readonly string[] | 'all' }
  | { readonly kind: 'drop'; readonly ids: readonly string[] | 'all'; readonly limit: number }
  | { readonly kind: 'jobs'; readonly after: number; readonly limit: number }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
)

/** Stores jobs: a list for each of their fields. */
export interface Push {
  readonly kind: 'push'
  readonly now: number
  readonly ids: readonly Uint8Array[]
  readonly notBefore: readonly (number | undefined)[]
  readonly bodies: readonly Uint8Array[]
}

/** Claims due jobs, under a number that this process gives to no other claim. */
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
}

/** Ends a claim as its handler decided. */
export interface Finish extends ClaimRef {
  readonly kind: 'finish'
  readonly now: number
  readonly outcome: (typeof OUTCOMES)[number]
  readonly retryAt: number
  readonly reason: Uint8Array | undefined
  readonly retryState: Uint8Array | undefined
}

/** Ends claims without an outcome. */
export interface Release {
  readonly kind: 'release'
  readonly claims: readonly ClaimRef[]
  readonly wereHandled: boolean
}

/** A job that was claimed. */
interface ClaimedRow extends ClaimRef {
  readonly id: Uint8Array
  readonly claimCount: number
  readonly firstAt: number
  readonly dueAt: number
  readonly body: Uint8Array
  readonly retryState: Uint8Array | undefined
}

/** A job that could not be read. */
export interface UnreadableRow {
  readonly id: string
  readonly reason: string
}

/** The answer to a claim. */
export interface Claims {
  readonly jobs: readonly ClaimedRow[]
  /** Those that could not be read, and are dead letters now. */
  readonly unreadable: readonly UnreadableRow[]
  /** When the next job is due; 0 when one is due already. */
  readonly nextDueAt: number | undefined
}

/** The answer to a request, or why it failed: what becomes a HooklineError. */
export type Reply =
  | { readonly value: unknown }
  | { readonly failure: { readonly code: HooklineErrorCode; readonly message: string } }

/** What failed with a file, as an error for the caller. Messages of SQLite hold no values. */
export function unavailable(subject: string, path: string, cause: unknown): HooklineError {
  if (cause instanceof HooklineError) return cause
  return new HooklineError('queue_unavailable', cannotUse(subject, path, cause), { cause })
}

/** The reply to a request that failed. */
export function failureOf(error: unknown, { name }: QueueSettings, path: string): Reply {
  const { code, message } = unavailable(`Queue ${name}`, path, error)
  return { failure: { code, message } }
}

/** Requests on their way to the thread. It ends when it gets `end` in place of them. */
export interface RequestMessage {
  /** The queues of those that are packed. */
  readonly queues: readonly QueueSettings[]
  /** The requests that are not packed. */
  readonly others: readonly Request[]
  readonly buffer: ArrayBuffer
}

/** The replies to the requests of one message. */
export interface ReplyMessage {
  readonly count: number
  /** Those that say more than that it is done. The jobs of a claim are packed, and their number stands in place of them. */
  readonly others: readonly (readonly [index: number, reply: Reply])[]
  readonly buffer: ArrayBuffer
  /** Whether the thread ends now, because the file must be opened anew. */
  readonly isLast: boolean
}

const KINDS = ['push', 'claim', 'finish', 'other'] as const
const OUTCOMES = ['complete', 'retry', 'deadLetter'] as const
const DONE: Reply = { value: undefined }

/** Packs requests. Their bytes are copied: a small Buffer is a view of a pool of many. */
export function packRequests(requests: readonly Request[]): RequestMessage {
  const { add, addBytes, join } = createWriter()
  const queues: QueueSettings[] = []
  const others: Request[] = []

  function addHead(kind: (typeof KINDS)[number], queue: QueueSettings): void {
    if (!queues.includes(queue)) queues.push(queue)
    add(KINDS.indexOf(kind), queues.indexOf(queue))
  }

  for (const request of requests) {
    const { kind, queue } = request
    if (kind === 'push') {
      addHead(kind, queue)
      add(request.now, request.ids.length)
      for (const [index, id] of request.ids.entries()) {
        add(request.notBefore[index] ?? Number.NaN)
        addBytes(id)
        addBytes(request.bodies[index])
      }
    } else if (kind === 'claim') {
      addHead(kind, queue)
      add(request.now, request.limit, request.claim)
    } else if (kind === 'finish') {
      addHead(kind, queue)
      add(request.now, request.seq, request.claim, OUTCOMES.indexOf(request.outcome), request.retryAt)
      addBytes(request.reason)
      addBytes(request.retryState)
    } else {
      addHead('other', queue)
      others.push(request)
    }
  }
  return { queues, others, buffer: join() }
}

/** Unpacks the requests of a message. Their bytes are views of its buffer. */
export function unpackRequests({ queues, others, buffer }: RequestMessage): Request[] {
  const { next, nextBytes, isOver } = createReader(buffer)
  const requests: Request[] = []
  let other = 0

  function nextPush(): Push {
    const [now, length] = [next(), next()]
    const jobs = Array.from({ length }, () => [next(), nextBytes() as Uint8Array, nextBytes() as Uint8Array] as const)
    return {
      kind: 'push',
      now,
      ids: jobs.map(([, id]) => id),
      notBefore: jobs.map(([at]) => (Number.isNaN(at) ? undefined : at)),
      bodies: jobs.map(([, , body]) => body),
    }
  }

  function nextFinish(): Finish {
    const fields = { now: next(), seq: next(), claim: next(), outcome: OUTCOMES[next()], retryAt: next() }
    return { kind: 'finish', ...fields, reason: nextBytes(), retryState: nextBytes() } as Finish
  }

  while (!isOver()) {
    const kind = KINDS[next()]
    const queue = queues[next()] as QueueSettings
    if (kind === 'push') requests.push({ queue, ...nextPush() })
    else if (kind === 'claim') requests.push({ queue, kind, now: next(), limit: next(), claim: next() })
    else if (kind === 'finish') requests.push({ queue, ...nextFinish() })
    else requests.push(others[other++] as Request)
  }
  return requests
}

/** Packs replies. */
export function packReplies(replies: readonly Reply[], isLast: boolean): ReplyMessage {
  const { add, addBytes, join } = createWriter()
  const others: [index: number, reply: Reply][] = []
  for (const [index, reply] of replies.entries()) {
    const value = 'value' in reply ? (reply.value as Partial<Claims> | undefined) : undefined
    for (const { seq, claim, id, claimCount, firstAt, dueAt, body, retryState } of value?.jobs ?? []) {
      add(seq, claim, claimCount, firstAt, dueAt)
      addBytes(id)
      addBytes(body)
      addBytes(retryState)
    }
    const packed = value?.jobs === undefined ? reply : { value: { ...value, jobs: value.jobs.length } }
    if ('failure' in reply || value !== undefined) others.push([index, packed])
  }
  return { count: replies.length, others, buffer: join(), isLast }
}

/** Unpacks the replies of a message. Each job has bytes of its own, so that one that is kept for long keeps no others. */
export function unpackReplies({ count, others, buffer }: ReplyMessage): readonly Reply[] {
  const { next, nextBytes } = createReader(buffer)
  const replies = Array<Reply>(count).fill(DONE)

  function nextJob(): ClaimedRow {
    const fields = { seq: next(), claim: next(), claimCount: next(), firstAt: next(), dueAt: next() }
    const id = nextBytes() as Uint8Array
    const body = (nextBytes() as Uint8Array).slice()
    return { ...fields, id, body, retryState: nextBytes()?.slice() }
  }

  for (const [index, reply] of others) {
    const { value } = reply as { readonly value?: { readonly jobs?: number } }
    const length = value?.jobs
    replies[index] = length === undefined ? reply : { value: { ...value, jobs: Array.from({ length }, nextJob) } }
  }
  return replies
}

const NO_BYTES = -1

/** Collects numbers, lengths of bytes among them, and bytes. */
function createWriter() {
  const numbers: number[] = [0] // The first one says how many there are.
  const parts: Uint8Array[] = []
  return {
    add: (...values: readonly number[]) => void numbers.push(...values),
    addBytes(part: Uint8Array | undefined): void {
      numbers.push(part?.byteLength ?? NO_BYTES)
      if (part !== undefined) parts.push(part)
    },
    join(): ArrayBuffer {
      numbers[0] = numbers.length
      const head = new Uint8Array(new Float64Array(numbers).buffer)
      const length = parts.reduce((sum, part) => sum + part.byteLength, head.byteLength)
      const bytes = new Uint8Array(length)
      let offset = 0
      for (const part of [head, ...parts]) {
        bytes.set(part, offset)
        offset += part.byteLength
      }
      return bytes.buffer
    },
  }
}

/** Reads them in the same order. */
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
