/** Lists the handled messages in the log of an inbox, and replays them: pushes copies of them to the queue. */

import { randomUUID } from 'node:crypto'
import {
  invalidOption,
  kindOf,
  requireBoolean,
  requireFunction,
  requireHandlerName,
  requireInteger,
  requireOptions,
  show,
} from '../kit/checks.ts'
import { type Clock, MAX_TIMER_MS } from '../kit/clock.ts'
import { waitUnlessAborted } from '../kit/timeout.ts'
import { idOfKey } from '../protocol/id.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { readIds } from '../store/arguments.ts'
import { MESSAGE_FILTERS, type MessageFilter, matchMessage, requireFilter } from '../store/filter.ts'
import type { Job, LogEntry, Queue, QueueLog, StoredJob } from '../store/queue-types.ts'
import { letOthersRun, PAGE, type PageBounds, pagesOf, walkLog } from '../store/walk.ts'
import { bodyOf, copyFor } from './envelope.ts'
import { readNote } from './inbox-state.ts'
import { readStored, type StoredMessage, tryParse } from './stored-message.ts'

/** A handled message that the history keeps. */
export interface HandledMessage extends StoredMessage {
  /** The message as it was before any schema was applied; undefined when the bytes are not a valid message. */
  readonly message: ReceivedMessage | undefined
  readonly handledAt: Date
  /**
   * The names of the handlers that handled the message; the empty name stands for all handlers without a name. The list
   * is empty when no handler has a name.
   */
  readonly handlers: readonly string[]
  /** Whether no handler matched the message. */
  readonly ignored: boolean
  /** The position of the message in the history. Pass it as `after` to list the messages that follow. */
  readonly cursor: string
}

