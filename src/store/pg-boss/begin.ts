/** The transactions of handlers. Each has a client of `pg`, and also completes the job. */

import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Db, PgBoss } from 'pg-boss'
import { HooklineError } from '../../protocol/error.ts'
import type { Completion, JobTransaction } from '../queue-types.ts'
import { type Connection, codeOf, createSockets, limitsOf, survive, unavailable } from './pg-boss-connection.ts'
import type { PgBossClaim } from './pg-boss-job.ts'
import type { Pool, PoolClient, Settings } from './pg-boss-options.ts'

/** How long a ROLLBACK may take. It waits for the running statement: if that takes longer, its server process is ended. */
const ROLLBACK_MS = 500
/** The longest time limit that PostgreSQL accepts. */
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
    client.on('error', ignore) // If the connection is lost, the next statement fails and says so.
    const complete: CompleteJobs = async (completions, db) =>
      this.#complete(completions, await this.#connection.opened(), db)
    const transaction = new HandlerTransaction(client, this.#connection, this.#settings, complete)
    await transaction.begin(Math.min(limitMs, MAX_LIMIT_MS))
    const { db } = transaction // The queue spreads the result, so it is a plain object.
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
   * @param limitMs After this time, PostgreSQL ends the transaction itself, because the process may have stopped or lost the connection.
   */
  async begin(limitMs: number): Promise<void> {
    try {
      await this.#runStatement(`BEGIN; ${limitsOf(limitMs, limitMs)}`)
    } catch (error) {
      await this.rollback()
      throw unavailable(this.#settings.name, error)
    }
  }

  /** Completes the jobs and commits. A rollback in the meantime takes precedence: no later statement runs, and this call rejects. */
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
      // The statement uses our own connection. It runs before the client returns to the pool, because the pool would report the lost connection.
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
   * Refuses statements after ROLLBACK: they would run outside a transaction, or in the transaction of the next handler that gets the
   * client.
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
    max: 1_000, // The concurrency of the inbox limits how many clients are open.
    connectionTimeoutMillis: timeoutMs,
    application_name: 'hookline handlers',
    allowExitOnIdle: true, // Idle connections do not keep the process alive.
    stream, // `pg` calls it for each new connection.
  })
  pool.on('connect', survive)
  pool.on('error', ignore) // An idle connection was lost: the pool opens another one.
  return pool as never
}

/** Without the `try`, a bundler would refuse to build an app that neither has nor needs the package. */
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
 * Returns the client as handlers see it: it is usable for this message only, and stays open when a library releases it. Handlers may send
 * several queries at once, but `pg` takes one at a time, so each query waits here for the one before. Queries with a callback, and cursors,
 * wait in the queue of `pg`.
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
    /** From now on, handlers can no longer query; `run` still can. */
    refuseHandlers(): void {
      isOpen = false
    },
  }
}

const OVER = 'The transaction of this message is over. Await each query in the handler.'

function explain(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const code = codeOf(error)
  if (typeof code !== 'string' || !/^(?:22|23|25P02|40)/.test(code)) return unavailable(name, error)
  const message =
    code === FAILED_BEFORE
      ? `Queue ${name}: a statement of a handler failed, but the handler itself did not. Let errors of \`delivery.db\` reject the handler, or use a SAVEPOINT.`
      : `Queue ${name}: PostgreSQL refused what the handlers wrote, with SQLSTATE ${code}. The handlers run again.`
  return new HooklineError('handler_failed', message)
}

const FAILED_BEFORE = '25P02' // PostgreSQL's code for a statement, including COMMIT, after one that failed.
