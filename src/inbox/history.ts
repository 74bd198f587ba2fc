/** The history of an inbox: messages that were handled, as their owner sees them, and replays, which give them to the handlers again. */

import { hash, randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ReceivedMessage } from '../message/message.ts'
import {
  invalidOption,
  kindOf,
  requireBoolean,
  requireFunction,
  requireInteger,
  requireOptions,
  requireText,
  show,
} from '../options/checks.ts'
import type { HandledJob, Queue, QueueHistory } from '../queues/api.ts'
import { readIds } from '../queues/arguments.ts'
import { MESSAGE_FILTERS, type MessageFilter, matchMessage, requireFilter } from '../queues/filter.ts'
import { type Clock, MAX_TIMER_MS } from '../time/clock.ts'
import { bodyOf } from './envelope.ts'
import { INITIAL, readKept, writeRetryState } from './retry-state.ts'
import { readStored, type StoredMessage, tryParse } from './stored.ts'

/** A message in the history: it was handled, and is kept. */
export interface HandledMessage extends StoredMessage {
  /** The message before any schema; undefined when the bytes are not a valid one. */
  readonly message: ReceivedMessage | undefined
  /** When it was handled, the first time. */
  readonly handledAt: Date
  /** The named handlers that handled it; the empty name is that of all without one. Empty without names. */
  readonly handlers: readonly string[]
  /** Whether no handler matched. */
  readonly ignored: boolean
  /** When the latest replay of it was handled; undefined without one. */
  readonly replayedAt: Date | undefined
  /** The id of that replay. */
  readonly replayId: string | undefined
  /** Its place in the history, for `after`. */
  readonly cursor: string
}

/** Which messages of the history to list. */
export interface HistoryFilter extends MessageFilter {
  /** Those that this named handler handled. */
  readonly handler?: string
  /** Those behind the one with this cursor. */
  readonly after?: string
  /** The most to list. Default: all. */
  readonly limit?: number
  /** Ends the list when it aborts: the next step rejects with its reason. */
  readonly signal?: AbortSignal
}

/** What to replay, and how. */
export interface ReplayOptions extends MessageFilter {
  /**
   * Names the replay: up to 100 of the characters `A-Za-z0-9._-`. A second call with the same id goes on where the first ended, and replays
   * nothing twice; what it leaves out of the filters is that of the first. Default: a new UUID, which cannot be continued.
   */
  readonly id?: string
  /** Those with these ids alone. */
  readonly ids?: readonly string[]
  /** Calls these named handlers alone, for the messages that they match. Default: all handlers that match. */
  readonly handlers?: readonly string[]
  /** The most messages a second. Default: as fast as they are handled. */
  readonly maxPerSecond?: number
  /** Counts, and changes nothing. Default false. */
  readonly dryRun?: boolean
  /** Stops the replay when it aborts; the call rejects with its reason. Another call with the same id goes on. */
  readonly signal?: AbortSignal
  /** Called with how many messages this call has given to the handlers so far, about each 100. */
  readonly onProgress?: (count: number) => void
}

/** What a replay did; of a dry run, what it would do. */
export interface Replay {
  readonly id: string
  /** How many messages this call gave to the handlers. */
  readonly count: number
  /**
   * Of these, how many there are of each type. `invalid` counts those that are no valid message; `unreadable`, which is not in `count`, those
   * that another release wrote: they are left alone.
   */
  readonly types: Readonly<Record<string, number>>
  /** Of the track messages, how many there are of each event. */
  readonly events: Readonly<Record<string, number>>
}

export function readHandled(job: HandledJob): HandledMessage {
  const { handlers = [], ignored = false, replays } = readKept(job.kept)
  const stored = readStored(job)
  const message = stored.receivedAt && tryParse(stored.bytes)
  const { handledAt: last, cursor } = job
  const replayedAt = replays && last
  return Object.assign(stored, {
    ...{ message, handledAt: firstOf(job), handlers, ignored },
    ...{ replayedAt, replayId: replays?.at(-1), cursor },
  })
}

/** When it was handled, the first time: a replay changes when it was the last time. */
function firstOf({ kept, handledAt }: HandledJob): Date {
  const { at } = readKept(kept)
  return at === undefined ? handledAt : new Date(at)
}

function isWithin({ since, until }: Pick<MessageFilter, 'since' | 'until'>, job: HandledJob): boolean {
  if (since === undefined && until === undefined) return true
  const first = firstOf(job)
  return (since === undefined || first >= since) && (until === undefined || first < until)
}

const PAGE = 500