/** Selects the messages of the history that match every given condition. */
export interface HistoryFilter extends MessageFilter {
  /** Selects the messages with these ids. */
  readonly ids?: readonly string[]
  /** Selects the messages that the handler with this name handled. */
  readonly handler?: string
  /** Selects the messages after the one with this cursor. */
  readonly after?: string
  /** The maximum number of messages to list. Default: all. */
  readonly limit?: number
  /** Ends the list when the signal aborts: the next iteration rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

/** The options of `replay`. Its conditions select the messages to replay. */
export interface ReplayOptions extends MessageFilter {
  /**
   * The id of the replay: 1 to 100 of the characters `A-Za-z0-9._-`. A second call with the same id continues where the first one ended: it
   * skips copies that the queue still has or that are in its dedupe window. Default: a new UUID, so the replay cannot be continued.
   */
  readonly id?: string
  /** Selects the messages that were handled before this time. Default: the time of this call. */
  readonly until?: Date
  /** Selects the messages with these ids. */
  readonly ids?: readonly string[]
  /** Calls only the handlers with these names, and replays only messages that one of them matches. Default: all handlers that match. */
  readonly handlers?: readonly string[]
  /** The maximum number of messages to replay per second. Default: as many as the handlers can handle. */
  readonly maxPerSecond?: number
  /** Counts the messages without replaying them. Default false. */
  readonly dryRun?: boolean
  /**
   * Stops the replay when the signal aborts; the call rejects with the reason of the signal. Another call with the same id continues the
   * replay.
   */
  readonly signal?: AbortSignal
  /** Called after about every 100 messages, with the number of messages that this call has replayed so far. */
  readonly onProgress?: (count: number) => void
}

/** The result of a replay. A dry run returns the result that a replay would have. */
export interface Replay {
  readonly id: string
  /**
   * How many messages this call replayed. On BullMQ and pg-boss, this includes messages that an earlier call with the same id had already
   * replayed.
   */
  readonly count: number
  /**
   * How many messages of each type `count` includes. `invalid` counts bodies that are not valid messages. `unreadable`
   * counts messages that cannot be read, because another release wrote them or their encryption key is missing.
   * Unreadable messages are not replayed, and `count` does not include them.
   */
  readonly types: Readonly<Record<string, number>>
  /** How many track messages of each event `count` includes. */
  readonly events: Readonly<Record<string, number>>
  /** How many of the messages in `count` each named handler had handled before the replay. */
  readonly handlers: Readonly<Record<string, number>>
}

function readHandled(entry: LogEntry): HandledMessage {
  const { handledAt, cursor, note } = entry
  const stored = readStored(entry)
  const isReadable = stored.receivedAt !== undefined
  const message = isReadable ? tryParse(stored.bytes) : undefined
  return Object.assign(stored, { message, handledAt, ...readNote(note), cursor }) // A spread of `stored` would lose its hidden `toJSON`.
}

/** @throws TypeError that names the wrong condition. */
function requireHistoryFilter(filter: HistoryFilter): void {
  requireOptions('history', filter, [...MESSAGE_FILTERS, 'ids', 'handler', 'after', 'limit', 'signal'])
  requireFilter('history', filter)
  const { ids, handler, limit, signal } = filter
  requireIds('history: ids', ids)
  requireSignal('history: signal', signal)
  if (handler !== undefined) requireHandlerName('history: handler', handler)
  if (limit !== undefined) requireInteger('history: limit', limit, 1)
}

/** @throws TypeError (as a rejection) that names the wrong condition. */
export async function* listHistory(log: QueueLog, filter: HistoryFilter): AsyncGenerator<HandledMessage> {
  requireHistoryFilter(filter)
  const { limit: left = Number.POSITIVE_INFINITY, since, until, after, signal, ...others } = filter
  const { handler } = others
  const isMeant = matchEntry(others)
  const isAll = Object.values(others).every((value) => value === undefined) // If so, no entry is skipped, so at most `limit` are read.
  const bounds = { ...PAGE, limit: isAll ? Math.min(left, PAGE.limit) : PAGE.limit }
  let count = 0
  for await (const entry of walkLog(log, { since, until, after }, bounds)) {
    signal?.throwIfAborted()
    if (handler !== undefined && !readNote(entry.note).handlers.includes(handler)) continue
    if (!isMeant(entry)) continue
    await letOthersRun()
    yield readHandled(entry)
    count += 1
    if (count === left) return
  }
}

/** Returns a function that says whether an entry meets every condition except the times, which the engine checks. */
function matchEntry({ ids, ...filter }: MessageFilter & Pick<HistoryFilter, 'ids'>): (entry: LogEntry) => boolean {
  const meant = ids && new Set(ids)
  const matches = matchMessage(filter)
  return ({ id, body }) => (meant === undefined || meant.has(id)) && matches(bodyOf(body))
}

export interface ReplayContext {
  readonly queue: Pick<Queue, 'counts' | 'push'>
  readonly log: QueueLog
  readonly clock: Clock
  /** Throws for the name of a handler that does not exist. Default: throws only for a string that cannot be the name of a handler. */
  readonly requireNames?: (handlers: readonly string[]) => void
  /** Returns whether one of these handlers matches a message. Default: returns true for every message. */
  readonly isFor?: (job: StoredJob, handlers: readonly string[]) => boolean
}

const REPLAY = [
  ...MESSAGE_FILTERS,
  'id',
  'ids',
  'handlers',
  'maxPerSecond',
  'dryRun',
  'signal',
  'onProgress',
] as const satisfies (keyof ReplayOptions)[]
const ID = /^[\w.-]{1,100}$/

/** @throws TypeError that names the invalid option. */
function requireReplayOptions(options: ReplayOptions): void {
  requireOptions('replay', options, REPLAY)
  requireFilter('replay', options)
  const { id, ids, handlers, maxPerSecond, dryRun, signal, onProgress } = options
  if (dryRun !== undefined) requireBoolean('replay: dryRun', dryRun)
  if (id !== undefined && !(typeof id === 'string' && ID.test(id))) {
    const rule = 'must consist of 1 to 100 of the characters A-Za-z0-9._-'
    throw invalidOption('replay: id', rule, show(id), "Pass, for example, 'fix-42'.")
  }
  requireIds('replay: ids', ids)
  requireTexts('replay: handlers', handlers)
  if (maxPerSecond !== undefined) requireInteger('replay: maxPerSecond', maxPerSecond, 1)
  requireSignal('replay: signal', signal)
  if (onProgress !== undefined) requireFunction('replay: onProgress', onProgress)
}

function requireIds(option: string, ids: unknown): void {
  requireTexts(option, ids)
  if (ids !== undefined) readIds(ids)
}

function requireTexts(option: string, list: unknown): asserts list is readonly string[] | undefined {
  const isList = Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'string')
  if (list === undefined || isList) return
  const found = Array.isArray(list) && list.length > 0 ? 'a list with a value that is not a string' : kindOf(list)
  const advice = 'Pass at least one string, or omit the option.'
  throw invalidOption(option, 'must be a non-empty list of strings', found, advice)
}

