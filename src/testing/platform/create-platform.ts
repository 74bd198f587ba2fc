/** Creates a platform: a collector that listens, a destination whose queue is watched, and a clock that waits for both. */

import { createServer } from 'node:http'
import { performance } from 'node:perf_hooks'
import { clearTimeout, setTimeout } from 'node:timers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { serve } from '../../../adapters/node.ts'
import type { Collector } from '../../collect/collector-types.ts'
import { createCollector } from '../../collect/create-collector.ts'
import type { EndpointAnswer, EndpointRequest } from '../../host/endpoint.ts'
import {
  invalidOption,
  kindOf,
  requireInteger,
  requireOptions,
  requireSecret,
  requireText,
  requireUrl,
} from '../../kit/checks.ts'
import type { Clock } from '../../kit/clock.ts'
import { withTimeout } from '../../kit/timeout.ts'
import { createDestination } from '../../send/create-destination.ts'
import type { DeliveryReport, SkippedEvent } from '../../send/destination-events.ts'
import type { DestinationOptions } from '../../send/destination-options.ts'
import type { Destination } from '../../send/destination-types.ts'
import { readMessage } from '../../send/stored-submission.ts'
import type { Webhook } from '../../send/webhooks.ts'
import { memoryQueue } from '../../store/memory/memory-queue.ts'
import type { Job, Queue } from '../../store/queue-types.ts'
import { createManualClock } from '../manual-clock.ts'
import { listen } from '../server.ts'
import { describeFailure, findDifference } from './describe.ts'
import type { Platform, PlatformMessage, PlatformOptions, RefusedCall } from './platform-types.ts'

export async function createPlatform(options: PlatformOptions): Promise<Platform> {
  const { writeKey, port, timeoutMs, ...settings } = readOptions(options)
  const activity = new Activity()
  const log = new CallLog()
  const clock = createManualClock(Date.now(), () => activity.calm(timeoutMs))
  const destination = createWatchedDestination(settings.destination, clock, log, activity)
  const collector = createCollector({
    onError: () => {}, // The call log has the error, so nothing is printed.
    ...settings.collector,
    clock,
    sources: [{ name: 'test', writeKey, destinations: [destination] }],
  })
  const server = createServer(serve({ handle: (request) => activity.track(answerAndLog(collector, log, request)) }))
  const { origin, close: stop } = await listen(server, port).catch(async (error) => {
    await destination.close({ graceMs: 0 })
    throw error
  })
  const endpoint = `${origin}/v1/batch`

  const delivered: Platform['delivered'] = async (pattern = {}, options = {}) => {
    const failure = new Error('not delivered')
    Error.captureStackTrace(failure, delivered) // A stack captured after the waits below would not begin in the test.
    const waitMs = checkDelivered(pattern, options, timeoutMs)
    const found = await findDelivered(log, activity, pattern, waitMs)
    if (found !== undefined) return found as never // The message has the type that the pattern names.
    const { messages, refused } = log
    const state = { now: clock.now(), isBusy: activity.isBusy, isEnabled: destination.enabled }
    const { message, stack = '' } = failure
    failure.message = describeFailure({ pattern, messages, refused, endpoint, ...state })
    failure.stack = stack.replace(message, () => failure.message)
    throw failure
  }
  const advance = async (ms: number): Promise<void> => {
    requireInteger('ms', ms, 0)
    await clock.advance(ms)
  }
  const close = async (): Promise<void> => {
    await stop()
    await destination.close({ graceMs: 0 })
  }

  return {
    endpoint,
    host: origin,
    writeKey,
    clock,
    collector,
    destination,
    delivered,
    advance,
    close,
    get messages() {
      return log.messages
    },
    get refused() {
      return log.refused
    },
    [Symbol.asyncDispose]: close,
  }
}

function createWatchedDestination(
  options: DestinationOptions,
  clock: Clock,
  log: CallLog,
  activity: Activity,
): Destination {
  const destination = createDestination({
    ...options,
    clock,
    queue: watchQueue(memoryQueue({ name: 'platform', clock }), log, activity),
    onAttempt(report) {
      log.addReport(report)
      return options.onAttempt?.(report)
    },
  })
  destination.observe({ skipped: (event) => log.addSkipped(event) })
  return destination
}