/** To the end of the history, also with an `until`: what was replayed since is behind it. */
async function* pages(
  history: QueueHistory,
  { since, after, signal }: Pick<HistoryFilter, 'since' | 'signal'> & { readonly after?: string | undefined },
): AsyncGenerator<readonly HandledJob[]> {
  for (let last = after; ; ) {
    signal?.throwIfAborted()
    const page = await history.list({
      ...(since && { since }),
      ...(last !== undefined && { after: last }),
      limit: PAGE,
    })
    if (page.length === 0) return
    yield page
    last = page.at(-1)?.cursor
    await nextTurn() // To read many must not delay the rest of the process.
  }
}

/** @throws TypeError that names the filter. */
function requireHistoryFilter(filter: HistoryFilter): void {
  requireOptions('history', filter, [...MESSAGE_FILTERS, 'handler', 'after', 'limit', 'signal'])
  requireFilter('history', filter)
  const { handler, limit, signal } = filter
  requireSignal('history: signal', signal)
  if (handler !== undefined) requireText('history: handler', handler, 'crm')
  if (limit !== undefined) requireInteger('history: limit', limit, 1)
}

/** @throws TypeError (as a rejection) that names the filter. */
export async function* listHistory(history: QueueHistory, filter: HistoryFilter): AsyncGenerator<HandledMessage> {
  requireHistoryFilter(filter)
  const { handler, limit = Number.POSITIVE_INFINITY } = filter
  const matches = matchMessage(filter)
  let left = limit
  for await (const page of pages(history, filter)) {
    for (const job of page) {
      if (!isWithin(filter, job) || !matches(bodyOf(job.body))) continue
      if (handler !== undefined && !readKept(job.kept).handlers?.includes(handler)) continue
      yield readHandled(job)
      left -= 1
      if (left === 0) return
    }
  }
}

/** A replay, as it is noted under its id. The user is a digest: the notes hold no data of users. */
interface Plan {
  /** When the first call with the id was made. */
  readonly begunAt?: number
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly type?: string | undefined
  readonly event?: string | undefined
  readonly user?: string | undefined
  readonly ids?: readonly string[] | undefined
  readonly handlers?: readonly string[] | undefined
}

export interface ReplayContext {
  readonly queue: Pick<Queue, 'counts'> & { readonly history: QueueHistory }
  readonly clock: Clock
  /** Throws for the name of a handler that does not exist. Default: any may. */
  readonly requireNames?: (handlers: readonly string[]) => void
  /** Whether one of these handlers matches a message. Default: they do. */
  readonly isFor?: (job: HandledJob, handlers: readonly string[]) => boolean
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

/** @throws TypeError that names the option. */
export function requireReplayOptions(options: ReplayOptions): void {
  requireOptions('replay', options, REPLAY)
  requireFilter('replay', options)
  const { id, ids, handlers, maxPerSecond, dryRun, signal, onProgress } = options
  if (dryRun !== undefined) requireBoolean('replay: dryRun', dryRun)
  if (id !== undefined && !(typeof id === 'string' && ID.test(id))) {
    throw invalidOption(
      'replay: id',
      'must be 1 to 100 of the characters A-Za-z0-9._-',
      show(id),
      "Pass one such as 'fix-42'.",
    )
  }
  for (const [name, list] of Object.entries({ ids, handlers })) {
    if (
      list === undefined ||
      (Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'string'))
    )
      continue
    throw invalidOption(
      `replay: ${name}`,
      'must be a list of texts',
      kindOf(list),
      'Pass one at least, or leave it out.',
    )
  }
  if (ids !== undefined) readIds(ids)
  if (maxPerSecond !== undefined) requireInteger('replay: maxPerSecond', maxPerSecond, 1)
  requireSignal('replay: signal', signal)
  if (onProgress !== undefined) requireFunction('replay: onProgress', onProgress)
}

function requireSignal(option: string, signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw invalidOption(option, 'must be an AbortSignal', kindOf(signal), 'Pass that of an AbortController.')
}

/** So many messages of a replay may be before a new one, and those that are being handled. */
const AT_ONCE = 100
const LATE_MS = 250
const LOOK_MS = 20

