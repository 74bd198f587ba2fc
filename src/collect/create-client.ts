/** createClient(): records calls and posts them in batches, in the background ("Go client library"). */

import { requireInteger, requireOptions } from '../kit/checks.ts'
import { inBackground, MAX_TIMER_MS } from '../kit/clock.ts'
import { createDeadlines } from '../kit/deadlines.ts'
import type { DispatcherLike } from '../kit/post.ts'
import { TIMED_OUT, withTimeout } from '../kit/timeout.ts'
import { HooklineError } from '../protocol/error.ts'
import { USER_AGENT } from '../protocol/limits.ts'
import { CALL_TYPES, type CallType, createMethods } from '../protocol/type-table.ts'
import { CallBuffer } from './client-buffer.ts'
import { type Connections, createConnections } from './client-connections.ts'
import { type ClientOptions, type ClientSettings, readOptions } from './client-options.ts'
import { createReports, log, type Reports } from './client-report.ts'
import type { Client, CloseOptions, RecordedCall } from './client-types.ts'
import { type Undelivered, unwatch, watch } from './process-end.ts'
import { createCallWriter, readCall } from './recorded-call.ts'

const CLOSE_TIMEOUT_MS = 10_000

/**
 * Creates a client for the source of a write key ("Go client library", What the service does 4).
 *
 * @param writeKey The write key of the source; sent as the user name of Basic authentication. The type admits undefined so
 *   that `process.env.X` compiles.
 * @throws TypeError that names the invalid option, or for a missing write key.
 * @example
 * const client = createClient(process.env.WRITE_KEY, { endpoint: 'https://analytics.example.com/v1/batch' })
 * client.track({ userId: 'user-1', event: 'Order Completed', properties: { total: 39.95 } })
 */
export function createClient(writeKey: string | undefined, options: ClientOptions): Client {
  const recorder = new CallRecorder(readOptions(writeKey, options))
  return {
    ...createMethods(CALL_TYPES, (type, call) => recorder.record(type, call)),
    flush: () => recorder.flush(),
    close: (options) => recorder.close(options),
  }
}

/** Checks calls, writes them as JSON, and buffers them until they are posted. */
class CallRecorder implements Undelivered {
  readonly #settings: ClientSettings
  readonly #connections: Connections | undefined
  readonly #writeCall: ReturnType<typeof createCallWriter>
  readonly #reports: Reports
  readonly #buffer: CallBuffer
  #closing: Promise<readonly RecordedCall[]> | undefined

  constructor(settings: ClientSettings) {
    const { origin, path, authorization, timeoutMs, maxRetries, random, clock } = settings
    const background = inBackground(clock)
    this.#settings = settings
    this.#connections = settings.dispatcher === undefined ? createConnections(settings) : undefined
    this.#writeCall = createCallWriter(clock)
    this.#reports = createReports(settings)
    const route = {
      dispatcher: settings.dispatcher ?? (this.#connections as DispatcherLike), // One of the two is always set.
      origin,
      path,
      headers: ['Authorization', authorization, 'Content-Type', 'application/json', 'User-Agent', USER_AGENT],
      timing: { clock, deadlines: createDeadlines(timeoutMs, background) },
      maxRetries,
      random,
      clock: background, // A wait between attempts must not keep the process alive by itself.
    }
    this.#buffer = new CallBuffer(settings, route, this.#reports.report, () => unwatch(this))
  }

  get size(): number {
    return this.#buffer.size
  }

  record(type: CallType, given: object): void {
    if (this.#closing !== undefined) {
      throw new HooklineError('shutting_down', `${type}: the client is closed. Record calls before closing it.`)
    }
    const call = this.#writeCall(type, given)
    if (!this.#buffer.add(call)) return
    watch(this)
    if (log.enabled) log('%s: enqueued, %d bytes', type, call.bytes)
  }

  /** Delivers the calls. Keeps the process alive meanwhile, with a timer that does nothing. */
  async flush(): Promise<void> {
    const { clock } = this.#settings
    const keepAlive = clock.setTimeout(() => {}, MAX_TIMER_MS)
    await this.#deliver()
    clock.clearTimeout(keepAlive)
  }

  /**
   * Posts the calls before the process exits on its own. Calls left after the timeout wait for the next flush, in case the process
   * continues.
   */
  async post(): Promise<void> {
    const result = await withTimeout(this.#deliverAll(), CLOSE_TIMEOUT_MS, this.#settings.clock)
    if (result !== TIMED_OUT) return
    this.#buffer.suspend()
    await this.#connections?.closeAll()
  }

  async close(options: CloseOptions = {}): Promise<readonly RecordedCall[]> {
    const timeoutMs = readTimeout(options)
    this.#closing ??= this.#closeWithin(timeoutMs)
    return this.#closing
  }

  async #closeWithin(timeoutMs: number): Promise<readonly RecordedCall[]> {
    await withTimeout(this.flush(), timeoutMs, this.#settings.clock)
    const rest = this.#buffer.abort()
    this.#settings.log.flush()
    await this.#connections?.closeAll()
    return rest.map(readCall)
  }

  async #deliver(): Promise<void> {
    await this.#buffer.flush()
    await this.#reports.finish()
  }

  /** Delivers all calls, including those that are recorded meanwhile. */
  async #deliverAll(): Promise<void> {
    do await this.#deliver()
    while (this.#buffer.size > 0)
  }
}

function readTimeout(options: CloseOptions): number {
  requireOptions('close', options, ['timeoutMs'])
  const { timeoutMs = CLOSE_TIMEOUT_MS } = options
  return requireInteger('timeoutMs', timeoutMs, 0)
}
