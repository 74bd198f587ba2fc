/** The transactions of handlers. Each transaction has its own `pg` client, and can also complete jobs. */

import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Db, PgBoss } from 'pg-boss'
import { HooklineError } from '../../protocol/error.ts'
import type { Completion, JobTransaction } from '../queue-types.ts'
import { type Connection, codeOf, createSockets, limitsOf, survive, unavailable } from './pg-boss-connection.ts'
import type { PgBossClaim } from './pg-boss-job.ts'
import type { Pool, PoolClient, Settings } from './pg-boss-options.ts'

/**
 * How long a ROLLBACK may take, in milliseconds. A ROLLBACK waits for the running statement. If the ROLLBACK takes
 * longer, Hookline ends the PostgreSQL server process that serves the client.
 */
const ROLLBACK_MS = 500
/** The maximum time limit that PostgreSQL accepts, in milliseconds. */
const MAX_LIMIT_MS = 2 ** 31 - 1
const ignore = (): void => {}

type Completions = readonly Completion<PgBossClaim>[]
type Complete = (completions: Completions, boss: PgBoss, db: Db) => Promise<void>

export class Transactions {
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #complete: Complete
  readonly #sockets = createSockets()
  #opening: Promise<Pool> | undefined

  constructor(connection: Connection, settings: Settings, complete: Complete) {
    this.#connection = connection
    this.#settings = settings
    this.#complete = complete
    const { db } = settings
    if (db instanceof EventEmitter && !db.listeners('connect').includes(survive)) db.on('connect', survive)
  }

  async begin(limitMs: number): Promise<JobTransaction<PgBossClaim>> {
    const { name, timeoutMs } = this.#settings
    const connecting = this.#connect()
    const client = await this.#connection.inTime(connecting, timeoutMs).catch((error) => {
      connecting.then((late) => late.release(true), ignore)
      throw unavailable(name, error)
    })
    client.on('error', ignore) // If the connection is lost, the next statement rejects with the error.
    const complete: CompleteJobs = async (completions, db) =>
      this.#complete(completions, await this.#connection.opened(), db)
    const transaction = new HandlerTransaction(client, this.#connection, this.#settings, complete)
    await transaction.begin(Math.min(limitMs, MAX_LIMIT_MS))
    const { db } = transaction // The result is a plain object, because the queue spreads it.
    return { db, commit: (completions) => transaction.commit(completions), rollback: () => transaction.rollback() }
  }

  close(): void {
    this.#sockets.destroy()
  }

  async #connect(): Promise<PoolClient> {
    if (this.#settings.db !== undefined) return this.#settings.db.connect()
    this.#opening ??= openPool(this.#settings, this.#sockets.create)
    return (await this.#opening).connect()
  }
}

type CompleteJobs = (completions: Completions, db: Db) => Promise<void>

class HandlerTransaction {
  readonly db: object
  readonly #client: PoolClient
  readonly #guarded: ReturnType<typeof guard>
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #complete: CompleteJobs
  #ended: Promise<void> | undefined

  constructor(client: PoolClient, connection: Connection, settings: Settings, complete: CompleteJobs) {
    this.#client = client
    this.#guarded = guard(client)
    this.#connection = connection
    this.#settings = settings
    this.#complete = complete
    this.db = this.#guarded.client
  }

  /**
   * @param limitMs How long a statement may take, and how long the transaction may be idle, in milliseconds. PostgreSQL itself enforces
   *   both limits, in case the process has stopped or lost the connection.
   */
  async begin(limitMs: number): Promise<void> {
    try {
      await this.#runStatement(`BEGIN; ${limitsOf(limitMs, limitMs)}`)
    } catch (error) {
      await this.rollback()
      throw unavailable(this.#settings.name, error)
    }
  }

  /** Completes the jobs and commits. If `rollback` is called in the meantime, no further statement runs, and this call rejects. */
  async commit(completions: Completions): Promise<void> {
    const { name, timeoutMs } = this.#settings
    const db: Db = { executeSql: (text, values) => this.#runUnlessEnded(text, values) as never }
    this.#guarded.refuseHandlers()
    try {
      await this.#connection.inTime(this.#complete(completions, db), timeoutMs)
      await this.#connection.inTime(this.#runUnlessEnded('COMMIT'), timeoutMs)
    } catch (error) {
      throw explain(name, error)
    }
    if (this.#ended !== undefined) return
    this.#ended = Promise.resolve()
    this.#release(false)
  }

  rollback(): Promise<void> {
    this.#ended ??= this.#rollBack()
    return this.#ended
  }

  async #rollBack(): Promise<void> {
    this.#guarded.refuseHandlers()
    try {
      await this.#runStatement('ROLLBACK', ROLLBACK_MS)
      this.#release(false)
    } catch {
      // Ends the server process through the connection of the queue. The client is released only afterwards, because the pool would
      // otherwise report the lost connection.
      const end = 'SELECT pg_terminate_backend($1)'
      const { processID } = this.#client
      await this.#connection.call((boss) => boss.getDb().executeSql(end, [processID])).catch(ignore)
      this.#release(true)
    }
  }

  #runStatement(statement: string, limitMs = this.#settings.timeoutMs) {
    return this.#connection.inTime(this.#guarded.run(statement), limitMs)
  }

  /**
   * Runs a statement. Rejects if the transaction has ended, because the statement would run outside a transaction, or in the transaction of
   * the next handler that gets the client.
   */
  #runUnlessEnded(...args: unknown[]): ReturnType<PoolClient['query']> {
    return this.#ended === undefined ? this.#guarded.run(...args) : Promise.reject(new Error(OVER))
  }

