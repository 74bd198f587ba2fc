/** The history of an inbox: messages that were handled, as their owner sees them, and replays, which give them to the handlers again. */

import { hash, randomUUID } from 'node:crypto'
import type { ReceivedMessage } from '../message/message.ts'
import {
  invalidOption,
  kindOf,
  requireBoolean,
  requireFunction,
  requireHandlerName,
  requireInteger,
  requireOptions,
  show,
} from '../options/checks.ts'
import type { HandledJob, Queue, QueueHistory, Replayed } from '../queues/api.ts'
import { readIds } from '../queues/arguments.ts'
import { MESSAGE_FILTERS, type MessageFilter, matchMessage, requireFilter } from '../queues/filter.ts'
import { letOthersRun, PAGE, type PageBounds, pagesOf, walk } from '../queues/walk.ts'
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
  /** Selects the messages with these ids. */
  readonly ids?: readonly string[]
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
  /** Selects the messages with these ids. */
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
  /** How many each named handler had handled. */
  readonly handlers: Readonly<Record<string, number>>
}

/** The messages that the first call of a replay selected. */
export interface BegunReplay extends Pick<MessageFilter, 'since' | 'until'> {
  readonly begunAt: Date
}

function readHandled(job: HandledJob): HandledMessage {
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

interface WalkOptions extends Pick<HistoryFilter, 'since' | 'after' | 'signal'> {
  readonly ids?: readonly string[] | undefined
}

/** To the end of the history, also with an `until`: what was replayed since is behind it. */
async function* walkHistory(
  history: QueueHistory,
  { since, after, signal, ids }: WalkOptions,
  limit: number = PAGE.limit,
): AsyncGenerator<HandledJob> {
  function list(bounds: PageBounds, last: HandledJob | undefined): Promise<readonly HandledJob[]> {
    signal?.throwIfAborted()
    const from = last?.cursor ?? after
    return history.list({ ...bounds, ...(since && { since }), ...(from !== undefined && { after: from }) })
  }
  for await (const job of walk(ids === undefined ? pagesOf(list, { ...PAGE, limit }) : find(history, ids))) {
    signal?.throwIfAborted()
    yield job
  }
}

/** The bodies of so many are 4 MB together, by the default limit of a receiver. */
const FOUND_AT_ONCE = 8

async function* find(history: QueueHistory, ids: readonly string[]): AsyncGenerator<readonly HandledJob[]> {
  for (let start = 0; start < ids.length; start += FOUND_AT_ONCE)
    yield history.find(ids.slice(start, start + FOUND_AT_ONCE))
}

/** @throws TypeError that names the filter. */
function requireHistoryFilter(filter: HistoryFilter): void {
  requireOptions('history', filter, [...MESSAGE_FILTERS, 'ids', 'handler', 'after', 'limit', 'signal'])
  requireFilter('history', filter)
  const { ids, handler, limit, signal } = filter
  requireIds('history: ids', ids)
  requireSignal('history: signal', signal)
  if (handler !== undefined) requireHandlerName('history: handler', handler)
  if (limit !== undefined) requireInteger('history: limit', limit, 1)
}

/** @throws TypeError (as a rejection) that names the filter. */
export async function* listHistory(history: QueueHistory, filter: HistoryFilter): AsyncGenerator<HandledMessage> {
  requireHistoryFilter(filter)
  const { after: _, limit: left = Number.POSITIVE_INFINITY, signal: __, ...others } = filter
  const { handler } = others
  const matches = matchMessage(filter)
  const isAll = Object.values(others).every((value) => value === undefined)
  let count = 0
  for await (const job of walkHistory(history, filter, isAll ? Math.min(left, PAGE.limit) : PAGE.limit)) {
    if (!isWithin(filter, job)) continue
    if (handler !== undefined && !readKept(job.kept).handlers?.includes(handler)) continue
    if (!matches(bodyOf(job.body))) continue
    await letOthersRun()
    yield readHandled(job)
    count += 1
    if (count === left) return
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
  /** Throws for the name of a handler that does not exist. Default: any name may. */
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
function requireReplayOptions(options: ReplayOptions): void {
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
  requireIds('replay: ids', ids)
  requireTexts('replay: handlers', handlers)
  if (maxPerSecond !== undefined) requireInteger('replay: maxPerSecond', maxPerSecond, 1)
  requireSignal('replay: signal', signal)
  if (onProgress !== undefined) requireFunction('replay: onProgress', onProgress)
}

function requireIds(option: string, ids: unknown): void {
  requireTexts(option, ids)
  if (ids !== undefined) readIds(ids as readonly string[])
}

function requireTexts(option: string, list: unknown): void {
  const isList = Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'string')
  if (list === undefined || isList) return
  throw invalidOption(option, 'must be a list of texts', kindOf(list), 'Pass one at least, or leave it out.')
}

function requireHandlerNames(names: readonly string[]): void {
  for (const name of names) requireHandlerName('replay: handlers', name)
}

function requireSignal(option: string, signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw invalidOption(option, 'must be an AbortSignal', kindOf(signal), 'Pass that of an AbortController.')
}

/** So many messages of a replay may be before a new one, and those that are being handled. */
const AT_ONCE = 100
const LATE_MS = 250
const LOOK_MS = 20

/** What a replay needs of a message, and counts: the message itself is let go. */
interface Meant extends Replayed {
  readonly type: string
  readonly event: string | undefined
  readonly handlers: readonly string[]
}

/** @throws TypeError (as a rejection) that names the option. */
export async function replay(context: ReplayContext, options: ReplayOptions): Promise<Replay> {
  requireReplayOptions(options)
  const { queue, clock, requireNames = requireHandlerNames, isFor = () => true } = context
  const { id = randomUUID(), maxPerSecond = Number.POSITIVE_INFINITY, dryRun = false, signal, onProgress } = options
  const { history } = queue
  if (options.handlers !== undefined) requireNames(options.handlers) // Before the id is used.
  const { filter, ids, handlers } = await readPlan(history, options, clock)
  if (handlers !== undefined) requireNames(handlers)
  const matches = matchMessage(options.userId === undefined ? filter : { ...filter, userId: options.userId })
  const types = new Map<string, number>()
  const events = new Map<string, number>()
  const handledBy = new Map<string, number>()
  let count = 0
  let nextAt = clock.monotonic()
  let given = { at: (await history.replay([])).at, monotonic: clock.monotonic() }

  /** Undefined for a job that is not to be replayed. */
  async function read(job: HandledJob): Promise<Meant | undefined> {
    const { handlers: done, replays: before } = readKept(job.kept)
    if (before?.includes(id) || !isWithin(filter, job) || !matches(bodyOf(job.body))) return undefined
    const { receivedAt, bytes } = readStored(job)
    if (receivedAt === undefined) {
      increment(types, 'unreadable')
      return undefined
    }
    await letOthersRun()
    if (handlers !== undefined && !isFor(job, handlers)) return undefined
    await letOthersRun()
    const message = tryParse(bytes)
    const only = handlers && { only: handlers }
    const state = { id, at: firstOf(job).getTime(), ...only, ...(done && { done }), ...(before && { before }) }
    return {
      id: job.id,
      cursor: job.cursor,
      retryState: writeRetryState({ ...INITIAL, replay: state }),
      type: message?.type ?? 'invalid',
      event: message?.type === 'track' ? message.event : undefined,
      handlers: done ?? [],
    }
  }

  function add(jobs: readonly Meant[]): void {
    for (const { type, event, handlers } of jobs) {
      increment(types, type)
      if (event !== undefined) increment(events, event)
      for (const name of handlers) if (name !== '') increment(handledBy, name)
    }
    count += jobs.length
  }

  async function give(jobs: readonly Meant[]): Promise<void> {
    if (dryRun) return add(jobs)
    await untilNoneIsLate()
    const again = jobs.map(({ id, cursor, retryState }) => ({ id, cursor, retryState }))
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
  let meant: Meant[] = []
  for await (const job of walkHistory(history, { ...filter, ids, ...(signal && { signal }) })) {
    const found = await read(job)
    if (found === undefined || meant.push(found) < size) continue
    await give(meant)
    meant = []
  }
  if (meant.length > 0) await give(meant)
  return {
    id,
    count,
    types: Object.fromEntries(types),
    events: Object.fromEntries(events),
    handlers: Object.fromEntries(handledBy),
  }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
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
  const plan = (id && (await readNote(history, id, dryRun ? undefined : begun))) || begun
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

/** Reads what was noted under an id. With a plan, notes that where nothing is. */
async function readNote(history: QueueHistory, id: string, plan?: Plan): Promise<Plan | undefined> {
  const noted = await history.note(`replay ${id}`, plan && JSON.stringify(plan))
  return noted === undefined ? undefined : JSON.parse(noted)
}

/** @throws TypeError (as a rejection) for what is no id. */
export async function findReplay(history: QueueHistory, id: string): Promise<BegunReplay | undefined> {
  requireReplayOptions({ id })
  const plan = await readNote(history, id)
  if (plan?.begunAt === undefined) return undefined
  const { begunAt, since, until } = plan
  return {
    begunAt: new Date(begunAt),
    ...(since !== undefined && { since: new Date(since) }),
    ...(until !== undefined && { until: new Date(until) }),
  }
}