function requireHandlerNames(names: readonly string[]): void {
  for (const name of names) requireHandlerName('replay: handlers', name)
}

function requireSignal(option: string, signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw invalidOption(option, 'must be an AbortSignal', kindOf(signal), 'Pass the signal of an AbortController.')
}

/** The maximum number of copies that a replay pushes before it waits. */
const AT_ONCE = 100
/**
 * How far the number of waiting messages may rise above its lowest value so far. A copy that waits for its group never
 * counts as late, so without this limit, such copies would fill the queue.
 */
const MAX_MORE = 1_000
const LATE_MS = 250
const POLL_MS = 20

/** The copy of a message, as a job, and the properties by which a replay counts it. */
interface Copy {
  readonly job: Job
  readonly type: string
  readonly event: string | undefined
  readonly handlers: readonly string[]
}

/**
 * Pushes copies of messages. The id of a copy is derived from the ids of the replay and the message, so a queue skips copies that it
 * already knows.
 *
 * @throws TypeError (as a rejection) that names the invalid option.
 */
export async function replay(context: ReplayContext, options: ReplayOptions): Promise<Replay> {
  return new ReplayRun(context, options).replay()
}

class ReplayRun {
  readonly #context: ReplayContext
  readonly #options: ReplayOptions
  readonly #id: string
  /**
   * Only messages handled before this time are replayed. The default is the next millisecond, to include those handled in the current one.
   */
  readonly #until: Date
  readonly #isMeant: (entry: LogEntry) => boolean
  /** The maximum number of copies to push between two waits. */
  readonly #limit: number
  readonly #types = new Map<string, number>()
  readonly #events = new Map<string, number>()
  readonly #handledBy = new Map<string, number>()
  #count = 0
  /** When `maxPerSecond` allows the next push, on the monotonic clock. */
  #nextPushAt: number
  /** How many copies have been pushed since the last wait. It starts at the limit, so that the replay waits before its first push. */
  #pushedSinceWait: number
  /**
   * A time, by the clock of the engine, at which the latest copies were already in the queue; undefined after a push until the next count.
   */
  #pushedAt: number | undefined
  /** The smallest number of messages that waited for their first attempt, in all counts so far. */
  #fewestWaiting = Number.POSITIVE_INFINITY

  constructor(context: ReplayContext, options: ReplayOptions) {
    requireReplayOptions(options)
    const { clock, requireNames = requireHandlerNames } = context
    const { id = randomUUID(), until = new Date(clock.now() + 1), handlers, dryRun, maxPerSecond } = options
    if (handlers !== undefined) requireNames(handlers)
    this.#context = context
    this.#options = options
    this.#id = id
    this.#until = until
    this.#isMeant = matchEntry(options)
    this.#limit = dryRun ? PAGE.limit : Math.min(AT_ONCE, maxPerSecond ?? AT_ONCE)
    this.#nextPushAt = clock.monotonic()
    this.#pushedSinceWait = this.#limit
  }

