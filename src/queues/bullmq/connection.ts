/** The connection to Redis, and how long a call waits for it. */

import { createRedisBackend, Queue, Worker } from 'bullmq'
import { Redis, type RedisOptions } from 'ioredis'
import { HooklineError } from '../../message/error.ts'
import { createPending, TIMED_OUT } from '../../time/timeout.ts'
import type { QueueUse } from '../api.ts'
import { type BullmqSettings, isInstance } from './options.ts'

export interface Engine {
  readonly queue: Queue
  readonly worker: Worker
  readonly client: Redis
}

export type Connection = ReturnType<typeof connect>

/**
 * Checks a Redis and the queue in it before the first call: each time that it has connected, because it may be another server, and
 * once a minute, because an operator may have changed its settings or emptied it.
 */
export type Check = (engine: Engine, use: QueueUse | undefined) => Promise<void>

const CHECK_EVERY_MS = 60_000

export function connect(settings: BullmqSettings, checkServer: Check) {
  const { name, prefix, connection, timeoutMs, onError } = settings
  const isTheirs = isInstance(connection)
  const client = isTheirs ? connection : createClient(connection)
  const pending = createPending()
  const waiting = new Set<() => void>() // Calls, until the client is ready.
  let engine: Engine | undefined
  let checking: Promise<void> | undefined
  let checkedAt = Number.NEGATIVE_INFINITY
  let use: QueueUse | undefined
  let onPush: (() => void) | undefined
  let waiter: Redis | undefined
  let isWaiting = false
  let lastError: unknown
  let isClosed = false

  function reportError(error: unknown): void {
    if (error === lastError) return
    lastError = error
    if (!isClosed) onError(failed(error))
  }

  function startAnew(): void {
    lastError = undefined
    checkedAt = Number.NEGATIVE_INFINITY
    for (const resolve of waiting) resolve()
  }

  function failed(error: unknown): HooklineError {
    return unavailable(name, timeoutMs, error)
  }

  async function untilReady(ms: number): Promise<void> {
    if (client.status === 'wait') client.connect().catch(() => {}) // Also emitted as an event.
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.add(resolve)
    try {
      await pending.wait(promise, ms)
    } finally {
      waiting.delete(resolve)
    }
  }

  /** When the client is ready: BullMQ gives up for good when its first commands fail. */
  function open(): Engine {
    const opened = createEngine(settings, client)
    opened.queue.on('error', reportError)
    if (!settings.observe) opened.worker.on('error', reportError)
    return opened
  }

  function check(opened: Engine): Promise<void> {
    checking ??= checkServer(opened, use)
      .then(() => {
        checkedAt = performance.now()
      })
      .finally(() => {
        checking = undefined
      })
    return checking
  }

  async function inTime<T>(answer: Promise<T>, ms: number): Promise<T> {
    const result = await pending.wait(answer, ms)
    if (result === TIMED_OUT) throw lastError
    return result
  }

  async function call<T>(make: (engine: Engine) => Promise<T>, sinceMs: number = performance.now()): Promise<T> {
    const left = (): number => Math.max(0, sinceMs + timeoutMs - performance.now())
    if (isClosed) {
      const message = `Queue ${name} is closed. Got a call after close(). Create a new queue.`
      throw new HooklineError('shutting_down', message)
    }
    try {
      if (client.status !== 'ready') await untilReady(left())
      if (client.status !== 'ready') throw lastError
      engine ??= open()
      if (performance.now() - checkedAt >= CHECK_EVERY_MS) await inTime(check(engine), left())
      return await inTime(make(engine), left())
    } catch (error) {
      throw error instanceof HooklineError || isRefusal(error) ? error : failed(error)
    }
  }

  /** Waits for a push of any process. BullMQ's marker of it goes to one of those that wait; where that fails, `pollMs` finds the job. */
  async function waitForPush(): Promise<void> {
    if (onPush === undefined || engine === undefined || isWaiting || isClosed) return
    isWaiting = true
    try {
      if (waiter === undefined || waiter.status === 'end') waiter = createWaiter(client)
      await waiter.bzpopmin(engine.queue.toKey('marker'), WAIT_SECONDS)
      onPush?.() // After the time, too: the look that follows waits again.
    } catch (error) {
      if (codeOf(error) === 'NOPERM') onPush = undefined
    } finally {
      isWaiting = false
    }
  }

  client.on('error', reportError)
  client.on('ready', startAnew)
  const { host, port, path, db, sentinels, name: group } = client.options
  return {
    place: JSON.stringify([host, port, path, db, sentinels, group, prefix, name]),
    reserve(reservedFor: QueueUse): void {
      use = reservedFor
      checkedAt = Number.NEGATIVE_INFINITY
    },
    call,
    /** Calls back when a process has pushed while this one waited: see `waitForPush`. */
    onPush(listener: () => void): void {
      onPush = listener
    },
    waitForPush,
    async close(): Promise<void> {
      isClosed = true
      waiter?.disconnect()
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
  if (typeof connection === 'string') return new Redis(connection, { reconnectOnError: isOfReplica, ...own })
  return new Redis({ reconnectOnError: isOfReplica, ...connection, ...own })
}

/** A second connection: a command that waits blocks the first. */
function createWaiter(client: Redis): Redis {
  const resends = { enableOfflineQueue: true, maxRetriesPerRequest: null }
  return client
    .duplicate({ ...resends, commandTimeout: undefined, socketTimeout: 2_000 * WAIT_SECONDS })
    .on('error', () => {})
}

const WAIT_SECONDS = 5

/** After a planned failover, the server of an open connection is a replica. */
function isOfReplica({ message }: Error): boolean {
  return message.includes('READONLY')
}

/**
 * Redis at its `maxmemory` refuses a script whose first write needs memory: so those of BullMQ that claim, renew and end begin with a
 * write that needs none. Else a full Redis would never get empty.
 */
function letDrain(client: Redis): void {
  if (Object.hasOwn(client, 'defineCommand')) return // Another queue on a connection of the user.
  const define = client.defineCommand.bind(client)
  client.defineCommand = (name, { lua, ...definition }) => {
    const drains = /^(move|extend|retry|update)/.test(name)
    define(name, { ...definition, lua: drains ? `redis.call('DEL', KEYS[1] .. ':none')\n${lua}` : lua })
  }
}

function createEngine({ name, prefix, leaseMs, observe }: BullmqSettings, client: Redis): Engine {
  letDrain(client)
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

/** What Redis, BullMQ or the connection threw, without commands, which hold passwords and bodies. `undefined`: nothing within the time. */
function unavailable(name: string, timeoutMs: number, error: unknown): HooklineError {
  // Its message quotes the data, so it is no cause.
  if (error instanceof SyntaxError) return refused(name, 'a job is unreadable', 'data that is not JSON', UNREADABLE)
  const found = codeOf(error) ?? 'no answer'
  if (isReply(error)) return refused(name, 'Redis refused a command', found, REFUSED, error)
  return refused(name, `Redis did not respond within ${timeoutMs} ms`, found, UNREACHABLE, error)
}

export function refused(name: string, what: string, found: string, advice: string, cause?: unknown): HooklineError {
  const message = `Queue ${name}: ${what}. Got ${found}. ${advice}`
  return new HooklineError('queue_unavailable', message, cause === undefined ? {} : { cause: withoutCommand(cause) })
}

const UNREACHABLE = 'Check that `connection` points to a running server, for example redis://localhost:6379.'
const REFUSED = "Check the password of `connection`, the user's rights, and the server's memory and role."
const UNREADABLE = "Repair or remove the job with BullMQ's tools."

/** Whether BullMQ refused because the job is not where it was. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && error.code < 0
}

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
