/** Registers the handlers of a receiver by type, event and audience, and calls those that match a message. */

import { isThenable } from '../kit/callbacks.ts'
import { invalidOption, nearest, requireFunction, requireOptions, show } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { escaped } from '../kit/warning.ts'
import { memberships, traitName } from '../protocol/audience.ts'
import { describeError, HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Attempt, Progress } from './attempt.ts'
import { BatchedHandler, type BatchHandler } from './message-batches.ts'
import { Pace } from './pace.ts'
import { canShareMessage, type Handler, type HandlerOptions, readHandlerOptions, readSelection } from './selection.ts'
import { handling, traceHandlers } from './trace-handlers.ts'

/** The handlers for an audience: pass one or both. */
export interface AudienceHandlers<M = ReceivedMessage> {
  readonly entered?: Handler<M>
  readonly exited?: Handler<M>
}

const SIDES = ['entered', 'exited'] as const

interface Registered {
  readonly on: string
  readonly handler: Handler<ReceivedMessage>
  /** Gathers the messages of a batch handler, and calls the handler; undefined for any other handler. */
  readonly batched?: BatchedHandler
  /** The name of the handler; empty for a handler without a name. */
  readonly name: string
  /** The pace of the handler; undefined for a handler that gets every message immediately. */
  readonly pace?: Pace | undefined
  /** The position of an audience handler in the order of registration; 0 for any other handler. */
  readonly order: number
}

type Registry = Map<string, Registered[]>

/** The maximum number of warnings. Without this limit, senders could cause any number, because they choose the names in the warnings. */
const MAX_WARNED = 20
const MAX_NAME = 100

interface HandlersSettings {
  readonly strictEvents: boolean
  readonly takesCustom: boolean
  readonly clock: Clock
  readonly inbox: { readonly transactional: boolean } | undefined
}

/** The handlers of a receiver, registered by message type, event or audience. */
export class Handlers {
  readonly #schemas: readonly string[]
  readonly #settings: HandlersSettings
  readonly #warned = new Set<string>()
  readonly #names = new Set<string>()
  readonly #byType: Registry = new Map()
  readonly #byEvent: Registry = new Map()
  readonly #byAudience: Readonly<Record<(typeof SIDES)[number], Registry>> = { entered: new Map(), exited: new Map() }
  #audiences = 0
  #isStarted = false
  #size = 0
  #ignored = 0
  #isDispatched = false

  /** @param schemas The names of events that have a schema. */
  constructor(schemas: readonly string[], settings: HandlersSettings) {
    this.#schemas = schemas
    this.#settings = settings
  }

  get size(): number {
    return this.#size
  }

  /** How many messages matched no handler. */
  get ignored(): number {
    return this.#ignored
  }

  get batchHandlers(): readonly BatchedHandler[] {
    const all = this.#all().flatMap(({ batched }) => batched ?? [])
    return [...new Set(all)] // A handler for several types is registered for each of them, so it appears several times.
  }

