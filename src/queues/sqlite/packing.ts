/**
 * Packs the requests to a file's worker thread and its replies. What there is one of for each job goes into one buffer, which is
 * transferred: cloning an object for each takes 2 µs a job, a third of what it costs to store one.
 */

import type {
  ClaimedRow,
  Claims,
  Finish,
  Push,
  QueueSettings,
  Reply,
  ReplyMessage,
  Request,
  RequestMessage,
} from './rpc.ts'

const [PUSH, CLAIM, FINISH, OTHER] = [0, 1, 2, 3]
const OUTCOMES = ['complete', 'retry', 'deadLetter'] as const
const DONE: Reply = { value: undefined }

interface Sent {
  readonly request: Request
}

/** @param known The queues that the thread has heard of, with their numbers. New ones are added. */
export function packRequests(sent: readonly Sent[], known: Map<QueueSettings, number>): RequestMessage {
  const { add, addBytes, join } = createWriter()
  const queues: QueueSettings[] = []
  const others: Request[] = []

  function numberOf(queue: QueueSettings): number {
    const number = known.get(queue)
    if (number !== undefined) return number
    queues.push(queue)
    known.set(queue, known.size)
    return known.size - 1
  }

  for (const { request } of sent) {
    if (request.kind === 'push') {
      const { queue, now, ids, notBefore, bodies } = request
      add(PUSH, numberOf(queue), now, ids.length)
      for (let index = 0; index < ids.length; index += 1) {
        add(notBefore[index] ?? Number.NaN)
        addBytes(ids[index])
        addBytes(bodies[index])
      }
    } else if (request.kind === 'claim') {
      add(CLAIM, numberOf(request.queue), request.now, request.limit, request.claim)
    } else if (request.kind === 'finish') {
      const { queue, now, seq, claim, outcome, retryAt, reason, retryState } = request
      add(FINISH, numberOf(queue), now, seq, claim, OUTCOMES.indexOf(outcome), retryAt)
      addBytes(reason)
      addBytes(retryState)
    } else {
      add(OTHER)
      others.push(request)
    }
  }
  return { queues, others, buffer: join() }
}

/**
 * Unpacks the requests of a message. Their bytes are views of its buffer.
 *
 * @param queues The queues that were heard of, by their numbers. New ones are added.
 */
export function unpackRequests({ queues: added, others, buffer }: RequestMessage, queues: QueueSettings[]): Request[] {
  const { next, nextBytes, isOver } = createReader(buffer)
  const requests: Request[] = []
  let other = 0

  function nextPush(): Push {
    const now = next()
    const ids = Array<Uint8Array>(next())
    const notBefore = Array<number | undefined>(ids.length)
    const bodies = Array<Uint8Array>(ids.length)
    for (let index = 0; index < ids.length; index += 1) {
      const at = next()
      notBefore[index] = Number.isNaN(at) ? undefined : at
      ids[index] = nextBytes() as Uint8Array
      bodies[index] = nextBytes() as Uint8Array
    }
    return { kind: 'push', now, ids, notBefore, bodies }
  }

  function nextFinish(): Finish {
    const fields = { now: next(), seq: next(), claim: next(), outcome: OUTCOMES[next()], retryAt: next() }
    return { kind: 'finish', ...fields, reason: nextBytes(), retryState: nextBytes() } as Finish
  }

  queues.push(...added)
  while (!isOver()) {
    const kind = next()
    if (kind === OTHER) {
      requests.push(others[other++] as Request)
      continue
    }
    const queue = queues[next()] as QueueSettings
    if (kind === PUSH) requests.push({ queue, ...nextPush() })
    else if (kind === FINISH) requests.push({ queue, ...nextFinish() })
    else requests.push({ queue, kind: 'claim', now: next(), limit: next(), claim: next() })
  }
  return requests
}

/** Packs the jobs that were claimed. Other replies travel as they are; how many there are, if none says anything. */
export function packReplies(replies: readonly Reply[], isLast: boolean): ReplyMessage {
  const { add, addBytes, join } = createWriter()
  const others: [index: number, reply: Reply][] = []
  for (const [index, reply] of replies.entries()) {
    const { value } = reply as { readonly value?: Partial<Claims> | undefined }
    if (value?.jobs !== undefined) {
      for (const { seq, claim, id, claimCount, firstAt, dueAt, body, retryState } of value.jobs) {
        add(seq, claim, claimCount, firstAt, dueAt)
        addBytes(id)
        addBytes(body)
        addBytes(retryState)
      }
      others.push([index, { value: { ...value, jobs: value.jobs.length } }])
    } else if ('failure' in reply || value !== undefined) {
      others.push([index, reply])
    }
  }
  if (others.length === 0 && !isLast) return replies.length
  return { count: replies.length, others, buffer: join(), isLast }
}

/** Unpacks the replies of a message. Each job has bytes of its own, so that one that is kept for long keeps no others. */
export function unpackReplies(message: ReplyMessage): readonly Reply[] {
  if (typeof message === 'number') return Array<Reply>(message).fill(DONE)
  const { next, nextBytes } = createReader(message.buffer)
  const replies = Array<Reply>(message.count).fill(DONE)

  function nextJob(): ClaimedRow {
    const fields = { seq: next(), claim: next(), claimCount: next(), firstAt: next(), dueAt: next() }
    const id = nextBytes() as Uint8Array
    const body = (nextBytes() as Uint8Array).slice()
    return { ...fields, id, body, retryState: nextBytes()?.slice() }
  }

  for (const [index, reply] of message.others) {
    const { value } = reply as { readonly value?: { readonly jobs?: number } }
    const length = value?.jobs
    replies[index] = length === undefined ? reply : { value: { ...value, jobs: Array.from({ length }, nextJob) } }
  }
  return replies
}

const NONE = -1

/** Collects numbers, lengths of bytes among them, and bytes. It copies them: a small Buffer is a view of a pool of many. */
function createWriter() {
  const numbers: number[] = [0] // The first one says how many there are.
  const parts: Uint8Array[] = []
  let length = 0
  return {
    add: (...values: readonly number[]) => void numbers.push(...values),
    addBytes(part: Uint8Array | undefined): void {
      numbers.push(part?.byteLength ?? NONE)
      if (part === undefined) return
      parts.push(part)
      length += part.byteLength
    },
    join(): ArrayBuffer {
      numbers[0] = numbers.length
      let offset = numbers.length * Float64Array.BYTES_PER_ELEMENT
      const { buffer } = Buffer.allocUnsafeSlow(offset + length)
      new Float64Array(buffer, 0, numbers.length).set(numbers)
      const bytes = new Uint8Array(buffer)
      for (const part of parts) {
        bytes.set(part, offset)
        offset += part.byteLength
      }
      return buffer
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
      if (length === NONE) return undefined
      offset += length
      return new Uint8Array(buffer, offset - length, length)
    },
    isOver: () => index >= count,
  }
}
