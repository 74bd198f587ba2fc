/** The connections to Redis: how they are made, and how long a call waits for them. */

import { Redis, type RedisOptions } from 'ioredis'
import type { Clock } from '../protocol/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import { type BullmqSettings, isInstance, withoutCommand } from './bullmq-options.ts'

/** One way to Redis. */
export interface Connection {
  readonly client: Redis
  /**
   * Makes a call, once Redis is there.
   *
   * @param sinceMs By the clock's `monotonic`: when the waiting began. Default: now.
   * @throws HooklineError `queue_unavailable` when that takes too long or fails.
   */
  call<T>(make: () => Promise<T>, sinceMs?: number): Promise<T>
  /** Ends it, unless somebody else made it. */
  end(): void
}

/** Opens the connection of calls that somebody waits for: none of them waits longer than it was told. */
export function connect(settings: BullmqSettings, clock: Clock): Connection {
  const { name, connection, commandTimeoutMs } = settings
  const isTheirs = isInstance(connection)
  // No queue of commands for the time when Redis is back: those who wait for them are gone by then.
  const client = isTheirs ? connection : createClient(connection, { enableOfflineQueue: false })
  let lastError: unknown

  function notice(error: unknown): void {
    lastError = error // BullMQ hears it, too, and reports it.
  }

  function forget(): void {
    lastError = undefined
  }

  function unavailable(cause: unknown): HooklineError {
    const message = `The queue ${name} cannot be reached: Redis does not answer, or says no.`
    return new HooklineError('queue_unavailable', message, { cause: withoutCommand(cause) })
  }

  async function call<T>(make: () => Promise<T>, sinceMs: number = clock.monotonic()): Promise<T> {
    const late = Promise.withResolvers<never>()
    const left = Math.max(0, sinceMs + commandTimeoutMs - clock.monotonic())
    const timer = clock.setTimeout(() => {
      late.reject(lastError ?? new Error(`Redis gave no answer within ${commandTimeoutMs} milliseconds.`))
    }, left)
    try {
      if (client.status === 'ready') return await Promise.race([make(), late.promise])
      return await Promise.race([untilReady(client, late.promise).then(make), late.promise])
    } catch (error) {
      throw unavailable(error)
    } finally {
      clock.clearTimeout(timer)
    }
  }

  client.on('error', notice)
  client.on('ready', forget)
  return {
    client,
    call,
    end() {
      client.off('error', notice)
      client.off('ready', forget)
      if (isTheirs) return
      client.on('error', () => {})
      client.disconnect()
    },
  }
}

/** Where those who work connect: commands wait for Redis to be back, as many as jobs are handed out. */
export interface WorkConnection {
  readonly client: Redis
  /** Ends the copy of it that waits for jobs: Redis gives it nothing any more then, which others would miss. */
  stopWaiting(): Promise<unknown>
  /** Ends both. */
  end(): void
}

/** Opens the connection of a worker. */
export function connectToWork({ connection }: BullmqSettings): WorkConnection {
  const client = isInstance(connection)
    ? connection.duplicate({ ...OWN, maxRetriesPerRequest: null, enableOfflineQueue: true })
    : createClient(connection, { maxRetriesPerRequest: null })
  const duplicate = client.duplicate.bind(client)
  const all: Redis[] = []
  const waits = new Set<() => void>()

  function keep(one: Redis): Redis {
    one.on('error', () => {}) // BullMQ reports them, while it is there.
    all.push(one)
    return one
  }

  /** The call in which a worker waits for jobs would end with Redis only, and a timer of BullMQ with the call. */
  function releasable(copy: Redis): Redis {
    const wait = copy.bzpopmin.bind(copy) as (...args: unknown[]) => Promise<unknown>
    copy.bzpopmin = ((...args: unknown[]) => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      const leave = () => resolve(null)
      waits.add(leave)
      wait(...args).then(resolve, reject)
      return promise.finally(() => waits.delete(leave))
    }) as Redis['bzpopmin']
    return copy
  }

  // BullMQ copies it, and ends the copy itself only when Redis is there.
  client.duplicate = (override) => releasable(keep(duplicate(override)))
  return {
    client: keep(client),
    stopWaiting() {
      const copies = all.filter((one) => one !== client && one.status === 'ready')
      for (const leave of waits) leave()
      return Promise.all(copies.map(ended))
    },
    end() {
      // A second time would keep the process for a while.
      for (const one of all) if (one.status !== 'end') one.disconnect()
      for (const leave of waits) leave()
    },
  }
}

function createClient(connection: string | RedisOptions, own: RedisOptions): Redis {
  const options = { ...OWN, ...own, replyMapping: 'legacy' } as const
  return typeof connection === 'string' ? new Redis(connection, options) : new Redis({ ...connection, ...options })
}

function ended(client: Redis): Promise<void> {
  return new Promise((resolve) => {
    client.once('end', resolve)
    client.disconnect()
  })
}

/** Resolves when the client is ready; gives up, and leaves no listener, when `late` does. */
async function untilReady(client: Redis, late: Promise<never>): Promise<void> {
  if (client.status === 'wait') client.connect().catch(() => {}) // It tells as an event, too.
  const ready = Promise.withResolvers<void>()
  client.once('ready', ready.resolve)
  try {
    await Promise.race([ready.promise, late])
  } finally {
    client.off('ready', ready.resolve)
  }
}

/** How long a connection that ends may take, in milliseconds: a timer of ioredis keeps the process that long. */
const OWN: RedisOptions = { disconnectTimeout: 100 }
