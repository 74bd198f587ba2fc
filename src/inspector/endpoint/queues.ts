/** The queues of the parts, all in one form; and their counts, sampled for the page and its plots. */

import type { Destination, DestinationDeadLetter, DestinationHealth } from '../../destination/api.ts'
import { readRetryState } from '../../destination/retry-state.ts'
import {
  type HandledMessage,
  type HistoryFilter,
  listHistory,
  type Replay,
  type ReplayOptions,
  replay,
  requireReplayOptions,
} from '../../inbox/history.ts'
import { type DeadLetterMessage, readDeadLetter } from '../../inbox/stored.ts'
import { HooklineError } from '../../message/error.ts'
import { isObject } from '../../message/json.ts'
import type { DeadLetter, DeadLetterPage, Queue } from '../../queues/api.ts'
import { checkHealth, type Health } from '../../queues/health.ts'
import type { Receiver } from '../../receiver/api.ts'
import type { Attempt } from '../../sender/api.ts'
import type { Clock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import { cut, nameOf, SHORT, showBody, userOf } from '../redact.ts'
import type { SeriesRecorder } from '../series.ts'
import type { ErrorLine, Letter, Part, QueueStatus } from '../wire.ts'
import type { Source } from './stream.ts'

export interface WatchedPart extends Pick<Part, 'name' | 'kind'> {
  /** Undefined for a part that never has one. */
  readonly queue?: PartQueue
  /** The same. */
  readonly history?: PartHistory
}

/** The messages that an inbox handled. */
export interface PartHistory {
  /** Whether the part keeps any. */
  exists(): Promise<boolean>
  list(filter: HistoryFilter): AsyncIterable<HandledMessage>
  replay(options: ReplayOptions): Promise<Replay>
}

export interface PartQueue {
  /** Whether the part has one: a receiver may be without an inbox. */
  exists(): Promise<boolean>
  /** Never rejects. */
  health(): Promise<Health & Partial<Pick<DestinationHealth, 'circuits'>>>
  deadLetters(page: DeadLetterPage): Promise<readonly PartLetter[]>
  redrive(ids: readonly string[]): Promise<number>
  drop(ids: readonly string[]): Promise<number>
}

type Details = Omit<Letter, 'id' | 'reason' | 'failedAt' | 'row'>

/** A dead letter, whose details are read when they are shown. */
export interface PartLetter {
  readonly id: string
  readonly reason: string
  /** What went wrong. */
  readonly error: string
  readonly failedAt: Date
  details(): Details
}

export function partOfReceiver(name: string, receiver: Receiver): WatchedPart {
  return {
    name,
    kind: 'receiver',
    queue: {
      exists: once(() => receiver.deadLetters({ limit: 1 })),
      health: () => receiver.health(),
      deadLetters: async (page) => (await receiver.deadLetters(page)).map(ofInbox),
      redrive: (ids) => receiver.redrive(ids),
      drop: (ids) => receiver.drop(ids),
    },
    history: {
      exists: once(() => receiver.history({ limit: 1 })[Symbol.asyncIterator]().next()),
      list: (filter) => receiver.history(filter),
      replay: (options) => receiver.replay(options),
    },
  }
}

/** Whether a part has what it is asked for. To ask without it is a mistake of the caller; an engine that fails is another error. */
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
  return {
    name,
    kind: 'destination',
    queue: {
      exists: async () => true,
      health: () => destination.health(),
      deadLetters: async (page) => (await destination.deadLetters(page)).map(ofDestination),
      redrive: (ids) => destination.redrive(ids),
      drop: (ids) => destination.drop(ids),
    },
  }
}

/** A queue by itself, of an inbox or of a destination: its jobs tell which. */
export function partOfQueue(name: string, queue: Queue, clock: Clock): WatchedPart {
  const { history, counts } = queue
  return {
    name,
    kind: 'queue',
    queue: {
      exists: async () => true,
      health: () => checkHealth(() => queue.counts(), false, clock),
      deadLetters: async (page) => (await queue.deadLetters(page)).map(letterOf),
      redrive: (ids) => queue.redrive(ids),
      drop: (ids) => queue.drop(ids),
    },
    ...(history !== undefined && {
      history: {
        exists: async () => true,
        list: (filter) => listHistory(history, filter),
        async replay(options) {
          requireReplayOptions(options)
          return replay({ queue: { counts, history }, clock }, options)
        },
      },
    }),
  }
}

function ofInbox({ id, reason, failedAt, bytes, attempts, error }: DeadLetterMessage): PartLetter {
  function details(): Details {
    const { code, message, causes } = error
    const stack = causes[0]?.stack
    return { attempts, error: { code, message, ...(stack !== undefined && { stack }) }, ...describeBytes(bytes) }
  }
  return { id, reason, error: error.message, failedAt, details }
}

function ofDestination({ id, reason, failedAt, attempts, message, error }: DestinationDeadLetter): PartLetter {
  const details = (): Details => detailsOf(Buffer.from(JSON.stringify(message) ?? ''), attempts)
  return { id, reason, error: error ?? codeOf(attempts), failedAt, details }
}

