/** Gives the queues of all parts one interface, and samples their counts for the page and its plots. */

import {
  type Clock,
  type DeadLetterMessage,
  type DeadLetterPage,
  type HandledMessage,
  type Health,
  type HistoryFilter,
  HooklineError,
  type Receiver,
  type Replay,
  type ReplayOptions,
} from 'hookline'
import { type InspectQueueOptions, inspectQueue, type Queue } from 'hookline/queues'
import type { Attempt, Destination, DestinationDeadLetter, DestinationHealth, UrlHealth } from 'hookline/sender'
import { TIMED_OUT, walkLetters, withTimeout } from '../../../../src/internals.ts'
import { isObject, tryParse } from '../../../json.ts'
import { cut, nameOf, SHORT, showBody, userOf } from '../redact.ts'
import type { SeriesRecorder } from '../series.ts'
import type { ErrorLine, Letter, Part, QueueStatus, UrlLine } from '../wire.ts'

export interface WatchedPart extends Pick<Part, 'name' | 'kind'> {
  /** The queue; undefined for a part that never has a queue. */
  readonly queue?: PartQueue
  /** The history; undefined for a part that never has a history. */
  readonly history?: PartHistory
}

/** The history of an inbox. */
export interface PartHistory {
  /** Returns whether the part keeps a history. */
  exists(): Promise<boolean>
  list(filter: HistoryFilter): AsyncIterable<HandledMessage>
  replay(options: ReplayOptions): Promise<Replay>
}

export interface PartQueue {
  /** Returns whether the part has a queue. A receiver without an inbox has no queue. */
  exists(): Promise<boolean>
  /** Returns the health of the queue. Never rejects. */
  health(): Promise<Health & Partial<Pick<DestinationHealth, 'urls'>> & Pick<QueueStatus, 'isOff'>>
  letters(from: Pick<DeadLetterPage, 'after' | 'newestFirst'>): AsyncIterable<PartLetter>
  redrive(ids: readonly string[]): Promise<number>
  drop(ids: readonly string[]): Promise<number>
}

type Details = Omit<Letter, 'id' | 'reason' | 'failedAt' | 'row'>

/** A dead letter. The details are read only when the page shows them. */
export interface PartLetter {
  readonly id: string
  readonly reason: string
  /** The error with which the message failed. */
  readonly error: string
  readonly failedAt: Date
  details(): Details
}

export function partOfReceiver(name: string, receiver: Receiver): WatchedPart {
  const { health, deadLetters, redrive, drop, history: list, replay } = receiver
  const exists = once(() => deadLetters({ limit: 1 }))
  const letters: PartQueue['letters'] = (from) => mapped(walkLetters(deadLetters, from), ofInbox)
  const history = { exists: once(() => list({ limit: 1 })[Symbol.asyncIterator]().next()), list, replay }
  return { name, kind: 'receiver', queue: { exists, health, letters, redrive, drop }, history }
}

/** Asks a part only once whether it has a queue or history. The part has one if it responds, even with a HooklineError. */
function once(ask: () => Promise<unknown>): () => Promise<boolean> {
  let found: Promise<boolean> | undefined
  return () => {
    found ??= ask().then(
      () => true,
      (error: unknown) => error instanceof HooklineError,
    )
    return found
  }
}

export function partOfDestination(name: string, destination: Destination): WatchedPart {
  const { deadLetters, redrive, drop } = destination
  const health = async () => ({ ...(await destination.health()), isOff: !destination.enabled })
  const letters: PartQueue['letters'] = (from) => mapped(walkLetters(deadLetters, from), ofDestination)
  return { name, kind: 'destination', queue: { exists: async () => true, health, letters, redrive, drop } }
}

