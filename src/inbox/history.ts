/** The history of an inbox: messages that were handled, as their owner sees them, and replays, which give them to the handlers again. */

import { hash, randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import { invalidOption, kindOf, requireInteger, requireOptions, requireText, show } from '../options/checks.ts'
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
  readonly message: Message | undefined
  /** When it was handled, the last time. */
  readonly handledAt: Date
  /** The named handlers that handled it; the empty name is that of all without one. Empty without names. */
  readonly handlers: readonly string[]
  /** Whether no handler matched. */
  readonly ignored: boolean
  /** The id of the latest replay that gave it to the handlers; undefined when none did. */
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
}

/** What to replay, and how. */
export interface ReplayOptions extends MessageFilter {
  /**
   * Names the replay: up to 100 of the characters `A-Za-z0-9._-`. A second call with the same id goes on where the first ended, and replays
   * nothing twice; what it leaves out of the filters is that of the first. Default: a new UUID.
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
}

/** What a replay did; of a dry run, what it would do. */
export interface Replay {
  readonly id: string
  /** How many messages this call gave to the handlers. */
  readonly count: number
  /** Of these, how many there are of each type; `invalid` counts those that are no valid message. */
  readonly types: Readonly<Record<string, number>>
  /** Of the track messages, how many there are of each event. */
  readonly events: Readonly<Record<string, number>>
}

function readHandled(job: HandledJob): HandledMessage {
  const { handlers = [], ignored = false, replay } = readKept(job.kept)
  const stored = readStored(job)
  const message = stored.receivedAt && tryParse(stored.bytes)
  const { handledAt, cursor } = job
  return Object.assign(stored, { message, handledAt, handlers, ignored, replayId: replay, cursor })
}

const PAGE = 500

type Page = Pick<MessageFilter, 'since' | 'until'> & { readonly after?: string | undefined }

async function* pages(history: QueueHistory, { since, until, after }: Page): AsyncGenerator<readonly HandledJob[]> {
  const times = { ...(since && { since }), ...(until && { until }) }
  for (let last = after; ; ) {
    const page = await history.list({ ...times, ...(last !== undefined && { after: last }), limit: PAGE })
    yield page
    last = page.at(-1)?.cursor
    if (page.length < PAGE) return
    await nextTurn() // To read many must not delay the rest of the process.
  }
}

/** @throws TypeError that names the filter. */
function requireHistoryFilter(filter: HistoryFilter): void {
  requireOptions('history', filter, [...MESSAGE_FILTERS, 'handler', 'after', 'limit'])
  requireFilter('history', filter)
  const { handler, limit } = filter
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
      if (handler !== undefined && !readKept(job.kept).handlers?.includes(handler)) continue
      if (!matches(bodyOf(job.body))) continue
      yield readHandled(job)
      left -= 1
      if (left === 0) return
    }
  }
}

/** A replay, as it is noted under its id. The user is a digest: to forget a user must not need the notes. */
interface Plan {
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
  /** Whether one of these handlers matches a message. Default: they do. */
  readonly isFor?: (job: HandledJob, handlers: readonly string[]) => boolean
  /** Called when more messages wait to be handled. */
  readonly onProgress?: (count: number) => void
}

const REPLAY = [...MESSAGE_FILTERS, 'id', 'ids', 'handlers', 'maxPerSecond', 'dryRun', 'signal'] as const
const ID = /^[\w.-]{1,100}$/

/** @throws TypeError that names the option. */
export function requireReplayOptions(options: ReplayOptions): void {
  requireOptions('replay', options, REPLAY)
  requireFilter('replay', options)
  const { id, ids, handlers, maxPerSecond, signal } = options
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
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidOption('replay: signal', 'must be an AbortSignal', kindOf(signal), 'Pass that of an AbortController.')
  }
}

/** So many messages of a replay may be before a new one, and those that are being handled. */
const AT_ONCE = 100
const LATE_MS = 250
const LOOK_MS = 20

