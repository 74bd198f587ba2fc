/** Calls and replies as messages between threads: all bytes of one lie in one buffer, which changes hands. */

import type { Call, Claimed, Claims, PushCall, Reply, SettleCall } from './sqlite-calls.ts'

/** Calls on their way to the thread that has the file. */
export interface Request {
  readonly calls: readonly Flat<Call>[]
  readonly buffer: ArrayBuffer
  /** After these it ends. */
  readonly isLast: boolean
}

/** What came of the calls of one request, in their order. */
export interface Response {
  readonly replies: readonly Flat<Reply>[]
  readonly buffer: ArrayBuffer
}

/** With lengths in place of bytes. */
type Flat<T> = T extends Uint8Array ? number : T extends object ? { readonly [Key in keyof T]: Flat<T[Key]> } : T

/** Copies all bytes: to send them as they are would copy the whole pool that they are a view of. */
export function writeRequest(calls: readonly Call[], isLast: boolean): Request {
  const { add, pack } = createPacker()
  const flat = calls.map((call): Flat<Call> => {
    if (call.kind === 'push') return { ...call, bodies: call.bodies.map(add) }
    if (call.kind === 'settle') return { ...call, state: call.state && add(call.state) }
    return call as Flat<Call>
  })
  return { calls: flat, buffer: pack(), isLast }
}

/** The calls again; their bytes are views of the buffer. */
export function readRequest({ calls, buffer }: Request): Call[] {
  const take = createReader(buffer)
  return calls.map((flat) => {
    if (flat.kind === 'push') return { ...flat, bodies: flat.bodies.map(take) } satisfies PushCall
    if (flat.kind === 'settle') return { ...flat, state: takeIf(take, flat.state) } satisfies SettleCall
    return flat as Call
  })
}

/** Packs what was claimed; a page of the dead goes as it is. */
export function writeResponse(replies: readonly Reply[]): Response {
  const { add, pack } = createPacker()
  const flat = replies.map((reply) => {
    if (!isClaims(reply)) return reply as Flat<Reply>
    const jobs = reply.value.jobs.map((job) => ({ ...job, body: add(job.body), state: job.state && add(job.state) }))
    return { value: { ...reply.value, jobs } }
  })
  return { replies: flat, buffer: pack() }
}

/** The replies again. Each job has bytes of its own: one that is kept for long keeps no others. */
export function readResponse({ replies, buffer }: Response): Reply[] {
  const view = createReader(buffer)
  const take = (length: number): Uint8Array => view(length).slice()
  return replies.map((flat) => {
    const reply = flat as Reply
    if (!isClaims(reply)) return reply
    const claims = reply.value as unknown as Flat<Claims>
    const jobs = claims.jobs.map((job): Claimed => ({ ...job, body: take(job.body), state: takeIf(take, job.state) }))
    return { value: { jobs, nextAt: claims.nextAt } satisfies Claims }
  })
}

function isClaims(reply: Reply): reply is { readonly value: Claims } {
  return 'value' in reply && typeof reply.value === 'object' && reply.value !== null && 'jobs' in reply.value
}

function takeIf(take: (length: number) => Uint8Array, length: number | undefined): Uint8Array | undefined {
  return length === undefined ? undefined : take(length)
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
    pack(): ArrayBuffer {
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