  async replay(): Promise<Replay> {
    const { signal, dryRun, onProgress } = this.#options
    const listNext = (bounds: PageBounds, last: LogEntry | undefined) => this.#listNext(bounds, last)
    signal?.throwIfAborted()
    for await (const page of pagesOf(listNext, { ...PAGE, limit: this.#limit })) {
      const copies: Copy[] = []
      for (const entry of page) {
        await letOthersRun()
        signal?.throwIfAborted()
        const copy = await this.#copyOf(entry)
        if (copy !== undefined) copies.push(copy)
      }
      if (copies.length === 0) continue
      this.#countCopies(dryRun ? copies : await this.#push(copies))
      if (!dryRun) onProgress?.(this.#count)
    }
    return {
      id: this.#id,
      count: this.#count,
      types: Object.fromEntries(this.#types),
      events: Object.fromEntries(this.#events),
      handlers: Object.fromEntries(this.#handledBy),
    }
  }

  /** Waits if necessary, then lists the next page. With the opposite order, messages forgotten during the wait would be pushed. */
  async #listNext(bounds: PageBounds, last: LogEntry | undefined): Promise<readonly LogEntry[]> {
    const { log } = this.#context
    const rest = { since: this.#options.since, until: this.#until, after: last?.cursor }
    if (!this.#options.dryRun && this.#pushedSinceWait >= this.#limit) {
      const [next] = await log.list({ ...rest, limit: 1, maxBytes: 1 }) // Reads just enough to know whether any entry is left.
      if (next === undefined) return []
      await this.#waitUntilNoneIsLate()
    }
    return log.list({ ...rest, ...bounds })
  }

  /**
   * Creates the copy of an entry; returns undefined for an entry that is not to be replayed. Gives other work a turn
   * before each step that parses the message again.
   */
  async #copyOf(entry: LogEntry): Promise<Copy | undefined> {
    const { isFor = () => true } = this.#context
    const { handlers } = this.#options
    if (!this.#isMeant(entry)) return undefined
    const { receivedAt, bytes } = readStored(entry)
    if (receivedAt === undefined) {
      increment(this.#types, 'unreadable')
      return undefined
    }
    await letOthersRun()
    if (handlers !== undefined && !isFor(entry, handlers)) return undefined
    await letOthersRun()
    const message = tryParse(bytes)
    const copy = copyFor({ id: this.#id, at: entry.handledAt.getTime(), only: handlers }, entry.body)
    return {
      job: { id: idOfKey(JSON.stringify(['replay', this.#id, entry.id])), ...copy },
      type: message?.type ?? 'invalid',
      event: message?.type === 'track' ? message.event : undefined,
      handlers: readNote(entry.note).handlers,
    }
  }

  /** Pushes copies. Returns those that the queue did not already know. */
  async #push(copies: readonly Copy[]): Promise<readonly Copy[]> {
    const { queue, clock } = this.#context
    const { maxPerSecond = Number.POSITIVE_INFINITY } = this.#options
    const known = new Set(await queue.push(copies.map(({ job }) => job)))
    const added = copies.filter(({ job }) => !known.has(job.id))
    this.#pushedSinceWait += added.length
    this.#pushedAt = undefined
    this.#nextPushAt = Math.max(this.#nextPushAt, clock.monotonic()) + (added.length / maxPerSecond) * 1_000
    return added
  }

  #countCopies(copies: readonly Copy[]): void {
    for (const { type, event, handlers } of copies) {
      increment(this.#types, type)
      if (event !== undefined) increment(this.#events, event)
      for (const name of handlers) if (name !== '') increment(this.#handledBy, name)
    }
    this.#count += copies.length
  }

  /** Lets new messages go first: waits until the latest copies have been claimed and no message is late. */
  async #waitUntilNoneIsLate(): Promise<void> {
    const { queue, clock } = this.#context
    const { signal } = this.#options
    for (;;) {
      signal?.throwIfAborted()
      const waitMs = this.#nextPushAt - clock.monotonic()
      if (waitMs > 0) {
        await waitUnlessAborted(Math.min(waitMs, MAX_TIMER_MS), clock, signal)
        continue
      }
      const { waiting, retrying = waiting, oldestDueAt, asOf } = await queue.counts()
      this.#pushedAt ??= asOf.getTime()
      this.#fewestWaiting = Math.min(this.#fewestWaiting, waiting - retrying)
      const dueAt = oldestDueAt?.getTime()
      const isNoneLate = dueAt === undefined || (dueAt > this.#pushedAt && asOf.getTime() - dueAt < LATE_MS)
      if (isNoneLate && waiting - retrying < this.#fewestWaiting + MAX_MORE) break
      await waitUnlessAborted(POLL_MS, clock, signal)
    }
    this.#pushedSinceWait = 0
  }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}
