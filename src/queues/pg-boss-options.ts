/** What a queue on PostgreSQL can be told, checked once and loudly. */

import type { PgBoss } from 'pg-boss'
import { type Clock, systemClock } from '../protocol/clock.ts'
import type { HooklineError } from '../protocol/error.ts'
import { refuseUnknown, requireClock, requireFunction, requireText, requireWhole } from '../protocol/options.ts'
import { printOurFaults } from '../protocol/report.ts'

/** What `pgBossQueue` takes: a `connectionString`, or a `boss`. */
export interface PgBossQueueOptions {
  /**
   * Names the queue, in pg-boss too: letters, digits and `_ . - /`. Processes that share a name, schema and database share
   * the jobs.
   */
  readonly name: string
  /**
   * Where PostgreSQL is: `postgres://user:password@host:5432/database`. The type admits undefined so that `process.env.X`
   * compiles; a missing one is a TypeError.
   */
  readonly connectionString?: string | undefined
  /**
   * A pg-boss in place of a connection string. Its owner starts it, before the first use, listens to its errors and
   * stops it after the queue is closed; it must supervise its queues, as it does by default.
   */
  readonly boss?: PgBoss
  /** The schema of pg-boss in the database. Default `pgboss`. With a `boss`: the one that it was made with. */
  readonly schema?: string
  /** How often to look for jobs that other processes put in, in milliseconds. Default 1000. */
  readonly pollMs?: number
  /**
   * How long a worker that died keeps its jobs, in milliseconds: whole seconds, the same in all processes that share the
   * queue. They come back when pg-boss looks, which is up to as much later, and never more than a minute. Default 60 000.
   */
  readonly leaseMs?: number
  /** How long the id of a job that is done stays known, in milliseconds. Default 24 hours. Its body is gone at once. */
  readonly knownForMs?: number
  /** Most connections. Default 5. Not with a `boss`, which has its own. */
  readonly max?: number
  /**
   * How long PostgreSQL may take for a push or to hand jobs out, in milliseconds, before it counts as away. Default 3000.
   * To count jobs, and to list, re-drive or drop the dead, it has ten times as long.
   */
  readonly timeoutMs?: number
  /**
   * Sees why no job could be handed out or settled, and what pg-boss reports. The queue tries again by itself. Default:
   * prints them.
   */
  readonly onError?: (error: HooklineError) => unknown
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The same, checked and complete. */
export interface Settings extends Required<Omit<PgBossQueueOptions, 'connectionString' | 'boss'>> {
  readonly connectionString: string | undefined
  readonly boss: PgBoss | undefined
}

const KNOWN = [
  'name',
  'connectionString',
  'boss',
  'schema',
  'pollMs',
  'leaseMs',
  'knownForMs',
  'max',
  'timeoutMs',
  'onError',
  'clock',
] as const satisfies (keyof PgBossQueueOptions)[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: PgBossQueueOptions): Settings {
  if (typeof options !== 'object' || options === null) throw new TypeError('pgBossQueue: its options are an object.')
  refuseUnknown(options, KNOWN)
  const { connectionString, boss, schema = 'pgboss', onError = printOurFaults, clock = systemClock } = options
  const { pollMs = 1_000, leaseMs = 60_000, knownForMs = 24 * 60 * 60_000, max = 5, timeoutMs = 3_000 } = options
  requireWhere(connectionString, boss)
  if (boss !== undefined && options.max !== undefined) throw new TypeError('max: the boss has connections of its own.')
  requireFunction('onError', onError)
  requireClock(clock)
  return {
    name: requireName(options.name),
    connectionString,
    boss,
    schema: requireSchema(schema),
    pollMs: requireWhole('pollMs', pollMs, 1),
    leaseMs: requireWhole('leaseMs', leaseMs, 1_000),
    knownForMs: requireWhole('knownForMs', knownForMs, 1_000, Number.MAX_SAFE_INTEGER),
    max: requireWhole('max', max, 1),
    timeoutMs: requireWhole('timeoutMs', timeoutMs, 1),
    onError,
    clock,
  }
}

/** Errors do not quote the string: it may hold a password. */
function requireWhere(connectionString: unknown, boss: unknown): void {
  if ((connectionString === undefined) === (boss === undefined))
    throw new TypeError('connectionString: give it, or a boss, and not both.')
  if (boss !== undefined) {
    requireFunction('boss.fetch', (boss as Partial<PgBoss> | null)?.fetch)
    return
  }
  requireText('connectionString', connectionString)
  if (!/^postgres(ql)?:\/\//.test(connectionString) || !URL.canParse(connectionString))
    throw new TypeError('connectionString: must be a full URL that begins with postgres:// or postgresql://.')
}

function requireName(name: unknown): string {
  requireText('name', name)
  if (!/^[\w.\-/]+$/.test(name)) throw new TypeError('name: must be letters, digits and _ . - / only.')
  // pg-boss looks names up in an object.
  if (name in {}) throw new TypeError('name: must be none that every object has, as __proto__ and constructor.')
  return name
}

/** As pg-boss has them: a bare name, or one in double quotes. */
function requireSchema(schema: unknown): string {
  if (typeof schema === 'string' && /^(?:[A-Za-z_]\w{0,49}|"[^"'%$.\\\p{Cc}]{1,50}")$/u.test(schema)) return schema
  throw new TypeError('schema: must be letters, digits and _, 50 at most, or a name in double quotes.')
}