export async function replay(context: ReplayContext, options: ReplayOptions): Promise<Replay> {
  const { queue, clock, requireNames = () => {}, isFor = () => true } = context
  const { id = randomUUID(), maxPerSecond = Number.POSITIVE_INFINITY, dryRun = false, signal, onProgress } = options
  const { history } = queue
  if (options.handlers !== undefined) requireNames(options.handlers) // Before the id is used.
  const { filter, ids, handlers } = await readPlan(history, options, clock)
  if (handlers !== undefined) requireNames(handlers)
  const matches = matchMessage(options.userId === undefined ? filter : { ...filter, userId: options.userId })
  const types = new Map<string, number>()
  const events = new Map<string, number>()
  let count = 0
  let nextAt = clock.monotonic()
  let given = { at: (await history.replay([])).at, monotonic: clock.monotonic() }

  function isMeant(job: HandledJob): boolean {
    if (readKept(job.kept).replays?.includes(id) || !isWithin(filter, job) || !matches(bodyOf(job.body))) return false
    if (readStored(job).receivedAt !== undefined) return handlers === undefined || isFor(job, handlers)
    increment(types, 'unreadable')
    return false
  }

  function add(jobs: readonly HandledJob[]): void {
    for (const { message } of jobs.map(readHandled)) {
      increment(types, message?.type ?? 'invalid')
      if (message?.type === 'track') increment(events, message.event)
    }
    count += jobs.length
  }

  async function give(jobs: readonly HandledJob[]): Promise<void> {
    await untilNoneIsLate()
    const again = jobs.map((job) => {
      const { handlers: done, replays: before } = readKept(job.kept)
      const only = handlers && { only: handlers }
      const state = { id, at: firstOf(job).getTime(), ...only, ...(done && { done }), ...(before && { before }) }
      return { id: job.id, cursor: job.cursor, retryState: writeRetryState({ ...INITIAL, replay: state }) }
    })
    const { ids: taken, at } = await history.replay(again)
    given = { at, monotonic: clock.monotonic() }
    nextAt = Math.max(nextAt, given.monotonic) + (taken.length / maxPerSecond) * 1_000
    add(jobs.filter((job) => taken.includes(job.id)))
    onProgress?.(count)
  }

  /** New messages go first: the next ones follow when the latest ones are taken, and no other is late. All by the time of the engine. */
  async function untilNoneIsLate(): Promise<void> {
    for (;;) {
      signal?.throwIfAborted()
      const waitMs = nextAt - clock.monotonic()
      if (waitMs > 0) {
        await wait(Math.min(waitMs, MAX_TIMER_MS))
        continue
      }
      const { oldestDueAt } = await queue.counts()
      if (oldestDueAt === undefined) return
      const dueAfterMs = oldestDueAt.getTime() - given.at.getTime()
      if (dueAfterMs > 0 && clock.monotonic() - given.monotonic - dueAfterMs < LATE_MS) return
      await wait(LOOK_MS)
    }
  }

  function wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clock.clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = clock.setTimeout(end, ms)
      signal?.addEventListener('abort', end)
    })
  }

  const size = Math.min(AT_ONCE, maxPerSecond)
  for await (const page of ids === undefined
    ? pages(history, { ...filter, ...(signal && { signal }) })
    : found(history, ids)) {
    signal?.throwIfAborted()
    const meant = page.filter(isMeant)
    if (dryRun) add(meant)
    else for (let start = 0; start < meant.length; start += size) await give(meant.slice(start, start + size))
  }
  return { id, count, types: Object.fromEntries(types), events: Object.fromEntries(events) }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

async function* found(history: QueueHistory, ids: readonly string[]): AsyncGenerator<readonly HandledJob[]> {
  for (let start = 0; start < ids.length; start += PAGE) yield history.find(ids.slice(start, start + PAGE))
}

interface ReplayPlan {
  readonly filter: MessageFilter
  readonly ids: readonly string[] | undefined
  readonly handlers: readonly string[] | undefined
}

/** Reads the plan of the first call with the id, or stores this one. A replay covers messages that were handled before that call. */
async function readPlan(history: QueueHistory, options: ReplayOptions, clock: Clock): Promise<ReplayPlan> {
  const { id, since, until, type, event, userId, ids, handlers, dryRun } = options
  const user = userId && hash('sha256', `${id} ${userId}`)
  const given: Plan = { since: since?.getTime(), until: until?.getTime(), type, event, user, ids, handlers }
  const begun: Plan = { ...given, begunAt: clock.now() }
  const noted = id && (await history.note(`replay ${id}`, dryRun ? undefined : JSON.stringify(begun)))
  const plan: Plan = noted === undefined ? begun : JSON.parse(noted)
  const others = Object.entries(given).filter(
    ([name, value]) => value !== undefined && JSON.stringify(plan[name as keyof Plan]) !== JSON.stringify(value),
  )
  if (others.length > 0 || (plan.user !== undefined && user === undefined)) {
    const names = others.map(([name]) => (name === 'user' ? 'userId' : name))
    const found = `${show(id)}, which has other \`${names[0] ?? 'userId'}\``
    const advice =
      'To go on with that one, pass its id without filters, and its `userId` if it has one. Else choose another id.'
    throw invalidOption('replay: id', 'must be new, or have the filters that it had', found, advice)
  }
  const { begunAt = clock.now() } = plan
  const filter = {
    until: new Date(Math.min(plan.until ?? Number.POSITIVE_INFINITY, begunAt + 1)),
    ...(plan.since !== undefined && { since: new Date(plan.since) }),
    ...(plan.type !== undefined && { type: plan.type as NonNullable<MessageFilter['type']> }),
    ...(plan.event !== undefined && { event: plan.event }),
  }
  return { filter, ids: plan.ids, handlers: plan.handlers }
}