  register(selection: readonly unknown[]): void {
    const { by, keys, handler, name, maxPerSecond } = readSelection('on', selection, this.#settings.takesCustom)
    const pace = this.#createPace('on', maxPerSecond)
    this.#register('on', by, keys, { handler, name, pace, order: 0 })
  }

  /** Registers a batch handler. Must be called before `start`. */
  addBatch(selection: readonly unknown[], timeoutMs: number): void {
    const { by, keys, handler, options = {} } = readSelection('onBatch', selection, this.#settings.takesCustom)
    const batched = new BatchedHandler(handler as unknown as BatchHandler<ReceivedMessage>, options, timeoutMs)
    if (this.#isStarted)
      throw new TypeError(
        '`onBatch` must be called before `start()`, because the batch handlers determine how many messages the inbox claims. Call `onBatch` first.',
      )
    this.#register('onBatch', by, keys, { handler, name: options.name ?? '', order: 0, batched })
  }

  remove(selection: readonly unknown[]): void {
    const { by, keys, handler } = readSelection('off', selection, this.#settings.takesCustom)
    const registry = by === 'type' ? this.#byType : this.#byEvent
    for (const key of keys) {
      const before = registry.get(key)
      if (before === undefined) continue
      const after = before.filter((other) => other.handler !== handler)
      for (const { name } of before.filter((other) => other.handler === handler)) this.#names.delete(name)
      registry.set(key, after)
      this.#size -= before.length - after.length
    }
  }

  addAudience(name: string, handlers: AudienceHandlers, options?: HandlerOptions): void {
    const trait = traitName(name)
    requireOptions('onAudience', handlers, ['entered', 'exited'])
    const sides = SIDES.filter((side) => handlers[side] !== undefined)
    if (sides.length === 0) {
      throw invalidOption(
        'onAudience: handlers',
        'must contain `entered` or `exited`',
        undefined,
        'Pass a function for one of them, or for both.',
      )
    }
    for (const side of sides) requireFunction(`onAudience: ${side}`, handlers[side])
    if (sides.some((side) => !this.#byAudience[side].has(trait))) this.#refuseAfterStart('onAudience', name)
    const how = readHandlerOptions('onAudience', options)
    const pace = this.#createPace('onAudience', how.maxPerSecond)
    this.#addName('onAudience', how.name)
    for (const side of sides) this.#refuseMixed(`${side} ${trait}`, false)
    const order = this.#audiences++
    for (const side of sides) {
      const on = `${side} ${trait}`
      const handler = handlers[side] as Handler<ReceivedMessage>
      append(this.#byAudience[side], trait, { on, handler, name: how.name, pace, order })
    }
    this.#size++
  }

  /**
   * Refuses handlers, from now on, for a type, event or audience that has no handler yet, because the inbox completes
   * messages that no handler matches.
   */
  start(): void {
    this.#isStarted = true
    for (const registry of [this.#byType, this.#byEvent]) {
      for (const [key, { length }] of registry) if (length === 0) registry.delete(key) // All handlers of this key were removed.
    }
  }

  /** Returns whether a handler matches a message. If `only` is given, only handlers with one of these names count. */
  match(wire: ReceivedMessage, only?: readonly string[]): boolean {
    return this.#handlersFor(wire).some(({ name }) => only === undefined || only.includes(name))
  }

  /** Returns whether a message matches a handler that gets single messages, not batches. */
  matchAlone(wire: ReceivedMessage): boolean {
    return this.#handlersFor(wire).some((registered) => !isBatched(registered))
  }

  /** @throws TypeError for a name that no handler has. */
  requireNames(option: string, given: readonly string[]): void {
    for (const name of given) {
      if (this.#names.has(name)) continue
      const near = nearest(name, [...this.#names])
      const advice =
        near === undefined ? 'Pass the `name` with which a handler was registered.' : `Did you mean ${show(near)}?`
      throw invalidOption(option, 'must contain only names of handlers of this receiver', show(name), advice)
    }
  }

  /**
   * Determines which handlers of a message must wait because of their pace, and records their turns in the progress. Returns false only if
   * all handlers that are left must wait.
   */
  takeTurns(wire: ReceivedMessage, progress: Progress): boolean {
    const { only, done, turns: before } = progress
    const turns = new Map<string, number>()
    let runs = 0
    for (const { name, pace } of this.#handlersFor(wire)) {
      if (done.includes(name) || only?.includes(name) === false) continue
      const turn = pace?.turnOf(before.get(name))
      if (turn === undefined) runs += 1
      else turns.set(name, turn)
    }
    progress.turns = turns
    return runs > 0 || turns.size === 0
  }

  /** Calls the handlers that match, are not done and do not have to wait for their turn. They run at the same time. */
  dispatch(attempt: Attempt): Promise<undefined> | undefined {
    // Handlers are matched before the first one is called, because a handler may change the message or the registry. They are matched with
    // the message as it was sent, because a schema may drop the trait of an audience.
    const matching = this.#handlersFor(attempt.wire)
    if (!this.#isDispatched) this.#warnOfSchemas()
    if (matching.length === 0) this.#countIgnored(attempt)
    const { progress } = attempt
    if (progress === undefined) return callAll(matching, attempt)
    const { done, only, failed, turns } = progress
    for (const name of failed) this.#warnUnlessNamed(name)
    const isLeft = ({ name }: Registered): boolean => !done.includes(name) && !turns.has(name)
    if (only === undefined) return callAll(matching.filter(isLeft), attempt)
    const absent = only.filter((name) => !this.#names.has(name)).map(absentHandler)
    const meant = [...matching, ...absent].filter(({ name }) => only.includes(name))
    return callAll(meant.filter(isLeft), attempt)
  }

  #all(): Registered[] {
    const { entered, exited } = this.#byAudience
    return [this.#byType, this.#byEvent, entered, exited].flatMap((registry) => [...registry.values()].flat())
  }

  #register(call: string, by: 'type' | 'event', keys: ReadonlySet<string>, registered: Omit<Registered, 'on'>): void {
    const registry = by === 'type' ? this.#byType : this.#byEvent
    if (by === 'event' && this.#settings.strictEvents) this.#requirePlanned(call, keys)
    const onOf = (key: string): string => (by === 'type' ? key : `track ${key}`)
    for (const key of keys) if (!registry.has(key)) this.#refuseAfterStart(call, key)
    for (const key of keys) this.#refuseMixed(onOf(key), registered.batched !== undefined)
    this.#addName(call, registered.name)
    for (const key of keys) append(registry, key, { ...registered, on: onOf(key) })
    this.#size += keys.size
  }

  /**
   * In a transactional inbox, refuses a handler if it and a batch handler could get the same message, because each of the two would need a
   * transaction of its own.
   */
  #refuseMixed(on: string, isOfBatches: boolean): void {
    if (this.#settings.inbox?.transactional !== true) return
    const other = this.#all().find((each) => (isOfBatches || isBatched(each)) && canShareMessage(on, each.on))
    if (other === undefined) return
    const reason = `The handlers for ${show(on)} and ${show(other.on)} may get the same message.`
    const advice = 'Do the work of both in one `onBatch` handler.'
    throw new TypeError(
      `With \`inbox.transactional\`, a handler must not share messages with a batch handler. ${reason} ${advice}`,
    )
  }

  #requirePlanned(call: string, events: ReadonlySet<string>): void {
    for (const event of events) {
      if (this.#schemas.includes(event)) continue
      const near = nearest(event, this.#schemas)
      const advice = near === undefined ? 'Add a schema for the event to `events`.' : `Did you mean ${show(near)}?`
      throw invalidOption(
        `${call}: event`,
        'must have a schema in `events`, because `strictEvents` is true',
        show(event),
        advice,
      )
    }
  }

  #createPace(call: string, maxPerSecond: number | undefined): Pace | undefined {
    if (maxPerSecond === undefined) return undefined
    const { inbox, clock } = this.#settings
    if (inbox?.transactional === false) return new Pace(maxPerSecond, clock)
    const rule = inbox === undefined ? 'needs an inbox' : 'cannot be combined with `inbox.transactional`'
    const advice = inbox === undefined ? 'Pass a queue as `inbox`.' : 'Pass `inbox.maxPerSecond` instead.'
    throw invalidOption(`${call}: maxPerSecond`, rule, undefined, advice)
  }

  #addName(call: string, name: string): void {
    if (this.#names.has(name)) {
      const advice = 'Pass another name, or remove the other handler with `off`.'
      throw invalidOption(`${call}: name`, 'must not be the name of another handler', show(name), advice)
    }
    if (name !== '') this.#names.add(name)
  }

  /** Warns if a handler that failed in an earlier attempt has since been renamed or removed. */
  #warnUnlessNamed(name: string): void {
    if (name === '' || this.#names.has(name) || this.#warned.has(name) || this.#warned.size === MAX_WARNED) return
    this.#warned.add(name)
    const message = `No handler is named ${show(name)} any more. A message that this handler failed to handle is completed without it. Give the name to the handler that replaces it.`
    process.emitWarning(message, { code: 'HOOKLINE_NO_HANDLER' })
  }

  /** Counts a message that no handler matches, marks its attempt, and warns about it. */
  #countIgnored(attempt: Attempt): void {
    const { wire } = attempt
    this.#ignored += 1
    attempt.isIgnored = true
    const effect = 'such messages are answered 200 and ignored'
    if (wire.type === 'track') this.#warn('messages with the event', wire.event, effect)
    else this.#warn(`messages of the type ${wire.type}`, undefined, effect)
  }

  #warnOfSchemas(): void {
    this.#isDispatched = true
    if (this.#byType.get('track')?.length || this.#byType.get('*')?.length) return
    for (const event of this.#schemas) {
      if (!this.#byEvent.get(event)?.length) this.#warn('the event', event, 'its schema has no effect')
    }
  }

  /** Warns once that a handler is missing. Does not warn if there are no handlers, because `receive` may be called only for its result. */
  #warn(what: string, event: string | undefined, effect: string): void {
    const name = event?.slice(0, MAX_NAME)
    const subject = name === undefined ? what : `${what} '${escaped(name)}'`
    if (this.#size === 0 || this.#warned.has(subject) || this.#warned.size === MAX_WARNED) return
    this.#warned.add(subject)
    const others = [...this.#byEvent.keys(), ...this.#schemas].filter((known) => known !== event)
    const near = name === undefined ? undefined : nearest(name, others)
    const hint = near
      ? `Did you mean '${near}'?`
      : 'Register a handler with `on`, or an empty function to ignore such messages without this warning.'
    process.emitWarning(`No handler matches ${subject}: ${effect}. ${hint}`, { code: 'HOOKLINE_NO_HANDLER' })
  }

  #handlersFor(wire: ReceivedMessage): Registered[] {
    const matching = [...(this.#byType.get(wire.type) ?? NONE)]
    if (wire.type === 'track') matching.push(...(this.#byEvent.get(wire.event) ?? NONE))
    if (this.#audiences > 0) matching.push(...this.#audienceHandlersFor(wire))
    matching.push(...(this.#byType.get('*') ?? NONE))
    return matching
  }

  /**
   * Returns the handlers for the audiences that a message is about. Iterates over the traits of the message, not over the audiences,
   * because a receiver may have many audiences.
   */
  #audienceHandlersFor(message: ReceivedMessage): Registered[] {
    const matching: Registered[] = []
    for (const [trait, isMember] of memberships(message)) {
      matching.push(...(this.#byAudience[isMember ? 'entered' : 'exited'].get(trait) ?? NONE))
    }
    return matching.sort((one, other) => one.order - other.order)
  }

  #refuseAfterStart(call: string, key: string): void {
    if (!this.#isStarted) return
    const rule = `must be called before \`start()\` for ${show(key)}, which has no handler yet`
    const advice = `Call \`${call}\` first, because the inbox completes messages that no handler matches.`
    throw invalidOption(call, rule, undefined, advice)
  }
}

const NONE: readonly Registered[] = []

function isBatched({ batched }: Registered): boolean {
  return batched !== undefined
}

/**
 * Creates a stand-in for a handler that a replay calls but that this process does not have. The stand-in throws so that the message is
 * retried, because another process may have the handler.
 */
function absentHandler(name: string): Registered {
  function handler(): never {
    const advice = 'Give a handler this name and redrive the message, or drop the message: the history still has it.'
    throw new Error(`The replay is for the handler ${show(name)}, which does not exist in this process. ${advice}`)
  }
  return { on: 'replay', name, order: 0, handler }
}

/** Adds a value to the list of a key. Does not copy the list, because copying it for each of many handlers would take quadratic time. */
function append(registry: Registry, key: string, value: Registered): void {
  const list = registry.get(key)
  if (list === undefined) registry.set(key, [value])
  else list.push(value)
}

/** The sender gets this text, so it contains nothing of the value that the handler threw. */
const HANDLER_FAILED = 'A handler failed. Send the message again.'

/** Calls the handlers, and traces them if the channel has a subscriber. Hot path: creates the objects of a trace only for a subscriber. */
function callAll(handlers: readonly Registered[], attempt: Attempt): Promise<undefined> | undefined {
  if (handlers.length === 0 || !handling.hasSubscribers) return callEach(handlers, attempt)
  return traceHandlers(attempt, () => callEach(handlers, attempt))
}

/** Calls the handlers. A failure makes the call reject if any handler returned a promise, and throw otherwise. */
function callEach(handlers: readonly Registered[], attempt: Attempt): Promise<undefined> | undefined {
  const { message, delivery, clock } = attempt
  const failures: unknown[] = []
  const pending: Promise<unknown>[] = []
  const inBatches: Promise<unknown>[] = []
  const progress = attempt.progress && trackProgress(handlers, attempt.progress)
  for (const registered of handlers) {
    const startedAt = attempt.runs === undefined ? 0 : clock.monotonic()
    const succeed = (): void => {
      progress?.succeeded(registered)
      addRun(attempt, registered, startedAt)
    }
    const fail = (failure: unknown): void => {
      failures.push(failure)
      progress?.failed(registered)
      // A handler may throw undefined, but a run without an error counts as a success.
      addRun(attempt, registered, startedAt, failure ?? new Error(describeError(failure)))
    }
    try {
      const { batched } = registered
      const result = batched === undefined ? registered.handler(message, delivery) : batched.add(attempt)
      if (isThenable(result))
        (batched === undefined ? pending : inBatches).push(Promise.resolve(result).then(succeed, fail))
      else succeed()
    } catch (failure) {
      fail(failure)
    }
  }
  const throwIfAnyFailed = (): undefined => {
    if (failures.length === 0) return
    if (attempt.batching?.member?.error !== undefined) throw attempt.batching.member.error
    const cause = new AggregateError(failures, 'Handlers failed. See `errors` of this error.')
    throw new HooklineError('handler_failed', HANDLER_FAILED, { cause })
  }
  if (inBatches.length > 0) void Promise.all(pending).then(attempt.batching?.leavePlace)
  pending.push(...inBatches)
  return pending.length === 0 ? throwIfAnyFailed() : Promise.all(pending).then(throwIfAnyFailed)
}

/**
 * Tracks which names are done: a name is done when every handler that has it has succeeded. The two handlers of an audience share one name;
 * all handlers without a name share the empty name.
 */
function trackProgress(handlers: readonly Registered[], progress: Progress) {
  const left = new Map<string, number>()
  for (const { name } of handlers) left.set(name, (left.get(name) ?? 0) + 1)
  progress.failed = []
  return {
    succeeded({ name }: Registered): void {
      const others = (left.get(name) ?? 0) - 1
      left.set(name, others)
      if (others > 0) return
      progress.done = [...progress.done, name]
      progress.save()
    },
    failed({ name }: Registered): void {
      if (!progress.failed.includes(name)) progress.failed = [...progress.failed, name]
    },
  }
}

/** Records how a handler ended, unless its attempt ended first. */
function addRun(
  { runs, deadline, clock }: Attempt,
  { on, name, handler }: Registered,
  startedAt: number,
  error?: unknown,
): void {
  if (runs === undefined || deadline.error !== undefined) return
  runs.push({ on, name: name || handler.name, durationMs: clock.monotonic() - startedAt, error })
}