  #release(destroy: boolean): void {
    if (!destroy) this.#client.off('error', ignore)
    this.#client.release(destroy)
  }
}

/** Opens a separate pool, because pg-boss does not give out clients. */
async function openPool({ connectionString, timeoutMs }: Settings, stream: () => Socket): Promise<Pool> {
  const pg = await loadPg()
  const pool = new pg.Pool({
    connectionString,
    max: 1_000, // Effectively no limit, because the concurrency of the inbox limits how many clients are open.
    connectionTimeoutMillis: timeoutMs,
    application_name: 'hookline handlers',
    allowExitOnIdle: true, // Idle connections do not keep the process alive.
    stream, // `pg` calls this function for each new connection.
  })
  pool.on('connect', survive)
  pool.on('error', ignore) // The error means that an idle connection was lost. The pool opens another one when it is needed.
  return pool as never
}

/**
 * Imports `pg`. The import is in a `try`, because a bundler would otherwise refuse to build an app without the package, even if the app
 * does not need it.
 */
async function loadPg() {
  try {
    return (await import('pg')).default
  } catch {
    const advice = 'Run npm install pg, or pass your own pool as `db`.'
    throw new TypeError(`\`inbox.transactional\` needs the package pg. ${advice}`)
  }
}

type Query = (...args: unknown[]) => ReturnType<PoolClient['query']>

/**
 * Wraps a client for handlers. Handlers can use the wrapped client only until the transaction ends. Its `release` method
 * does nothing, because some libraries call it. Handlers may send several queries at once, but `pg` should get one at a
 * time, so each query waits here for the previous one. Queries with a callback, and cursors, go to `pg` directly, and
 * wait in its queue.
 */
function guard(client: PoolClient) {
  const direct = client.query.bind(client) as Query
  let last: Promise<unknown> = Promise.resolve()
  let isOpen = true

  const runInOrder: Query = (...args) => {
    const result = last.then(() => direct(...args))
    last = result.catch(ignore)
    return result
  }

  const query: Query = (...args) => {
    const returnsPromise =
      typeof args.at(-1) !== 'function' && typeof (args[0] as { submit?: unknown }).submit !== 'function'
    if (returnsPromise) return isOpen ? runInOrder(...args) : Promise.reject(new Error(OVER))
    if (!isOpen) throw new Error(OVER)
    return direct(...args)
  }

  return {
    run: runInOrder,
    client: new Proxy(client, {
      get(target, key) {
        if (key === 'query') return query
        if (key === 'release') return ignore
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    }),
    /** Refuses all further queries of handlers. `run` still works. */
    refuseHandlers(): void {
      isOpen = false
    },
  }
}

const OVER = 'The transaction of this message is over. Await each query before the handler returns.'

function explain(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const code = codeOf(error)
  if (typeof code !== 'string' || !/^(?:22|23|25P02|40)/.test(code)) return unavailable(name, error)
  const message =
    code === FAILED_BEFORE
      ? `Queue ${name}: a statement of a handler failed, but the handler did not reject. Let the handler reject with the errors of \`delivery.db\`, or roll back to a SAVEPOINT.`
      : `Queue ${name}: PostgreSQL refused what the handlers wrote, with SQLSTATE ${code}. The attempt failed. If other attempts fail, too, check the values that the handlers write.`
  return new HooklineError('handler_failed', message)
}

const FAILED_BEFORE = '25P02' // PostgreSQL's code for a statement that follows a failed statement in the same transaction.
