/** The options of a queue in PostgreSQL. */

import type { PgBoss } from 'pg-boss'
import {
  anything,
  checkOptions,
  invalidOption,
  kindOf,
  type OptionChecks,
  requireBoolean,
  requireMethods,
  requireText,
  show,
  whole,
} from '../../kit/checks.ts'
import { systemClock } from '../../kit/clock.ts'
import { readOnError } from '../../kit/report.ts'
import type { HooklineError } from '../../protocol/error.ts'
import { type CreateQueueOptions, QUEUE_CHECKS, withDefaults } from '../arguments.ts'

/** The part of a `pg` client that Hookline uses. */
export interface PoolClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[]; readonly command?: string }>
  /** @param destroy Whether to close the connection instead of returning it to the pool. */
  release(destroy?: boolean): void
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
  readonly connection?: unknown
  /** The id of the server process that serves this client. */
  readonly processID?: number | null
}

/** The part of a `pg` pool that Hookline uses. */
export interface Pool {
  connect(): Promise<PoolClient>
}

/** The options of `pgBossQueue`. Either `connectionString` or `boss` is required. */
export interface PgBossQueueOptions extends Pick<CreateQueueOptions, 'deadLetterRetentionMs' | 'logger' | 'clock'> {
  /**
   * The name of the queue: letters, digits and `_ . - /`. The queue has the same name in pg-boss, where a second queue, with `-groups`
   * added to the name, holds the jobs that have a group. Processes that use the same name, schema and database share the jobs.
   */
  readonly name: string
  /**
   * The address of PostgreSQL, a URL: `postgres://user:password@host:5432/database`. The type admits undefined so that `process.env.X`
   * compiles, but undefined without a `boss` causes a TypeError.
   */
  readonly connectionString?: string | undefined
  /**
   * A pg-boss instance to use in place of a connection string. Start the instance before the first use, listen to its errors, and stop it
   * after the queue is closed. The instance must supervise its queues, and its database adapter must have `beginTransaction`; both are the
   * default.
   */
  readonly boss?: PgBoss
  /**
   * A `pg` pool on the same database. Its clients are passed to the handlers of an inbox with the `transactional` option. The pool must
   * allow a client for each message that is handled at the same time. Default: the queue opens its own pool, which needs the package `pg`.
   * With a `boss`, there is no default, and `transactional` needs this option.
   */
  readonly db?: Pool
  /** The pg-boss schema in the database. With a `boss`, pass the schema that the `boss` was created with. Default `pgboss`. */
  readonly schema?: string
  /**
   * How often the queue looks for due jobs, in milliseconds. Except with a `boss`, PostgreSQL also announces a push at once (`LISTEN`).
   * Default 1000.
   */
  readonly pollMs?: number
  /**
   * How long the jobs of a killed worker stay claimed, in milliseconds: from 10 seconds to 24 hours, rounded up to seconds. The jobs wait
   * again after the next pg-boss check, which runs every 10 seconds; by default, this takes at most 30 seconds in all. A `boss` checks as
   * often as its `superviseIntervalSeconds` and `monitorIntervalSeconds` say, by default once a minute. If processes open the queue with
   * different values, the value of the last one applies to the jobs that are pushed from then on. Default 15 000.
   */
  readonly leaseMs?: number
  /**
   * How long the id of a completed job is remembered, in milliseconds from its completion. The body stays in PostgreSQL for the same time.
   * Afterwards, the next pg-boss maintenance deletes both: within a minute or, with a `boss`, within its `maintenanceIntervalSeconds`, by
   * default a day. If processes open the queue with different values, the value of the last one applies to the jobs that are pushed from
   * then on. Default 24 hours.
   */
  readonly dedupeWindowMs?: number
  /**
   * Whether to open the queue as an observer. While workers run, an observer can count the jobs of the queue; list, redrive and drop its
   * dead letters; and replay messages. It does not claim, create, migrate or supervise anything, and its `work` throws a TypeError. Until
   * the schema and the queue exist, each call rejects with `queue_unavailable`. Default false.
   */
  readonly observe?: boolean
  /**
   * The maximum number of connections, in addition to the one that listens for pushes. It cannot be set with a `boss`, which has its own
   * connections. Default 5.
   */
  readonly max?: number
  /**
   * How long PostgreSQL may take for a push, a claim or an outcome, in milliseconds. A single statement may take half of this time, after
   * which PostgreSQL itself cancels the statement. A push that waits behind other pushes may take longer, until the others have ended.
   * Counting jobs, listing, redriving or dropping dead letters, and reading the log may take ten times as long. Default 3000.
   */
  readonly timeoutMs?: number
  /**
   * Receives the errors of background work, and errors that pg-boss reports. The queue retries automatically. Default: `logger` receives a
   * line for each error.
   */
  readonly onError?: (error: HooklineError) => unknown
}