async function answerAndLog(collector: Collector, log: CallLog, request: EndpointRequest): Promise<EndpointAnswer> {
  const { path } = request
  const { status, headers, body } = (await collector.handle(request)) ?? unknownPath(path, collector.routes)
  for (const call of listRefused(path, status, body)) log.addRefused(call)
  return { status, headers, body }
}

function watchQueue(queue: Queue, log: CallLog, activity: Activity): Queue {
  return {
    ...queue,
    async push(jobs, options) {
      log.addQueued(jobs)
      return queue.push(jobs, options)
    },
    work: (handle, how) => queue.work((...claimed) => activity.track(handle(...claimed)), how),
  }
}

/** Checks the arguments of `delivered`. Returns how long it waits, in milliseconds. */
function checkDelivered(pattern: unknown, options: { readonly timeoutMs?: number }, timeoutMs: number): number {
  if (typeof pattern !== 'object' || pattern === null) {
    const advice = "Pass fields of the message, for example { type: 'track' }."
    throw invalidOption('pattern', 'must be an object', kindOf(pattern), advice)
  }
  requireOptions('delivered', options, ['timeoutMs'])
  return requireInteger('timeoutMs', options.timeoutMs ?? timeoutMs, 1)
}

/**
 * Waits for the first message that matches and was delivered. Returns undefined when the timeout expires. Returns undefined, too, when
 * messages match but nothing is under way: none of these messages can be delivered until the clock moves.
 */
async function findDelivered(
  log: CallLog,
  activity: Activity,
  pattern: object,
  ms: number,
): Promise<PlatformMessage | undefined> {
  const end = machineClock.monotonic() + ms
  let calm: Promise<boolean> | undefined
  for (let isCalm = false; ; ) {
    const { changed, messages } = log
    const matching = messages.filter(({ message }) => findDifference(message, pattern) === undefined)
    const found = matching.find(({ status }) => status === 'delivered')
    const leftMs = end - machineClock.monotonic()
    if (found !== undefined || leftMs <= 0 || (isCalm && matching.length > 0)) return found
    const change = changed.then(nextTurn).then(() => false) // All changes of one turn count as one change.
    calm = isCalm ? undefined : (calm ?? activity.calm(ms).then(() => true))
    const next: Promise<boolean> = calm === undefined ? change : Promise.race([change, calm])
    isCalm = (await withTimeout(next, leftMs, machineClock)) === true
  }
}

function unknownPath(path: string, routes: readonly string[]): EndpointAnswer {
  const detail = `The path must be one of ${routes.join(', ')}. Got ${path}. Check the endpoint of the client.`
  return { status: 404, headers: {}, body: JSON.stringify({ code: 'path_unknown', detail }) }
}

function listRefused(path: string, status: number, body: string): RefusedCall[] {
  if (body === '') return []
  const { code, detail, refused = [] } = JSON.parse(body)
  if (status !== 200) return [{ path, status, code, detail }]
  return refused.map((call: RefusedCall) => ({ path, status, code: call.code, detail: call.detail, index: call.index }))
}

/** Stores each message, with what has happened to it, and each refused call. */
class CallLog {
  readonly #messages = new Map<string, PlatformMessage>()
  readonly #refused: RefusedCall[] = []
  #change = Promise.withResolvers<void>()

