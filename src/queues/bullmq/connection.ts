/** The connection to Redis, and how long a call waits for it. */

import { createRedisBackend, Queue, Worker } from 'bullmq'
import { Redis, type RedisOptions } from 'ioredis'
import { HooklineError } from '../../message/error.ts'
import { createPending } from '../../time/pending.ts'
import { TIMED_OUT } from '../../time/timeout.ts'
import type { QueueUse } from '../queue.ts'
import { isRefusal, refused, unavailable } from './error.ts'
import { type BullmqSettings, isInstance } from './options.ts'
import { type Check, checkServer } from './server.ts'

/** The two faces of BullMQ, over one connection, and that itself. */
export interface Engine {
  readonly queue: Queue
  /** Not for an observer, which has none. */
  readonly worker: Worker
  readonly client: Redis
}

/** A connection that opens and reopens by itself. */
export interface Connection {
  /** Where the jobs are, as text. */
  readonly place: string
  /** From the next call on, Redis is asked whether the queue has this use. */
  reserve(use: QueueUse): void
  /**
   * Makes a call as soon as Redis is there.
   *
   * @param sinceMs By `performance.now()`: when the waiting began. Default: now.
   * @throws HooklineError `queue_unavailable` when Redis does not answer in time or refuses, or is one that loses jobs; for
   *   BullMQ's own refusals their error, see `isRefusal`.
   */
  call<T>(make: (engine: Engine) => Promise<T>, sinceMs?: number): Promise<T>
  /** Ends the connection, unless it is an instance of the user. Calls under way reject. */
  close(): Promise<void>
}

/** Connects. Waits by the machine's clock, as Redis does. What Redis must be like is checked before the first call. */
export function connect(settings: BullmqSettings, checkOf: Check = checkServer): Connection {
  const { name, prefix, connection, timeoutMs, onError } = settings
  const isTheirs = isInstance(connection)
  const client = isTheirs ? connection : createClient(connection)
  const pending = createPending()
  const warnings = new Set<string>()
  let engine: Engine | undefined
  let checking: Promise<void> | undefined
  let isChecked = false
  let use: QueueUse | undefined
  let lastError: unknown
  let isClosed = false

  /** BullMQ repeats the errors of the connection. */
  function reportError(error: unknown): void {
    if (error === lastError) return
    lastError = error
    if (!isClosed) onError(failed(error))
  }

  function startAnew(): void {
    lastError = undefined
    isChecked = false
  }

  function failed(error: unknown): HooklineError {
    return unavailable(name, timeoutMs, error)
  }

  /** Resolves when the client is ready or the time is over. */
  async function untilReady(ms: number): Promise<void> {
    if (client.status === 'wait') client.connect().catch(() => {}) // Also emitted as an event.
    const { promise, resolve } = Promise.withResolvers<void>()
    client.once('ready', resolve)
    try {
      await pending.wait(promise, ms)
    } finally {
      client.off('ready', resolve)
    }
  }

  /** When the client is ready: BullMQ gives up for good when its first commands fail. */
  function open(): Engine {
    const opened = createEngine(settings, client)
    opened.queue.on('error', reportError)
    if (!settings.observe) opened.worker.on('error', reportError)
    return opened
  }

  /** Each time that the client has connected: it may be another server, or another setting. */
  function check({ queue }: Engine): Promise<void> {
    checking ??= checkOf(client, queue, { ...settings, use, warn })
      .then(() => {
        isChecked = true
      })
      .finally(() => {
        checking = undefined
      })
    return checking
  }

  /** Once for each trouble. */
  function warn(code: string, message: string): void {
    if (warnings.has(code)) return
    warnings.add(code)
    process.emitWarning(message, { code })
  }

  async function call<T>(make: (engine: Engine) => Promise<T>, sinceMs: number = performance.now()): Promise<T> {
    const left = (): number => Math.max(0, sinceMs + timeoutMs - performance.now())
    if (isClosed) {
      const message = `Queue ${name} is closed. Got a call after close(). Create a new queue.`
      throw new HooklineError('shutting_down', message)
    }
    try {
      if (client.status !== 'ready') await untilReady(left())
      if (client.status !== 'ready') throw failed(lastError)
      engine ??= open()
      if (!isChecked && (await pending.wait(check(engine), left())) === TIMED_OUT) throw failed(lastError)
      const result = await pending.wait(make(engine), left())
      if (result !== TIMED_OUT) return result
    } catch (error) {
      throw error instanceof HooklineError || isRefusal(error) ? error : failed(error)
    }
    throw failed(lastError)
  }

  client.on('error', reportError)
  client.on('ready', startAnew)
  const { host, port, path, db, sentinels, name: group } = client.options
  return {
    place: JSON.stringify([host, port, path, db, sentinels, group, prefix, name]),
    reserve(reservedFor) {
      use = reservedFor
      isChecked = false
    },
    call,
    async close() {
      isClosed = true
      pending.rejectAll(refused(name, 'it closed before Redis responded', 'no answer', PUSH_AGAIN))
      client.off('ready', startAnew)
      if (!isTheirs) client.disconnect()
      await Promise.allSettled([engine?.queue.close(), settings.observe || engine?.worker.close(true)])
      if (isTheirs) client.off('error', reportError) // Ours may still report what ends it.
    },
  }
}

const PUSH_AGAIN = 'Call again on another queue: what was pushed may be stored, and is skipped then.'

function createClient(connection: string | RedisOptions): Redis {
  const own = {
    enableOfflineQueue: false, // A command that is not awaited any more must not be sent later.
    disconnectTimeout: 100, // A timer of ioredis keeps the process so long, in milliseconds.
    replyMapping: 'legacy',
    lazyConnect: true, // A build that imports the module must end, and needs no Redis.
  } as const
  return typeof connection === 'string' ? new Redis(connection, own) : new Redis({ ...connection, ...own })
}

function createEngine({ name, prefix, leaseMs, observe }: BullmqSettings, client: Redis): Engine {
  const common = { connection: client, prefix, skipVersionCheck: true }
  if (observe)
    return { queue: new Queue(name, { ...common, skipMetasUpdate: true }), worker: undefined as never, client }
  const queue = new Queue(name, { ...common, streams: { events: { maxLen: MAX_EVENTS } } })
  const claiming = {
    autorun: false,
    lockDuration: leaseMs,
    // Of all processes of the queue the longest counts, so that one with a long lease does not delay the others.
    stalledInterval: Math.ceil(Math.min(leaseMs, 20_000) / 8),
    maxStalledCount: Number.MAX_SAFE_INTEGER, // The handler decides how often is too often.
  }
  // Without the factory a worker opens a second connection, to wait for jobs on.
  const worker = new Worker(name, null, { ...common, ...claiming }, (...[queueName, options]) =>
    createRedisBackend(queueName, options),
  )
  return { queue, worker, client }
}

/** For BullMQ's own tools: Hookline does not read the events. */
const MAX_EVENTS = 1_000