/** Returns the part for a queue of an inbox or a destination. Each dead letter shows which of the two it is from. */
export function partOfQueue(name: string, queue: Queue, clock: Clock, how: InspectQueueOptions = {}): WatchedPart {
  const { health, deadLetters, redrive, drop, history: list, replay } = inspectQueue(queue, { clock, ...how })
  const letters: PartQueue['letters'] = (from) =>
    mapped(deadLetters(from), (letter) => (letter.use === 'destination' ? ofDestination(letter) : ofInbox(letter)))
  const history = { exists: async () => queue.log !== undefined, list, replay }
  return { name, kind: 'queue', queue: { exists: async () => true, health, letters, redrive, drop }, history }
}

async function* mapped<From, To>(items: AsyncIterable<From>, to: (item: From) => To): AsyncGenerator<To> {
  for await (const item of items) yield to(item)
}

function ofInbox({ id, reason, failedAt, bytes, attempts, error, replay }: DeadLetterMessage): PartLetter {
  function details(): Details {
    const { code, message, causes } = error
    const stack = causes[0]?.stack
    const shown = { code, message, ...(stack !== undefined && { stack }) }
    return { attempts, error: shown, ...(replay && { replayId: replay.id }), ...describeBytes(bytes) }
  }
  return { id, reason, error: error.message, failedAt, details }
}

/** A dead letter of a destination. Its attempts may lack their URLs, which `inspectQueue` does not return. */
type SentLetter = Omit<DestinationDeadLetter, 'attempts'> & { readonly attempts: readonly Omit<Attempt, 'url'>[] }

function ofDestination(letter: SentLetter): PartLetter {
  const { id, reason, failedAt, attempts, message, error, stack } = letter
  const thrown = error === undefined ? undefined : { code: reason, message: error, ...(stack && { stack }) }
  const details = (): Details => detailsOf(Buffer.from(JSON.stringify(message) ?? ''), attempts, thrown)
  return { id, reason, error: error ?? codeOf(attempts), failedAt, details }
}

/** Returns the error code or the HTTP status of the last attempt. */
function codeOf(attempts: SentLetter['attempts']): string {
  const last = attempts.at(-1)
  return last === undefined ? '' : (last.error ?? `HTTP ${last.status}`)
}

/** @param thrown The error that a `filter` or `transform` threw. */
function detailsOf(bytes: Uint8Array, attempts: SentLetter['attempts'], thrown: ErrorLine | undefined): Details {
  const last = attempts.at(-1)
  const error = thrown ?? (last && { code: codeOf(attempts), message: last.reason ?? last.body })
  return { attempts: attempts.length, ...(error !== undefined && { error }), ...describeBytes(bytes) }
}

/** Returns the beginning of a message and the fields that identify it. The message need not be valid. */
export function describeBytes(bytes: Uint8Array): Pick<Letter, 'type' | 'name' | 'user' | 'excerpt'> {
  const excerpt = showBody(bytes, bytes.length, false).text?.slice(0, 400) ?? ''
  const message = tryParse(bytes)
  if (!isObject(message)) return { excerpt }
  const fields = {
    type: cut(message.type, SHORT),
    name: cut(nameOf(message), SHORT),
    user: cut(userOf(message), SHORT),
  }
  // The cast allows undefined fields, because JSON omits them.
  return { ...fields, excerpt } as Pick<Letter, 'type' | 'name' | 'user' | 'excerpt'>
}

interface SamplerOptions {
  readonly parts: readonly WatchedPart[]
  readonly series: SeriesRecorder
  /** Returns whether a page is open. While a page is open, the sampler samples more often. */
  readonly isOpen: () => boolean
  readonly onSample: () => void
  readonly report: (thrown: unknown) => void
  readonly clock: Clock
}

const OPEN_MS = 2_000
const CLOSED_MS = 10_000
/** The timeout of a call to a part, in milliseconds. A part has a timeout of its own, but the clock of the part may stand still. */
const TIMEOUT_MS = 1_500

type PartHealth = Awaited<ReturnType<PartQueue['health']>>