  get messages(): readonly PlatformMessage[] {
    return [...this.#messages.values()]
  }

  get refused(): readonly RefusedCall[] {
    return [...this.#refused]
  }

  /** Resolves at the next change. */
  get changed(): Promise<void> {
    return this.#change.promise
  }

  addQueued(jobs: readonly Job[]): void {
    for (const { id, body } of jobs) {
      if (this.#messages.has(id)) continue
      this.#messages.set(id, { id, message: readMessage(body), status: 'waiting', attempts: [] })
    }
    this.#notify()
  }

  addSkipped({ id = `skipped-${this.#messages.size}`, message, reason }: SkippedEvent): void {
    this.#messages.set(id, { id, message, status: 'skipped', attempts: [], reason })
    this.#notify()
  }

  addReport({ id, latest, retryAt, reason }: DeliveryReport): void {
    const before = this.#messages.get(id)
    if (before === undefined) return
    const message = { id, message: before.message, attempts: [...before.attempts, ...latest] }
    if (retryAt !== undefined) this.#messages.set(id, { ...message, status: 'waiting', retryAt })
    else if (reason !== undefined) this.#messages.set(id, { ...message, status: 'failed', reason })
    else this.#messages.set(id, { ...message, status: 'delivered' })
    this.#notify()
  }

  addRefused(call: RefusedCall): void {
    this.#refused.push(call)
    this.#notify()
  }

  #notify(): void {
    this.#change.resolve()
    this.#change = Promise.withResolvers()
  }
}

/** After this many turns of the event loop without work, all effects of the last work have taken place. */
const CALM_TURNS = 4

/** Tracks running requests and jobs. */
class Activity {
  readonly #works = new Map<Promise<unknown>, number>()

  get isBusy(): boolean {
    return this.#works.size > 0
  }

  async track<T>(work: Promise<T>): Promise<T> {
    this.#works.set(work, machineClock.monotonic())
    try {
      return await work
    } finally {
      this.#works.delete(work)
    }
  }

  /** Resolves when all work and its effects have ended. Does not wait for work that has already taken `timeoutMs` milliseconds. */
  async calm(timeoutMs: number): Promise<void> {
    for (let turns = 0; turns < CALM_TURNS; turns += 1) {
      const now = machineClock.monotonic()
      const [work, since = 0] = [...this.#works].find(([, since]) => now - since < timeoutMs) ?? []
      if (work === undefined) await nextTurn()
      else {
        turns = -1 // The count begins anew: the loop raises it to 0.
        const ended = work.catch(() => {})
        await withTimeout(ended, timeoutMs - (now - since), machineClock)
      }
    }
  }
}

/** The real clock, which stays real even in a test that replaces the global timers, because sockets run in real time. */
const machineClock: Clock = { now: Date.now, monotonic: () => performance.now(), setTimeout, clearTimeout }

const OPTIONS = [
  'to',
  'secret',
  'writeKey',
  'port',
  'timeoutMs',
  'destination',
  'collector',
] as const satisfies (keyof PlatformOptions)[]

/** The options of the destination and the collector that the platform sets itself, each with advice on what to do instead. */
const FIXED: Readonly<Record<string, string>> = {
  webhooks: 'Pass the URLs as `to`.',
  sharedSecret: 'Pass it as `secret`.',
  queue: 'Omit it: the platform has a queue in memory.',
  sources: 'Omit it: the platform has one source.',
  clock: 'Omit it: the platform has its own clock, which `advance` moves.',
}

/**
 * Checks the options that the platform itself reads.
 *
 * @throws TypeError that names the invalid option.
 */
function readOptions(options: PlatformOptions) {
  requireOptions('startPlatform', options, OPTIONS)
  const { to, writeKey = 'test-write-key', port = 0, timeoutMs = 4_000, destination = {}, collector = {} } = options
  requireText('writeKey', writeKey, 'test-write-key')
  requireInteger('port', port, 0, 65_535)
  requireInteger('timeoutMs', timeoutMs, 1)
  for (const [name, given] of Object.entries({ destination, collector })) {
    if (typeof given !== 'object' || given === null) {
      throw invalidOption(name, 'must be an object', kindOf(given), 'Pass options, or omit it.')
    }
    const [fixed, advice] = Object.entries(FIXED).find(([key]) => Object.hasOwn(given, key)) ?? []
    if (advice !== undefined) throw invalidOption(`${name}.${fixed}`, 'cannot be set', undefined, advice)
  }
  if ('secret' in options) requireSecret('secret', options.secret, 'the shared secret of the endpoint')
  const webhooks = Array.isArray(to) ? to.map((one, index) => readTo(one, `to[${index}]`)) : [readTo(to, 'to')]
  const unsigned: DestinationOptions = { random: () => 0.5, ...destination, webhooks }
  const full = 'secret' in options ? { ...unsigned, sharedSecret: options.secret } : unsigned
  return { writeKey, port, timeoutMs, collector, destination: full }
}

function readTo(to: unknown, name: string): Webhook {
  if (typeof to === 'string' || to instanceof URL) {
    requireUrl(name, String(to), 'Pass { url, headers } with an Authorization header.')
    return { url: String(to) }
  }
  if (typeof to === 'object' && to !== null) return to as Webhook
  throw invalidOption(name, 'must be a URL', kindOf(to), "Pass a URL, for example 'http://localhost:3000/webhooks'.")
}
