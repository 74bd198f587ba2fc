/** The connection to Redis, and its errors. A call that was rejected because it took too long is never sent later. */

import { randomUUID } from 'node:crypto'
import { createRedisBackend, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { systemClock } from '../../kit/clock.ts'
import { withTimeout } from '../../kit/timeout.ts'
import { HooklineError } from '../../protocol/error.ts'
import type { QueueUse } from '../queue-types.ts'
import { keyOf } from './bullmq-keys.ts'
import { type BullmqSettings, isInstance } from './bullmq-options.ts'

export interface Engine {
  readonly queue: Queue
  readonly worker: Worker
  readonly client: Redis
}

/**
 * Checks a Redis server and the queue on it. Runs before the first call after each connection, because the server may be a different one.
 * Runs once a minute, too, because an operator may have changed the settings or deleted the data.
 */
export type Check = (engine: Engine, use: QueueUse | undefined) => Promise<void>

const CHECK_EVERY_MS = 60_000

export class Connection {
  /** Identifies the queue: connections to the same queue have the same `place`. */
  readonly place: string
  readonly #settings: BullmqSettings
  readonly #checkServer: Check
  readonly #client: Redis
  readonly #channel: string
  readonly #self = randomUUID()
  #engine: Promise<Engine> | undefined
  /** Resolves when the client has connected. Undefined while no call waits for a connection. */
  #ready: PromiseWithResolvers<void> | undefined
  #checking: Promise<void> | undefined
  #checkedAt = Number.NEGATIVE_INFINITY
  #use: QueueUse | undefined
  #subscriber: Redis | undefined
  #lastError: unknown
  #isClosed = false

  constructor(settings: BullmqSettings, checkServer: Check) {
    const { name, prefix } = settings
    this.#settings = settings
    this.#checkServer = checkServer
    this.#channel = `${keyOf(prefix, name)}:pushed`
    this.#client = createClient(settings)
    this.#client.on('error', (error) => this.#reportError(error))
    this.#client.on('ready', () => {
      this.#lastError = undefined
      this.#checkedAt = Number.NEGATIVE_INFINITY
      this.#endWait()
    })
    const { host, port, path, db, sentinels, name: group } = this.#client.options
    this.place = JSON.stringify([host, port, path, db, sentinels, group, prefix, name])
  }

  reserve(use: QueueUse): void {
    this.#use = use
    // The next call runs the check again, which stores the use, or finds that the jobs are reserved for the other use.
    this.#checkedAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Makes a call when the client is connected and the server has been checked.
   *
   * @param since When the caller began to wait, on the clock of `performance.now()`. This is earlier than now if a push has waited behind
   *   other pushes.
   */
  async call<T>(make: (engine: Engine) => Promise<T>, since: number = performance.now()): Promise<T> {
    const { name, timeoutMs } = this.#settings
    if (this.#isClosed) throw new HooklineError('shutting_down', `Queue ${name} is closed. Create a new queue.`)
    try {
      if (this.#client.status !== 'ready') await this.#untilReady(Math.max(0, since + timeoutMs - performance.now()))
      this.#engine ??= this.#openEngine()
      const opened = await this.#engine
      if (performance.now() - this.#checkedAt >= CHECK_EVERY_MS) this.#startCheck(opened)
      await this.#checking
      return await make(opened)
    } catch (error) {
      throw error instanceof HooklineError || isRefusal(error) ? error : this.#failed(error)
    }
  }

  /** Tells the other processes that a job was pushed. A process that misses this message finds the job within `pollMs`. */
  announcePush(): void {
    this.#client.publish(this.#channel, this.#self).catch(() => {})
  }

  /** Calls `listener` when another process has pushed, and whenever the connection opens, because pushes may have been missed before. */
  onPush(listener: () => void): void {
    // This connection has no `socketTimeout`, because it is silent while nothing is pushed. The listener for `ready` subscribes again after
    // each connection.
    const subscriber = this.#client.duplicate({ autoResubscribe: false, socketTimeout: undefined })
    subscriber.on('error', () => {}) // The main connection reports the same error.
    subscriber.on('ready', () => subscriber.subscribe(this.#channel).then(listener, () => {}))
    subscriber.on('message', (_channel, sender) => sender !== this.#self && listener())
    subscriber.connect().catch(() => {})
    this.#subscriber = subscriber
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#endWait()
    for (const each of [this.#client, this.#subscriber]) each?.disconnect()
    const opened = await this.#engine?.catch(() => undefined)
    await Promise.allSettled([opened?.queue.close(), opened?.worker.close(true)]) // `true` means: do not wait for running jobs.
  }

  #reportError(error: unknown): void {
    if (error === this.#lastError) return
    this.#lastError = error
    if (!this.#isClosed) this.#settings.onError(this.#failed(error))
  }

  /** Explains an error. If a command failed because there was no connection, only the last error of the connection names the cause. */
  #failed(error: unknown): HooklineError {
    const { name, timeoutMs } = this.#settings
    if (this.#isClosed) return refused(name, 'the queue closed before Redis responded', undefined, REPEAT)
    return unavailable(name, timeoutMs, isReply(error) ? error : (this.#lastError ?? error))
  }

  async #untilReady(ms: number): Promise<void> {
    const client = this.#client
    if (client.status === 'wait') client.connect().catch(() => {}) // The `error` event reports a failure.
    this.#ready ??= Promise.withResolvers()
    await withTimeout(this.#ready.promise, ms, systemClock)
    if (client.status !== 'ready') throw this.#lastError
  }

  #endWait(): void {
    this.#ready?.resolve()
    this.#ready = undefined
  }

  /** Opens the engine. If that fails, the next call opens another one, because BullMQ gives up permanently when its first commands fail. */
  #openEngine(): Promise<Engine> {
    const opened = createEngine(this.#settings, this.#client, (error) => this.#reportError(error))
    opened.catch(() => {
      this.#engine = undefined
    })
    return opened
  }

  #startCheck(opened: Engine): void {
    this.#checkedAt = performance.now()
    this.#checking = this.#checkServer(opened, this.#use)
    this.#checking.catch(() => {
      this.#checkedAt = Number.NEGATIVE_INFINITY
    })
  }
}

const REPEAT = 'Create a new queue and repeat the call: a push skips jobs that were already stored.'

function createClient({ connection, timeoutMs }: BullmqSettings): Redis {
  const required = {
    lazyConnect: true, // Creating a queue, as a module may do during a build, must not keep the process alive or need a running Redis.
    // A command whose caller has given up must not be sent later.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // A silent connection is closed after this time, which ends all calls that wait for it.
    socketTimeout: timeoutMs,
    connectTimeout: timeoutMs,
    disconnectTimeout: 100, // A disconnect starts an ioredis timer that keeps the process alive this long.
    retryStrategy: (times: number) => Math.min(times * 50, 1_000),
    reconnectOnError: comesFromReplica,
    replyMapping: 'legacy', // BullMQ needs replies in this form, but the user's options may ask for another.
  } as const
  if (isInstance(connection)) return connection.duplicate(required)
  return typeof connection === 'string' ? new Redis(connection, required) : new Redis({ ...connection, ...required })
}

/** Returns whether the server refused to write because it is a replica, which happens after a planned failover. */
function comesFromReplica({ message }: Error): boolean {
  return message.includes('READONLY')
}

async function createEngine(
  { name, prefix, leaseMs, observe }: BullmqSettings,
  client: Redis,
  onError: (error: unknown) => void,
): Promise<Engine> {
  // Without `skipVersionCheck`, BullMQ would send INFO, and fail for a Redis user who may not run it. `redis-server.ts` checks the version
  // instead.
  const common = { connection: client, prefix, skipVersionCheck: true }
  const creating = observe ? { skipMetasUpdate: true } : { streams: { events: { maxLen: MAX_EVENTS } } } // An observer writes nothing.
  const claiming = {
    autorun: false,
    name: randomUUID(), // BullMQ stores this name with each job that it claims.
    lockDuration: leaseMs,
    // BullMQ uses the longest interval of all processes of the queue, so the interval is limited: a process with a long lease must not
    // delay the others.
    stalledInterval: Math.ceil(Math.min(leaseMs, 20_000) / 8),
    maxStalledCount: 2 ** 31 - 1, // Effectively no limit, because the handler decides how many claims are too many.
    removeOnComplete: { count: 0 },
  }
  const queue = new Queue(name, { ...common, ...creating })
  // The worker has no processor, because the store claims jobs through it manually. Without the factory, the worker would open a second
  // connection to wait for jobs.
  const worker = new Worker(name, null, { ...common, ...claiming }, (...[queueName, options]) =>
    createRedisBackend(queueName, options),
  )
  queue.on('error', onError)
  worker.on('error', onError)
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()])
  return { queue, worker, client }
}

/** The maximum number of events that BullMQ keeps for its own tools. Hookline does not read them. */
const MAX_EVENTS = 1_000

/**
 * Turns an error from Redis, BullMQ or the connection into an error that users may see, without the command, which may contain passwords or
 * bodies. If `error` is undefined, the call timed out.
 */
function unavailable(name: string, timeoutMs: number, error: unknown): HooklineError {
  // The message of a SyntaxError quotes the data, so the error is not passed on as the cause.
  if (error instanceof SyntaxError) return refused(name, 'the data of a job is not JSON', undefined, UNREADABLE)
  const found = codeOf(error)
  if (isReply(error)) return refused(name, 'Redis refused a command', found, REFUSED, error)
  const what = error === undefined ? `Redis did not respond within ${timeoutMs} ms` : 'the connection to Redis failed'
  return refused(name, what, found, UNREACHABLE, error)
}

export function refused(
  name: string,
  what: string,
  found: string | undefined,
  advice: string,
  cause?: unknown,
): HooklineError {
  const got = found === undefined ? '' : ` Got ${found}.`
  const message = `Queue ${name}: ${what}.${got} ${advice}`
  return new HooklineError('queue_unavailable', message, cause === undefined ? {} : { cause: withoutCommand(cause) })
}

const UNREACHABLE = 'Check that `connection` points to a running server, for example redis://localhost:6379.'
const REFUSED = "Check the password of `connection`, the user's rights, and the server's memory and role."
const UNREADABLE = "Repair or remove the job with BullMQ's tools."

/** Returns whether BullMQ refused a call because the job is no longer in the expected state. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && error.code < 0
}

/**
 * Resolves to undefined if BullMQ refuses the call because the job is no longer in the expected state, for example because the claim has
 * ended.
 */
export async function unlessRefused<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (!isRefusal(error)) throw error
    return undefined
  }
}

/** Returns whether an error is an error reply from Redis. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/**
 * Returns the code of an error; undefined if it has none. An error reply from Redis begins with the code, and the rest of the reply may
 * quote the command.
 */
function codeOf(error: unknown): string | undefined {
  if (isReply(error)) return /^[A-Z]+/.exec(error.message)?.[0]
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** Returns the error without the command that failed, because the command may contain passwords or bodies. */
function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error) || !('command' in error)) return error
  const { name, message, stack = '' } = error
  return Object.assign(new Error(message), { name, stack })
}
