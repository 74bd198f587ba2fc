/** The options of a queue on BullMQ, and their checks. */

import type { Redis, RedisOptions } from 'ioredis'
import {
  anything,
  checkOptions,
  invalidOption,
  kindOf,
  type OptionChecks,
  requireBoolean,
  requireText,
  show,
  whole,
} from '../../kit/checks.ts'
import { systemClock } from '../../kit/clock.ts'
import { readOnError } from '../../kit/report.ts'
import type { HooklineError } from '../../protocol/error.ts'
import { type CreateQueueOptions, QUEUE_CHECKS, withDefaults } from '../arguments.ts'

/** The options of `bullmqQueue`. */
export interface BullmqQueueOptions extends Pick<CreateQueueOptions, 'deadLetterRetentionMs' | 'logger'> {
  /** The name of the queue in Redis, without a colon: BullMQ keeps its jobs under `<prefix>:<name>:`. */
  readonly name: string
  /**
   * The Redis server: a URL that begins with redis:// or rediss://, ioredis options, or an ioredis instance. The queue uses only the
   * options of an instance, and opens its own connection. While it has a handler, it opens a second one. The type admits undefined so that
   * `process.env.X` compiles, but undefined causes a TypeError.
   */
  readonly connection: string | RedisOptions | Redis | undefined
  /**
   * The prefix of all keys: BullMQ keys begin with `<prefix>:`, and Hookline keys with `<prefix>-hookline`. Default `bull`, as in BullMQ.
   */
  readonly prefix?: string
  /**
   * How long a claim lasts after its process dies, in milliseconds. The queue renews the claim while the handler runs.
   * After the process has died, the first worker with room claims the job again. This takes at most 5/4 of `leaseMs`
   * plus one `pollMs`. Default 20 000.
   */
  readonly leaseMs?: number
  /** How often the queue looks for due jobs, in milliseconds. Pushes by other processes are announced at once. Default 100. */
  readonly pollMs?: number
  /** How long the id of a job is remembered, in milliseconds from its push. Default 24 hours. */
  readonly dedupeWindowMs?: number
  /**
   * Whether to accept a Redis that deletes keys when its memory is full. Such a Redis may delete jobs or the ids in the
   * dedupe window. Default false: each call rejects with `queue_unavailable` while the `maxmemory-policy` of Redis is
   * anything but `noeviction`.
   */
  readonly allowEviction?: boolean
  /**
   * Whether to open the queue as an observer. While workers run, an observer can count the jobs of the queue; list, redrive and drop its
   * dead letters; and replay messages. It does not claim or create anything, and its `work` throws a TypeError. Until the queue exists,
   * each call rejects with `queue_unavailable`. Default false.
   */
  readonly observe?: boolean
  /**
   * How long Redis may be silent, in milliseconds, before the connection is closed and calls reject with `queue_unavailable`. Default
   * 3 000.
   */
  readonly timeoutMs?: number
  /**
   * Receives the errors of background work, for example when the connection is lost, or when Redis refuses to store an outcome. The queue
   * retries automatically. Default: `logger` receives a line for each error.
   */
  readonly onError?: (error: HooklineError) => unknown
}

export type BullmqSettings = ReturnType<typeof readOptions>

type Where = NonNullable<BullmqQueueOptions['connection']>

const { clock: _, ...SHARED } = QUEUE_CHECKS
const CHECKS: OptionChecks<BullmqQueueOptions> = {
  ...SHARED,
  connection: anything,
  prefix: requireText,
  leaseMs: whole(100),
  dedupeWindowMs: whole(1, Number.MAX_SAFE_INTEGER),
  allowEviction: requireBoolean,
  observe: requireBoolean,
  timeoutMs: whole(1),
}
const DEFAULTS = {
  prefix: 'bull',
  leaseMs: 20_000,
  pollMs: 100,
  dedupeWindowMs: 24 * 60 * 60_000,
  allowEviction: false,
  observe: false,
  timeoutMs: 3_000,
}

/**
 * Checks the options, and adds the defaults.
 *
 * @throws TypeError that names the invalid option. It never quotes a URL.
 */
export function readOptions(options: BullmqQueueOptions) {
  checkOptions('bullmqQueue', options, CHECKS)
  const { name, connection } = options
  requireText('name', name)
  if (name.includes(':'))
    throw invalidOption('name', 'must not contain a colon', show(name), "Pass a name such as 'orders'.")
  requireConnection(connection)
  const settings = withDefaults<BullmqQueueOptions, typeof DEFAULTS>(options, DEFAULTS)
  return { ...settings, connection, onError: readOnError(options, systemClock) }
}

export function isInstance(connection: Where): connection is Redis {
  return typeof connection === 'object' && 'duplicate' in connection && typeof connection.duplicate === 'function'
}

function requireConnection(connection: unknown): asserts connection is Where {
  const isUrl = typeof connection === 'string'
  if (isUrl ? !isRedisUrl(connection) : typeof connection !== 'object' || connection === null) {
    const rule = 'must be a Redis URL, an ioredis options object or an ioredis instance'
    const found = isUrl && connection !== '' ? undefined : kindOf(connection)
    throw invalidOption('connection', rule, found, "Pass a URL, for example 'redis://localhost:6379'.")
  }
  const { keyPrefix } = isUrl ? {} : readIoredisOptions(connection as Exclude<Where, string>)
  if (keyPrefix === undefined || keyPrefix === '') return
  const advice = 'Remove the keyPrefix, and pass it as `prefix` to bullmqQueue.'
  throw new TypeError(`The ioredis options in \`connection\` must not have a keyPrefix. ${advice}`)
}

function isRedisUrl(text: string): boolean {
  return /^rediss?:$/.test(URL.parse(text)?.protocol ?? '')
}

function readIoredisOptions(connection: RedisOptions | Redis): RedisOptions {
  return isInstance(connection) ? connection.options : connection
}