const UNAVAILABLE = { status: 'unavailable', waiting: 0, active: 0, deadLetters: 0, oldestDueAgeMs: 0 } as const

/** Creates a sampler. The first call to `look` starts the sampling. */
export function createSampler({ parts, series, isOpen, onSample, report, clock }: SamplerOptions) {
  let statuses: readonly QueueStatus[] = []
  let version = 0
  let timer: unknown
  let dueAt = Number.POSITIVE_INFINITY
  let [isSampling, isClosed] = [false, false]
  let sampledAt = Number.NEGATIVE_INFINITY

  async function sample(): Promise<void> {
    isSampling = true
    sampledAt = clock.monotonic()
    try {
      const found = (await Promise.all(parts.map(readStatus))).filter((status) => status !== undefined)
      if (isClosed || found.length === 0) return
      statuses = found
      version += 1
      for (const { part, status, waiting, active } of statuses) {
        if (status !== 'unavailable') series.depth(part, waiting + active)
      }
      onSample()
    } catch (thrown) {
      report(thrown)
    } finally {
      isSampling = false
      dueAt = Number.POSITIVE_INFINITY
      schedule(clock.monotonic() + (isOpen() ? OPEN_MS : CLOSED_MS))
    }
  }

  function schedule(at: number): void {
    if (isClosed || at >= dueAt) return
    dueAt = at
    clock.clearTimeout(timer)
    timer = clock.setTimeout(() => void sample(), Math.max(0, at - clock.monotonic()))
  }

  /** Returns whether a part has a queue or a history. A queue or history that does not respond counts as present. */
  async function has(queue: Pick<PartQueue, 'exists'> | undefined): Promise<boolean> {
    return queue !== undefined && (await withTimeout(queue.exists(), TIMEOUT_MS, clock)) !== false
  }

  /** Reads the status of a part; undefined if the part has no queue. */
  async function readStatus({ name, queue }: WatchedPart): Promise<QueueStatus | undefined> {
    if (queue === undefined || !(await has(queue))) return undefined
    const health = await withTimeout(queue.health(), TIMEOUT_MS, clock)
    return { part: name, ...(health === TIMED_OUT ? UNAVAILABLE : toStatus(health)) }
  }

  return {
    name: 'queues' as const,
    get version(): number {
      return version
    },
    snapshot: (): readonly QueueStatus[] => statuses,
    /** Schedules the next sample for 2 seconds after the last one, or sooner. Each sample schedules the next. */
    look(): void {
      if (!isSampling) schedule(sampledAt + OPEN_MS)
    },
    has,
    close(): void {
      isClosed = true
      clock.clearTimeout(timer)
    },
  }
}

/** Converts health to a queue status, with times in milliseconds. Undefined fields are allowed, because JSON omits them. */
function toStatus(health: PartHealth): Omit<QueueStatus, 'part'> {
  const {
    status,
    reason,
    waiting,
    active,
    retrying,
    deadLetters,
    oldestDueAgeMs,
    asOf,
    urls,
    isOff,
    paused: isPaused,
  } = health
  const lines = urls?.map(({ openSince, probeAt, lastFailure, ...url }) => {
    return { ...url, openSince: openSince?.getTime(), probeAt: probeAt?.getTime(), lastFailure: toFailure(lastFailure) }
  })
  const counts = { status, reason, waiting, active, retrying, deadLetters, oldestDueAgeMs }
  const flags = { ...(isOff && { isOff }), ...(isPaused && { isPaused }) }
  return { ...counts, asOf: asOf?.getTime(), urls: lines, ...flags } as Omit<QueueStatus, 'part'>
}

function toFailure(failure: UrlHealth['lastFailure']): UrlLine['lastFailure'] {
  if (failure === undefined) return undefined
  const { at, status, error, reason = error } = failure
  return { at: at.getTime(), why: status === undefined ? `${reason}` : `status ${status}` }
}
