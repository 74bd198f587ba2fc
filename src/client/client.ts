/** Records calls and submits them in batches, in the background ("Go client library"). */

import { Pool } from 'undici'
import { createDeadlines } from '../protocol/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import { refuseUnknown, requireWhole } from '../protocol/options.ts'
import type { CallType, Client, CloseOptions, RecordedCall } from './api.ts'
import { createEntries } from './entry.ts'
import { createReports, toCall } from './failure-report.ts'
import { log } from './log.ts'
import { type ClientOptions, type ClientSettings, readOptions } from './options.ts'
import { createOutbox } from './outbox.ts'
import type { Route } from './post.ts'
import { createTimers } from './timers.ts'

/** How long a connection without work is kept, in milliseconds, unless the server says otherwise: longer than between two flushes. */
const KEEP_ALIVE_MS = 30_000

/**
 * Makes a client for the source of a write key ("Go client library", What the service does 4).
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
  const { clock, maxRetries, random } = settings
  const pool = settings.dispatcher === undefined ? createPool(settings) : undefined
  const route = createRoute(settings, pool)
  const timers = createTimers(clock)
  const createEntry = createEntries(clock)
  const reports = createReports(settings.onError, clock)
  const outbox = createOutbox(settings, { route, timers, maxRetries, random }, reports.report)
  let closing: Promise<readonly RecordedCall[]> | undefined

  function record(type: CallType, call: object): void {
    if (closing !== undefined) throw new HooklineError('shutting_down', `${type}: the client is closed.`)
    const entry = createEntry(type, call)
    if (outbox.add(entry) && log.enabled) log('%s: enqueued, %d bytes', type, entry.bytes)
  }

  async function end(timeoutMs: number): Promise<readonly RecordedCall[]> {
    await within(timeoutMs, flush())
    const rest = outbox.abort()
    await pool?.destroy()
    return rest.map(toCall)
  }

  async function flush(): Promise<void> {
    await outbox.flush()
    await reports.told()
  }

  function within(ms: number, work: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.setTimeout(resolve, ms)
      work.then(() => {
        clock.clearTimeout(timer)
        resolve()
      })
    })
  }

  return {
    identify: (call) => record('identify', call),
    track: (call) => record('track', call),
    page: (call) => record('page', call),
    screen: (call) => record('screen', call),
    group: (call) => record('group', call),
    alias: (call) => record('alias', call),
    flush,
    async close(options) {
      const timeoutMs = readTimeout(options)
      closing ??= end(timeoutMs)
      return closing
    },
  }
}

/** @throws TypeError that names the option. */
function readTimeout(options: CloseOptions = {}): number {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError('close: give it options, { timeoutMs: 5000 } for instance, or nothing.')
  }
  refuseUnknown(options, ['timeoutMs'])
  const { timeoutMs = 10_000 } = options
  return requireWhole('timeoutMs', timeoutMs, 0)
}

function createPool({ origin, maxInFlight, timeoutMs }: ClientSettings): Pool {
  return new Pool(origin, {
    connections: maxInFlight,
    keepAliveTimeout: KEEP_ALIVE_MS,
    allowH2: false,
    connect: { timeout: timeoutMs },
  })
}

function createRoute(settings: ClientSettings, pool: Pool | undefined): Route {
  const { origin, path, authorization, timeoutMs, clock } = settings
  return {
    dispatcher: settings.dispatcher ?? (pool as Pool),
    origin,
    path,
    headers: ['Authorization', authorization, 'Content-Type', 'application/json', 'User-Agent', 'Hookline/1.0'],
    deadlines: createDeadlines(timeoutMs, clock),
    clock,
  }
}