export function letterOf(letter: DeadLetter): PartLetter {
  const { id, reason, failedAt, body, retryState } = letter
  const stored = readDeadLetter(letter)
  if (stored.receivedAt !== undefined) return ofInbox(stored)
  const { attempts, error = codeOf(attempts) } = readRetryState(retryState, [])
  return { id, reason, error, failedAt, details: () => detailsOf(body, attempts) }
}

/** How the last attempt ended. */
function codeOf(attempts: readonly Attempt[]): string {
  const last = attempts.at(-1)
  return last === undefined ? '' : (last.error ?? `HTTP ${last.status}`)
}

function detailsOf(bytes: Uint8Array, attempts: readonly Attempt[]): Details {
  const last = attempts.at(-1)
  const error: ErrorLine | undefined = last && {
    code: codeOf(attempts),
    message: last.reason ?? last.body,
  }
  return { attempts: attempts.length, ...(error !== undefined && { error }), ...describeBytes(bytes) }
}

const decoder = new TextDecoder()

/** The beginning of a message, and what it says of itself, also when it is not valid. */
export function describeBytes(bytes: Uint8Array): Pick<Letter, 'type' | 'name' | 'user' | 'excerpt'> {
  const excerpt = showBody(bytes, bytes.length, false).text?.slice(0, 400) ?? ''
  let message: unknown
  try {
    message = JSON.parse(decoder.decode(bytes))
  } catch {}
  if (!isObject(message)) return { excerpt }
  const fields = {
    type: cut(message.type, SHORT),
    name: cut(nameOf(message), SHORT),
    user: cut(userOf(message), SHORT),
  }
  // Fields that are undefined are left out when it is sent.
  return { ...fields, excerpt } as Pick<Letter, 'type' | 'name' | 'user' | 'excerpt'>
}

export interface QueueSampler extends Source {
  /** Samples soon, and then again and again. */
  look(): void
  /** Whether a part has a queue, or a history. One that does not answer is one. */
  has(queue: Pick<PartQueue, 'exists'> | undefined): Promise<boolean>
  /** Whether any part works on something at this moment, or does not say. */
  isActive(): Promise<boolean>
  close(): void
}

interface SamplerOptions {
  readonly parts: readonly WatchedPart[]
  readonly series: SeriesRecorder
  /** Whether a page is open: it is sampled often then, else now and then. */
  readonly isOpen: () => boolean
  readonly onSample: () => void
  readonly report: (thrown: unknown) => void
  readonly clock: Clock
}

const OPEN_MS = 2_000
const CLOSED_MS = 10_000
/** Parts give up after a second, by a clock of theirs that may stand still. */
const TIMEOUT_MS = 1_500

type PartHealth = Awaited<ReturnType<PartQueue['health']>>

const UNAVAILABLE = { status: 'unavailable', waiting: 0, active: 0, deadLetters: 0, oldestDueAgeMs: 0 } as const

/** Creates a sampler that has not begun. */
export function createSampler({ parts, series, isOpen, onSample, report, clock }: SamplerOptions): QueueSampler {
  let statuses: readonly QueueStatus[] = []
  let version = 0
  let timer: unknown
  let dueAt = Number.POSITIVE_INFINITY
  let isSampling = false
  let isClosed = false
  let sampledAt = Number.NEGATIVE_INFINITY

  async function sample(): Promise<void> {
    isSampling = true
    sampledAt = clock.monotonic()
    try {
      const read = (await Promise.all(parts.map(readStatus))).filter((status) => status !== undefined)
      if (isClosed || read.length === 0) return
      statuses = read
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

  async function has(queue: Pick<PartQueue, 'exists'> | undefined): Promise<boolean> {
    return queue !== undefined && (await within(queue.exists(), TIMEOUT_MS, clock)) !== false
  }

  /** Undefined without a queue. */
  async function readHealth({ queue }: WatchedPart): Promise<PartHealth | typeof TIMED_OUT | undefined> {
    return (await has(queue)) ? within((queue as PartQueue).health(), TIMEOUT_MS, clock) : undefined
  }

  async function readStatus(part: WatchedPart): Promise<QueueStatus | undefined> {
    const health = await readHealth(part)
    if (health === undefined) return undefined
    return { part: part.name, ...(health === TIMED_OUT ? UNAVAILABLE : toStatus(health)) }
  }

  return {
    name: 'queues',
    get version() {
      return version
    },
    read: () => statuses,
    look() {
      if (!isSampling) schedule(sampledAt + OPEN_MS)
    },
    has,
    async isActive() {
      const all = await Promise.all(parts.map(readHealth))
      return all.some((health) => health !== undefined && (health === TIMED_OUT || health.active > 0))
    },
    close() {
      isClosed = true
      clock.clearTimeout(timer)
    },
  }
}

/** For JSON: times in milliseconds. Fields that are undefined are left out when it is sent. */
function toStatus(health: PartHealth): Omit<QueueStatus, 'part'> {
  const { status, reason, waiting, active, retrying, deadLetters, oldestDueAgeMs, asOf, circuits } = health
  const lines = circuits?.map(({ url, state, openSince, probeAt }) => {
    return { url, state, openSince: openSince?.getTime(), probeAt: probeAt?.getTime() }
  })
  const counts = { status, reason, waiting, active, retrying, deadLetters, oldestDueAgeMs }
  return { ...counts, asOf: asOf?.getTime(), circuits: lines } as Omit<QueueStatus, 'part'>
}
