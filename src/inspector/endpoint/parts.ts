/** The parts as the endpoint uses them: a receiver, a destination, a collector or a queue by itself, all in one form. */

import type { Destination, DestinationDeadLetter, DestinationHealth } from '../../destination/api.ts'
import { readRetryState } from '../../destination/retry-state.ts'
import { type DeadLetterMessage, readDeadLetter } from '../../inbox/stored.ts'
import { HooklineError } from '../../message/error.ts'
import { isObject } from '../../message/json.ts'
import type { Message } from '../../message/message.ts'
import { checkHealth, type Health } from '../../queues/health.ts'
import type { DeadLetter, DeadLetterPage, Queue } from '../../queues/queue.ts'
import type { Receiver } from '../../receiver/api.ts'
import type { Attempt } from '../../sender/api.ts'
import type { Clock } from '../../time/clock.ts'
import { cut, nameOf, SHORT, userOf } from '../lines.ts'
import type { ErrorLine, Letter, Part } from '../wire.ts'

/** A part that is watched. */
export interface WatchedPart extends Pick<Part, 'name' | 'kind'> {
  /** Undefined for a part that never has one. */
  readonly queue?: PartQueue
}

/** The queue of a part. */
export interface PartQueue {
  /** Whether the part has one: a receiver may be without an inbox. */
  exists(): Promise<boolean>
  /** Never rejects. */
  health(): Promise<Health & Partial<Pick<DestinationHealth, 'circuits'>>>
  deadLetters(page: DeadLetterPage): Promise<readonly PartLetter[]>
  redrive(ids: readonly string[]): Promise<number>
  drop(ids: readonly string[]): Promise<number>
}

/** A dead letter, whose details are read when they are shown. */
export interface PartLetter {
  readonly id: string
  readonly reason: string
  readonly failedAt: Date
  details(): Omit<Letter, 'id' | 'reason' | 'failedAt' | 'row'>
}

/** A receiver. */
export function partOfReceiver(name: string, receiver: Receiver): WatchedPart {
  let found: Promise<boolean> | undefined
  const queue: PartQueue = {
    exists: () => {
      // Without an inbox this is a mistake of the caller; a queue that does not answer is another error.
      found ??= receiver.deadLetters({ limit: 1 }).then(
        () => true,
        (error: unknown) => error instanceof HooklineError,
      )
      return found
    },
    health: () => receiver.health(),
    deadLetters: async (page) => (await receiver.deadLetters(page)).map(ofInbox),
    redrive: (ids) => receiver.redrive(ids),
    drop: (ids) => receiver.drop(ids),
  }
  return { name, kind: 'receiver', queue }
}

/** A destination. */
export function partOfDestination(name: string, destination: Destination): WatchedPart {
  const queue: PartQueue = {
    exists: async () => true,
    health: () => destination.health(),
    deadLetters: async (page) => (await destination.deadLetters(page)).map(ofDestination),
    redrive: (ids) => destination.redrive(ids),
    drop: (ids) => destination.drop(ids),
  }
  return { name, kind: 'destination', queue }
}

/** A queue by itself, of an inbox or of a destination: its jobs tell which. */
export function partOfQueue(name: string, queue: Queue, clock: Clock): WatchedPart {
  const access: PartQueue = {
    exists: async () => true,
    health: () => checkHealth(() => queue.counts(), false, clock),
    deadLetters: async (page) => (await queue.deadLetters(page)).map(ofQueue),
    redrive: (ids) => queue.redrive(ids),
    drop: (ids) => queue.drop(ids),
  }
  return { name, kind: 'queue', queue: access }
}

function ofInbox(letter: DeadLetterMessage): PartLetter {
  const { id, reason, failedAt } = letter
  return {
    id,
    reason,
    failedAt,
    details() {
      const { bytes, attempts, error } = letter
      const { code, message, causes } = error
      const [cause] = causes
      const text = cause === undefined ? message : `${message} ${cause.name}: ${cause.message}`
      const stack = cause?.stack
      const line: ErrorLine = { code, message: text, ...(stack !== undefined && { stack }) }
      return { attempts, error: line, ...identify(bytes), excerpt: excerptOf(bytes) }
    },
  }
}

function ofDestination({ id, reason, failedAt, attempts, message }: DestinationDeadLetter): PartLetter {
  const details = (): ReturnType<PartLetter['details']> =>
    detailsOf(Buffer.from(JSON.stringify(message) ?? ''), attempts)
  return { id, reason, failedAt, details }
}

function ofQueue(letter: DeadLetter): PartLetter {
  const { id, reason, failedAt, body, retryState } = letter
  const stored = readDeadLetter(letter)
  if (stored.receivedAt !== undefined) return ofInbox(stored)
  return { id, reason, failedAt, details: () => detailsOf(body, readRetryState(retryState, []).attempts) }
}

function detailsOf(bytes: Uint8Array, attempts: readonly Attempt[]): ReturnType<PartLetter['details']> {
  const last = attempts.at(-1)
  return {
    attempts: attempts.length,
    ...identify(bytes),
    ...(last !== undefined && {
      error: { code: last.error ?? `HTTP ${last.status}`, message: last.reason ?? last.body },
    }),
    excerpt: excerptOf(bytes),
  }
}

/** What a message says of itself, also one that is not valid. */
function identify(bytes: Uint8Array): Pick<Letter, 'type' | 'name' | 'user'> {
  let message: unknown
  try {
    message = JSON.parse(decoder.decode(bytes))
  } catch {
    return {}
  }
  if (!isObject(message)) return {}
  const described = message as unknown as Message
  const type = cut(message.type, SHORT)
  const name = cut(nameOf(described), SHORT)
  const user = cut(userOf(described), SHORT)
  return {
    ...(type !== undefined && { type }),
    ...(name !== undefined && { name }),
    ...(user !== undefined && { user }),
  }
}

const decoder = new TextDecoder()

function excerptOf(bytes: Uint8Array): string {
  return decoder.decode(bytes.subarray(0, 400))
}