export type Settings = ReturnType<typeof readOptions>

/** Counting jobs, reading the log, and listing or changing dead letters may take `timeoutMs` times this factor. */
export const LISTING_FACTOR = 10
/** The shortest lease that pg-boss accepts, in milliseconds. */
export const MIN_LEASE_MS = 10_000
const DAY_MS = 24 * 60 * 60_000
const CHECKS: OptionChecks<PgBossQueueOptions> = {
  ...QUEUE_CHECKS,
  name: requireName,
  connectionString: anything,
  boss: anything,
  db: requirePool,
  schema: requireSchema,
  leaseMs: whole(MIN_LEASE_MS, DAY_MS),
  dedupeWindowMs: whole(1_000, Number.MAX_SAFE_INTEGER),
  max: whole(1),
  observe: requireBoolean,
  timeoutMs: whole(1),
}
const DEFAULTS = {
  schema: 'pgboss',
  pollMs: 1_000,
  leaseMs: 15_000,
  dedupeWindowMs: DAY_MS,
  max: 5,
  observe: false,
  timeoutMs: 3_000,
  clock: systemClock,
}

export function readOptions(options: PgBossQueueOptions) {
  checkOptions('pgBossQueue', options, CHECKS)
  requireName('name', options.name)
  if (options.boss === undefined) requireConnectionString(options.connectionString)
  else requireBoss(options.boss, options)
  const settings = withDefaults<PgBossQueueOptions, typeof DEFAULTS>(options, DEFAULTS)
  return { ...settings, onError: readOnError(options, settings.clock) }
}

/** Checks the connection string. The errors never show it, because it may contain a password. */
function requireConnectionString(value: unknown): void {
  const advice = "Pass the PostgreSQL address, for example 'postgres://user:password@host:5432/database', or a `boss`."
  if (value === undefined || value === '') {
    throw invalidOption('connectionString', 'is required', kindOf(value), advice)
  }
  if (typeof value === 'string' && /^postgres(ql)?:\/\//.test(value) && URL.canParse(value)) return
  const found = typeof value === 'string' ? undefined : kindOf(value)
  throw invalidOption('connectionString', 'must be a full URL that begins with postgres://', found, advice)
}

function requireBoss(boss: PgBoss | undefined, { connectionString, max }: PgBossQueueOptions): void {
  if (connectionString !== undefined) {
    throw new TypeError('`boss` cannot be combined with `connectionString`. Pass only one of the two.')
  }
  if (max !== undefined) {
    throw invalidOption(
      'max',
      'cannot be combined with `boss`',
      show(max),
      'Pass `max` to the constructor of the boss.',
    )
  }
  if (typeof boss?.getDb !== 'function') {
    throw invalidOption(
      'boss',
      'must be a PgBoss',
      kindOf(boss),
      'Pass an instance of PgBoss from pg-boss 12.35 or later.',
    )
  }
  if (typeof boss.getDb().beginTransaction === 'function') return
  const rule = '`boss` must have a database adapter with beginTransaction'
  throw new TypeError(`${rule}. Create the boss from a connection string, or add the method to its adapter.`)
}

function requirePool(option: string, db: unknown): void {
  if (db !== undefined) requireMethods(option, db, ['connect'])
}

function requireName(_option: string, name: unknown): void {
  requireText('name', name)
  const refuse = (rule: string) => invalidOption('name', rule, show(name), "Pass a name such as 'orders'.")
  if (!/^[\w.\-/]+$/.test(name)) throw refuse('must consist of letters, digits and _ . - / only')
  if (name in {}) throw refuse('must not be the name of a property that every object has') // pg-boss looks up names in a plain object.
  if (name.endsWith('-groups'))
    throw refuse('must not end in -groups, which is reserved for the queue of jobs with a group')
}

/** Checks that pg-boss accepts the name of the schema: without quotes, or in double quotes. */
function requireSchema(_option: string, schema: unknown): void {
  if (typeof schema === 'string' && /^(?:[A-Za-z_]\w{0,49}|"[^"'%$.\\\p{Cc}]{1,50}")$/u.test(schema)) return
  const rule =
    'must be at most 50 letters, digits and underscores, not beginning with a digit, or a name of at most 50 characters in double quotes, without control characters and without " \' % $ . \\'
  throw invalidOption('schema', rule, show(schema), "Pass the name of the pg-boss schema, for example 'pgboss'.")
}
