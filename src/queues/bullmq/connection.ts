/** The connection to Redis, and how long a call waits for it. */

import { createRedisBackend, Queue, Worker } from 'bullmq'
import { Redis, type RedisOptions } from 'ioredis'
import { HooklineError } from '../../message/error.ts'
import { notify } from '../../options/callbacks.ts'
import { systemClock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import { type BullmqSettings, isInstance } from './options.ts'

/** The two faces of BullMQ, over one connection. */
export interface Engine {
  readonly queue: Queue
  readonly worker: Worker
}

/** A connection that opens and reopens by itself. */
export interface Connection {
  /**
   * Makes a call as soon as Redis is there.
   *
   * @param sinceMs By `performance.now()`: when the waiting began. Default: now.
   * @throws HooklineError `queue_unavailable` when Redis does not answer in time or refuses; {@link isRefusal} for BullMQ's
   *   own refusals, unchanged.
   */
  call<T>(make: (engine: Engine) => Promise<T>, sinceMs?: number): Promise<T>
  /** Ends the connection, unless it is an instance of the user. Calls under way reject. */
  close(): Promise<void>
}

/** Connects. Waits by the machine's clock, as Redis does. */
export function connect(settings: BullmqSettings, onError: (error: HooklineError) => unknown): Connection {
  const { name, connection, timeoutMs } = settings
  const isTheirs = isInstance(connection)
  const client = isTheirs ? connection : createClient(connection)
  let engine: Engine | undefined
  let lastError: unknown
  let isClosed = false

  /** BullMQ repeats the errors of the connection. */
  function reportError(error: unknown): void {
    if (error === lastError) return
    lastError = error
    if (!isClosed) notify(() => onError(failed(error)), 'onError', 'HOOKLINE_ON_ERROR')
  }

  function forgetError(): void {
    lastError = undefined
  }

  function failed(error: unknown): HooklineError {
    // Its message quotes the data, so it is no cause.
    if (error instanceof SyntaxError) return unavailable('a job is unreadable', 'data that is not JSON', UNREADABLE)
    const found = codeOf(error) ?? 'no answer'
    if (isReply(error)) return unavailable('Redis refused a command', found, REFUSED, error)
    return unavailable(`Redis did not respond within ${timeoutMs} ms`, found, UNREACHABLE, error)
  }

  function unavailable(what: string, found: string, advice: string, cause?: unknown): HooklineError {
    const message = `Queue ${name}: ${what}. Got ${found}. ${advice}`
    return new HooklineError('queue_unavailable', message, cause === undefined ? {} : { cause: withoutCommand(cause) })
  }

  /** When the client is ready: BullMQ gives up for good when its first commands fail. */
  function open(): Engine {
    const opened = createEngine(settings, client)
    opened.queue.on('error', reportError)
    opened.worker.on('error', reportError)
    void warnOfEviction(name, client)
    return opened
  }

  async function call<T>(make: (engine: Engine) => Promise<T>, sinceMs: number = performance.now()): Promise<T> {
    const left = (): number => Math.max(0, sinceMs + timeoutMs - performance.now())
    if (client.status !== 'ready' && !isClosed) await untilReady(client, left())
    if (isClosed) {
      const message = `Queue ${name} is closed. Got a call after close(). Create a new queue.`
      throw new HooklineError('shutting_down', message)
    }
    if (client.status !== 'ready') throw failed(lastError)
    engine ??= open()
    try {
      const result = await within(make(engine), left(), systemClock)
      if (result !== TIMED_OUT) return result
    } catch (error) {
      throw isRefusal(error) ? error : failed(error)
    }
    throw failed(lastError)
  }

  client.on('error', reportError)
  client.on('ready', forgetError)
  return {
    call,
    async close() {
      isClosed = true
      client.off('ready', forgetError)
      if (!isTheirs) client.disconnect()
      await Promise.allSettled([engine?.queue.close(), engine?.worker.close(true)])
      if (isTheirs) client.off('error', reportError) // Ours may still report what ends it.
    },
  }
}

const UNREACHABLE = 'Check that `connection` points to a running server, for example redis://localhost:6379.'
const REFUSED = "Check the password of `connection`, the user's rights, and the server's memory and role."
const UNREADABLE = "Repair or remove the job with BullMQ's tools."

function createClient(connection: string | RedisOptions): Redis {
  const own = {
    enableOfflineQueue: false, // A command that is not awaited any more must not be sent later.
    disconnectTimeout: 100, // A timer of ioredis keeps the process so long, in milliseconds.
    replyMapping: 'legacy',
  } as const
  return typeof connection === 'string' ? new Redis(connection, own) : new Redis({ ...connection, ...own })
}

function createEngine({ name, prefix, leaseMs }: BullmqSettings, client: Redis): Engine {
  const common = { connection: client, prefix, skipVersionCheck: true }
  const queue = new Queue(name, { ...common, streams: { events: { maxLen: MAX_EVENTS } } })
  const claiming = {
    autorun: false,
    lockDuration: leaseMs,
    stalledInterval: Math.ceil(leaseMs / 8),
    maxStalledCount: Number.MAX_SAFE_INTEGER, // The handler decides how often is too often.
  }
  // Without the factory a worker opens a second connection, to wait for jobs on.
  const worker = new Worker(name, null, { ...common, ...claiming }, (...[queueName, options]) =>
    createRedisBackend(queueName, options),
  )
  return { queue, worker }
}

/** For BullMQ's own tools: Hookline does not read the events. */
const MAX_EVENTS = 1_000

/** Resolves when the client is ready or the time is over. */
async function untilReady(client: Redis, ms: number): Promise<void> {
  if (client.status === 'wait') client.connect().catch(() => {}) // Also emitted as an event.
  const { promise, resolve } = Promise.withResolvers<void>()
  client.once('ready', resolve)
  await within(promise, ms, systemClock)
  client.off('ready', resolve)
}

/** Redis may be set to delete keys when its memory is full, and acknowledged jobs with them. */
async function warnOfEviction(name: string, client: Redis): Promise<void> {
  const memory = await client.info('memory').catch(() => '') // Not every user may ask.
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1] ?? 'noeviction'
  if (policy === 'noeviction' || /^maxmemory:0\s/m.test(memory)) return
  const message = `Queue ${name}: Redis may delete jobs. Got maxmemory-policy ${policy}. Set it to noeviction.`
  process.emitWarning(message, { code: 'HOOKLINE_REDIS_EVICTS' })
}

/** Whether BullMQ refused because the job is not where it was. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && error.code < 0
}

/** Whether Redis answered, with an error. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

/** The reply of Redis begins with a code; the rest of it may quote the command. */
function codeOf(error: unknown): string | undefined {
  if (isReply(error)) return /^[A-Z]+/.exec((error as Error).message)?.[0] ?? 'an error'
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** The error without the command that failed: it holds passwords and bodies. */
function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error) || !('command' in error)) return error
  const { name, message, stack = '' } = error
  return Object.assign(new Error(message), { name, stack })
}
