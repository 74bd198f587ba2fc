/** The requests to a file's worker thread and their responses: plain data, whose bytes travel in one buffer a message. */

import type { HooklineErrorCode } from '../../message/error.ts'
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

/** One call of a queue's store. `now` is the time by the queue's clock. In a message, lengths stand in place of bytes. */
export type Request<Bytes = Uint8Array> = { readonly queue: QueueSettings } & (
  | Push<Bytes>
  | Claim
  | Finish<Bytes>
  | Release
  | { readonly kind: 'undoClaim'; readonly claim: number }
  | { readonly kind: 'nextDueAt' }
  | { readonly kind: 'counts'; readonly now: number }
  | { readonly kind: 'deadLetters'; readonly after: string | undefined; readonly limit: number }
  | { readonly kind: 'redrive'; readonly now: number; readonly ids: readonly string[] | 'all' }
  | { readonly kind: 'drop'; readonly ids: readonly string[]; readonly oldest: number }
  | { readonly kind: 'jobs'; readonly after: number; readonly limit: number }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
)

/** Stores jobs: a list for each of their fields. */
export interface Push<Bytes = Uint8Array> {
  readonly kind: 'push'
  readonly now: number
  readonly ids: readonly string[]
  readonly notBefore: readonly (number | undefined)[]
  readonly bodies: readonly Bytes[]
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
export interface Finish<Bytes = Uint8Array> extends ClaimRef {
  readonly kind: 'finish'
  readonly now: number
  readonly id: string
  readonly outcome: 'complete' | 'retry' | 'deadLetter'
  readonly retryAt: number
  readonly reason: string
  readonly retryState: Bytes | undefined
  /** Whether the body stays in the file, because it cannot be deleted. */
  readonly keepsBody?: boolean
}

/** Ends claims without an outcome. */
export interface Release {
  readonly kind: 'release'
  readonly claims: readonly ClaimRef[]
  readonly wereHandled: boolean
}

/** A job that was claimed. */
export interface ClaimedRow<Bytes = Uint8Array> extends ClaimRef {
  readonly id: string
  readonly claimCount: number
  readonly firstAt: number
  readonly dueAt: number
  readonly body: Bytes
  readonly retryState: Bytes | undefined
}

/** A job that could not be read. */
export interface UnreadableRow {
  readonly id: string
  readonly reason: string
}

/** The answer to a claim. */
export interface Claims<Bytes = Uint8Array> {
  readonly jobs: readonly ClaimedRow<Bytes>[]
  /** Those that could not be read, and are dead letters now. */
  readonly unreadable: readonly UnreadableRow[]
  /** When the next job is due; 0 when one is due already. */
  readonly nextDueAt: number | undefined
}

/** Why a request failed: what becomes a HooklineError. */
interface Failure {
  readonly code: HooklineErrorCode
  readonly message: string
  /** SQLite's result code, if SQLite failed. */
  readonly errcode: number | undefined
}

/** The answer to a request. */
export type Reply = { readonly value: unknown } | { readonly failure: Failure }

/** Requests on their way to the thread. Without any, it ends. */
export interface RequestMessage {
  readonly requests: readonly Request<number>[]
  readonly buffer: ArrayBuffer
}

/** The replies to the requests of one message, in their order. */
export interface ReplyMessage {
  readonly replies: readonly Reply[]
  readonly buffer: ArrayBuffer
  /** Whether the thread ends now, because the file must be opened anew. */
  readonly isLast: boolean
}

/** Copies all bytes: to send them as they are would copy the whole pool that a small Buffer is a view of. */
export function packRequests(requests: readonly Request[]): RequestMessage {
  const { add, join } = createPacker()
  return { requests: requests.map((request) => mapRequest(request, add)), buffer: join() }
}

/** The requests of a message. Their bytes are views of its buffer. */
export function unpackRequests({ requests, buffer }: RequestMessage): Request[] {
  const view = createReader(buffer)
  return requests.map((request) => mapRequest(request, view))
}

/** Packs the jobs that were claimed. Other bytes are sent as they are. */
export function packReplies(replies: readonly Reply[], isLast: boolean): ReplyMessage {
  const { add, join } = createPacker()
  return { replies: replies.map((reply) => mapReply(reply, add)), buffer: join(), isLast }
}

/** The replies of a message. Each job has bytes of its own, so that one that is kept for long keeps no others. */
export function unpackReplies({ replies, buffer }: ReplyMessage): Reply[] {
  const view = createReader(buffer)
  return replies.map((reply) => mapReply(reply, (length: number) => view(length).slice()))
}

function mapRequest<From, To>(request: Request<From>, map: (bytes: From) => To): Request<To> {
  if (request.kind === 'push') return { ...request, bodies: request.bodies.map(map) }
  if (request.kind === 'finish') return { ...request, retryState: mapIfAny(request.retryState, map) }
  return request
}

function mapReply<From, To>(reply: Reply, map: (bytes: From) => To): Reply {
  const { value } = reply as { readonly value?: Partial<Claims<From>> | undefined }
  if (value?.jobs === undefined) return reply
  const jobs = value.jobs.map((job) => ({ ...job, body: map(job.body), retryState: mapIfAny(job.retryState, map) }))
  return { value: { ...value, jobs } }
}

function mapIfAny<From, To>(bytes: From | undefined, map: (bytes: From) => To): To | undefined {
  return bytes === undefined ? undefined : map(bytes)
}

function createPacker() {
  const parts: Uint8Array[] = []
  let length = 0
  return {
    add(part: Uint8Array): number {
      parts.push(part)
      length += part.byteLength
      return part.byteLength
    },
    join(): ArrayBuffer {
      const whole = new Uint8Array(length)
      let offset = 0
      for (const part of parts) {
        whole.set(part, offset)
        offset += part.byteLength
      }
      return whole.buffer
    },
  }
}

function createReader(buffer: ArrayBuffer): (length: number) => Uint8Array {
  let offset = 0
  return (length) => {
    offset += length
    return new Uint8Array(buffer, offset - length, length)
  }
}