export async function replay(context: ReplayContext, options: ReplayOptions): Promise<Replay> {
  const { queue, clock, isFor = () => true, onProgress } = context
  const { id = randomUUID(), maxPerSecond = Number.POSITIVE_INFINITY, dryRun = false, signal } = options
  const { history } = queue
  const plan = await readPlan(history, id, options, clock, dryRun)
  const matches = matchMessage(options.userId === undefined ? plan.filter : { ...plan.filter, userId: options.userId })
  const types = new Map<string, number>()
  const events = new Map<string, number>()
  const startedAt = clock.monotonic()
  let count = 0
  let givenAt = new Date(0)

  function isMeant(job: HandledJob): boolean {
    if (readKept(job.kept).replay === id || !matches(bodyOf(job.body))) return false
    if (plan.handlers !== undefined && !isFor(job, plan.handlers)) return false
    const { message, receivedAt } = readHandled(job)
    if (receivedAt === undefined) throw unreadable(job)
    increment(types, message?.type ?? 'invalid')
    if (message?.type === 'track') increment(events, message.event)
    return true
  }

  async function give(jobs: readonly HandledJob[]): Promise<void> {
    await untilNoneIsLate()
    const again = jobs.map(({ id: job, handledAt, kept }) => {
      const { handlers: done } = readKept(kept)
      const state = {
        id,
        at: handledAt.getTime(),
        ...(plan.handlers && { only: plan.handlers }),
        ...(done && { done }),
      }
      return { id: job, retryState: writeRetryState({ ...INITIAL, replay: state }) }
    })
    count += await history.replay(again)
    onProgress?.(count)
    givenAt = (await queue.counts()).asOf
  }

  /** New messages go first: the next ones follow when the latest ones are taken, and no other is late. All by the time of the engine. */
  async function untilNoneIsLate(): Promise<void> {
    for (;;) {
      signal?.throwIfAborted()
      const waitMs = startedAt + (count / maxPerSecond) * 1_000 - clock.monotonic()
      if (waitMs > 0) {
        await wait(Math.min(waitMs, MAX_TIMER_MS))
        continue
      }
      const { oldestDueAt, asOf } = await queue.counts()
      if (oldestDueAt === undefined) return
      if (oldestDueAt > givenAt && asOf.getTime() - oldestDueAt.getTime() < LATE_MS) return
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
  for await (const page of plan.ids === undefined ? pages(history, plan.filter) : found(history, plan)) {
    signal?.throwIfAborted()
    const meant = page.filter(isMeant)
    if (dryRun) count += meant.length
    else for (let start = 0; start < meant.length; start += size) await give(meant.slice(start, start + size))
  }
  return { id, count, types: Object.fromEntries(types), events: Object.fromEntries(events) }
}

/** Nothing has been done to it, nor to what comes behind it. */
function unreadable({ id }: HandledJob): HooklineError {
  const rule = 'A replay needs messages that this release can read'
  return new HooklineError('internal', `${rule}. Got ${id}, of another format. Replay with the release that wrote it.`)
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

async function* found(history: QueueHistory, { ids = [], filter }: ReplayPlan): AsyncGenerator<readonly HandledJob[]> {
  const { since = new Date(0), until = new Date(8.64e15) } = filter
  for (let start = 0; start < ids.length; start += PAGE) {
    const jobs = await history.find(ids.slice(start, start + PAGE))
    yield jobs.filter(({ handledAt }) => handledAt >= since && handledAt < until)
  }
}

interface ReplayPlan {
  readonly filter: MessageFilter
  readonly ids: readonly string[] | undefined
  readonly handlers: readonly string[] | undefined
}

/** That of the first call with the id. It takes what was handled before then: what it gives out comes behind that. */
async function readPlan(
  history: QueueHistory,
  id: string,
  options: ReplayOptions,
  clock: Clock,
  dryRun: boolean,
): Promise<ReplayPlan> {
  const { since, until, type, event, userId, ids, handlers } = options
  const user = userId && hash('sha256', `${id} ${userId}`)
  const given: Plan = { since: since?.getTime(), until: until?.getTime(), type, event, user, ids, handlers }
  const begun: Plan = { ...given, until: given.until ?? clock.now() }
  const noted = await history.note(`replay ${id}`, dryRun ? undefined : JSON.stringify(begun))
  const plan = (noted === undefined ? begun : JSON.parse(noted)) as Plan
  const others = Object.entries(given).filter(
    ([name, value]) => value !== undefined && JSON.stringify(plan[name as keyof Plan]) !== JSON.stringify(value),
  )
  if (others.length > 0 || (plan.user !== undefined && user === undefined)) {
    const names = others.map(([name]) => (name === 'user' ? 'userId' : name))
    const found = `${show(id)}, which has another ${names[0] ?? 'userId'}`
    const advice =
      'To go on with that one, pass its id without filters, and its `userId` if it has one. Else choose another id.'
    throw invalidOption('replay: id', 'must be new, or have the filters that it had', found, advice)
  }
  const filter = {
    ...(plan.since !== undefined && { since: new Date(plan.since) }),
    ...(plan.until !== undefined && { until: new Date(plan.until) }),
    ...(plan.type !== undefined && { type: plan.type as NonNullable<MessageFilter['type']> }),
    ...(plan.event !== undefined && { event: plan.event }),
  }
  return { filter, ids: plan.ids, handlers: plan.handlers }
}
