/** The connection to Redis, which sends nothing later that its caller was refused, and the errors of it. */

import { randomUUID } from 'node:crypto'
import { createRedisBackend, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { systemClock } from '../../kit/clock.ts'
import { within } from '../../kit/timeout.ts'
import { HooklineError } from '../../protocol/error.ts'
import type { QueueUse } from '../queue-types.ts'
import { type BullmqSettings, isInstance } from './bullmq-options.ts'

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
  const { name, prefix, timeoutMs, onError } = settings
  const client = createClient(settings)
  const channel = `${keyOf(prefix, name)}:pushed`
  const self = randomUUID()
  let engine: Promise<Engine> | undefined
  let ready: PromiseWithResolvers<void> | undefined // While calls wait for the client.
  let checking: Promise<void> | undefined
  let checkedAt = Number.NEGATIVE_INFINITY
  let use: QueueUse | undefined
  let subscriber: Redis | undefined
  let lastError: unknown
  let isClosed = false

  function reportError(error: unknown): void {
    if (error === lastError) return
    lastError = error
    if (!isClosed) onError(failed(error))
  }

  function endWait(): void {
    ready?.resolve()
    ready = undefined
  }

  client.on('error', reportError)
  client.on('ready', () => {
    lastError = undefined
    checkedAt = Number.NEGATIVE_INFINITY
    endWait()
  })

  /** What ioredis says of a command without a connection names no cause: the last error of the connection does. */
  function failed(error: unknown): HooklineError {
    if (isClosed) return refused(name, 'it closed before Redis responded', 'no answer', PUSH_AGAIN)
    return unavailable(name, timeoutMs, isReply(error) ? error : (lastError ?? error))
  }

  async function untilReady(ms: number): Promise<void> {
    if (client.status === 'wait') client.connect().catch(() => {}) // Also emitted as an event.
    ready ??= Promise.withResolvers()
    await within(ready.promise, ms, systemClock)
    if (client.status !== 'ready') throw lastError
  }

  /** BullMQ gives up for good when its first commands fail: then the next call opens another one. */
  function open(): Promise<Engine> {
    const opened = createEngine(settings, client, reportError)
    opened.catch(() => {
      engine = undefined
    })
    return opened
  }

  function startCheck(opened: Engine): void {
    checkedAt = performance.now()
    checking = checkServer(opened, use)
    checking.catch(() => {
      checkedAt = Number.NEGATIVE_INFINITY
    })
  }

  /** @param since When the caller began to wait: a push may have waited for others. */
  async function call<T>(make: (engine: Engine) => Promise<T>, since: number = performance.now()): Promise<T> {
    if (isClosed) {
      const message = `Queue ${name} is closed. Got a call after close(). Create a new queue.`
      throw new HooklineError('shutting_down', message)
    }
    try {
      if (client.status !== 'ready') await untilReady(Math.max(0, since + timeoutMs - performance.now()))
      engine ??= open()
      const opened = await engine
      if (performance.now() - checkedAt >= CHECK_EVERY_MS) startCheck(opened)
      await checking
      return await make(opened)
    } catch (error) {
      throw error instanceof HooklineError || isRefusal(error) ? error : failed(error)
    }
  }

  const { host, port, path, db, sentinels, name: group } = client.options
  return {
    place: JSON.stringify([host, port, path, db, sentinels, group, prefix, name]),
    reserve(reservedFor: QueueUse): void {
      use = reservedFor
      checkedAt = Number.NEGATIVE_INFINITY
    },
    call,
    /** Wakes the other processes. One that misses it finds the job within `pollMs`. */
    announcePush(): void {
      client.publish(channel, self).catch(() => {})
    },
    /** Calls back when another process has pushed, and whenever one may have. */
    onPush(listener: () => void): void {
      const connected = client.duplicate({ autoResubscribe: false, socketTimeout: undefined })
      connected.on('error', () => {}) // The other connection reports it.
      connected.on('ready', () => connected.subscribe(channel).then(listener, () => {}))
      connected.on('message', (_channel, sender) => sender !== self && listener())
      connected.connect().catch(() => {})
      subscriber = connected
    },
    async close(): Promise<void> {
      isClosed = true
      endWait()
      for (const each of [client, subscriber]) each?.disconnect()
      const opened = await engine?.catch(() => undefined)
      await Promise.allSettled([opened?.queue.close(), opened?.worker.close(true)])
    },
  }
}

/** The keys of Hookline for a queue begin with this. Those below `<prefix>:<name>:` are BullMQ's, and its tools delete others there. */
export function keyOf(prefix: string, name: string): string {
  return `${namesKeyOf(prefix)}:${name}`
}

export function namesKeyOf(prefix: string): string {
  return `${prefix}-hookline`
}

const PUSH_AGAIN = 'Call again on another queue: what was pushed may be stored, and is skipped then.'

function createClient({ connection, timeoutMs }: BullmqSettings): Redis {
  const own = {
    lazyConnect: true, // A build that imports the module must end, and needs no Redis.
    // A command that is not awaited any more must not be sent later.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // A silent connection ends, and with it all that waits on it.
    socketTimeout: timeoutMs,
    connectTimeout: timeoutMs,
    disconnectTimeout: 100, // A timer of ioredis keeps the process so long.
    retryStrategy: (times: number) => Math.min(times * 50, 1_000),
    reconnectOnError: isOfReplica,
    replyMapping: 'legacy',
  } as const
  if (isInstance(connection)) return connection.duplicate(own)
  return typeof connection === 'string' ? new Redis(connection, own) : new Redis({ ...connection, ...own })
}

/** After a planned failover, the server of an open connection is a replica. */
function isOfReplica({ message }: Error): boolean {
  return message.includes('READONLY')
}

async function createEngine(
  { name, prefix, leaseMs, observe }: BullmqSettings,
  client: Redis,
  onError: (error: unknown) => void,
): Promise<Engine> {
  const common = { connection: client, prefix, skipVersionCheck: true }
  const creating = observe ? { skipMetasUpdate: true } : { streams: { events: { maxLen: MAX_EVENTS } } }
  const claiming = {
    autorun: false,
    name: randomUUID(), // BullMQ stores it with each job that it claims.
    lockDuration: leaseMs,
    // Of all processes of the queue the longest counts, so that one with a long lease does not delay the others.
    stalledInterval: Math.ceil(Math.min(leaseMs, 20_000) / 8),
    maxStalledCount: 2 ** 31 - 1, // The handler decides how often is too often.
    removeOnComplete: { count: 0 },
  }
  const queue = new Queue(name, { ...common, ...creating })
  // Without the factory a worker opens a second connection, to wait for jobs on.
  const worker = new Worker(name, null, { ...common, ...claiming }, (...[queueName, options]) =>
    createRedisBackend(queueName, options),
  )
  queue.on('error', onError)
  worker.on('error', onError)
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()])
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

/** BullMQ refuses when the job is not where it was: then the claim is over. */
export async function unlessRefused<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (!isRefusal(error)) throw error
    return undefined
  }
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
