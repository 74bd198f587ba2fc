/** createClient(): records calls and posts them in batches, in the background ("Go client library"). */

import { requireInteger, requireOptions } from '../kit/checks.ts'
import { inBackground, MAX_TIMER_MS } from '../kit/clock.ts'
import { createDeadlines } from '../kit/deadlines.ts'
import type { DispatcherLike } from '../kit/post.ts'
import { TIMED_OUT, within } from '../kit/timeout.ts'
import { HooklineError } from '../protocol/error.ts'
import { USER_AGENT } from '../protocol/limits.ts'
import { CALL_TYPES, type CallType, createMethods } from '../protocol/type-table.ts'
import { CallBuffer } from './client-buffer.ts'
import { createConnections } from './client-connections.ts'
import { type ClientOptions, readOptions } from './client-options.ts'
import { createReports, log } from './client-report.ts'
import type { Client, CloseOptions, RecordedCall } from './client-types.ts'
import { type Undelivered, unwatch, watch } from './process-end.ts'
import { createCallWriter, readCall } from './recorded-call.ts'

const CLOSE_TIMEOUT_MS = 10_000

/**
 * Creates a client for the source of a write key ("Go client library", What the service does 4).
 *
 * @param writeKey The write key of the source; sent as the user name of Basic authentication. The type admits undefined so
 *   that `process.env.X` compiles.
 * @throws TypeError that names the option, also for a missing write key.
 * @example
 * const client = createClient(process.env.WRITE_KEY, { endpoint: 'https://analytics.example.com/v1/batch' })
 * client.track({ userId: 'user-1', event: 'Order Completed', properties: { total: 39.95 } })
 */
export function createClient(writeKey: string | undefined, options: ClientOptions): Client {
  const settings = readOptions(writeKey, options)
  const { origin, path, authorization, timeoutMs, maxRetries, random, clock } = settings
  const connections = settings.dispatcher === undefined ? createConnections(settings) : undefined
  const background = inBackground(clock)
  const writeCall = createCallWriter(clock)
  const reports = createReports(settings)
  const route = {
    dispatcher: settings.dispatcher ?? (connections as DispatcherLike),
    origin,
    path,
    headers: ['Authorization', authorization, 'Content-Type', 'application/json', 'User-Agent', USER_AGENT],
    timing: { clock, deadlines: createDeadlines(timeoutMs, background) },
    maxRetries,
    random,
    clock: background, // While a flush is waited for, its own timer keeps the process alive.
  }
  const buffer = new CallBuffer(settings, route, reports.report, () => unwatch(undelivered))
  const undelivered: Undelivered = {
    get size() {
      return buffer.size
    },
    post: postAtEnd,
  }
  let closing: Promise<readonly RecordedCall[]> | undefined

  function record(type: CallType, given: object): void {
    if (closing !== undefined) {
      throw new HooklineError(
        'shutting_down',
        `${type}: the client is closed. Got a call after close(). Record calls before closing the client.`,
      )
    }
    const call = writeCall(type, given)
    if (!buffer.add(call)) return
    watch(undelivered)
    if (log.enabled) log('%s: enqueued, %d bytes', type, call.bytes)
  }

  async function deliver(): Promise<void> {
    await buffer.flush()
    await reports.finish()
  }

  async function flush(): Promise<void> {
    const keepAlive = clock.setTimeout(() => {}, MAX_TIMER_MS)
    await deliver()
    clock.clearTimeout(keepAlive)
  }

  /** Also what is recorded meanwhile. */
  async function deliverAll(): Promise<void> {
    do await deliver()
    while (buffer.size > 0)
  }

  /** For the process that ends by itself. Afterwards nothing keeps it alive; should it go on, the next flush posts the rest. */
  async function postAtEnd(): Promise<void> {
    if ((await within(deliverAll(), CLOSE_TIMEOUT_MS, clock)) !== TIMED_OUT) return
    buffer.suspend()
    await connections?.end()
  }

  async function end(timeoutMs: number): Promise<readonly RecordedCall[]> {
    await within(flush(), timeoutMs, clock)
    const rest = buffer.abort()
    settings.log.flush()
    await connections?.end()
    return rest.map(readCall)
  }

  return {
    ...createMethods(CALL_TYPES, record),
    flush,
    async close(options = {}) {
      const timeoutMs = readTimeout(options)
      closing ??= end(timeoutMs)
      return closing
    },
  }
}

function readTimeout(options: CloseOptions): number {
  requireOptions('close', options, ['timeoutMs'])
  const { timeoutMs = CLOSE_TIMEOUT_MS } = options
  return requireInteger('timeoutMs', timeoutMs, 0)
}
