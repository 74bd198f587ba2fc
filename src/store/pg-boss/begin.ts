/** The transactions of handlers: a client of `pg` each, in which the job is completed, too. */

import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Db, PgBoss } from 'pg-boss'
import { HooklineError } from '../../protocol/error.ts'
import type { JobTransaction } from '../queue-types.ts'
import { type Connection, createSockets, limitsOf, survive, unavailable } from './pg-boss-connection.ts'
import type { PgBossClaim } from './pg-boss-job.ts'
import type { Pool, PoolClient, Settings } from './pg-boss-options.ts'

/** How long a ROLLBACK may take. A statement that runs takes longer: then its server process is ended. */
const ROLLBACK_MS = 500
/** The greatest limit of PostgreSQL, in milliseconds. */
const MAX_LIMIT = 2 ** 31 - 1
const ignore = (): void => {}

type Complete = (
  batch: readonly { readonly claim: PgBossClaim; readonly log: Uint8Array | undefined }[],
  boss: PgBoss,
  db: Db,
) => Promise<void>

export function createTransactions(connection: Connection, settings: Settings, complete: Complete) {
  const { name, timeoutMs } = settings
  const { inTime } = connection
  const sockets = createSockets()
  let opening: Promise<Pool> | undefined
  if (settings.db instanceof EventEmitter && !settings.db.listeners('connect').includes(survive)) {
    settings.db.on('connect', survive)
  }

  async function connect(): Promise<PoolClient> {
    if (settings.db !== undefined) return settings.db.connect()
    opening ??= openPool(settings, sockets.create)
    return (await opening).connect()
  }

  async function begin(claim: PgBossClaim, limitMs: number): Promise<JobTransaction> {
    const connecting = connect()
    const client = await inTime(connecting, timeoutMs).catch((error) => {
      connecting.then((late) => late.release(true), ignore)
      throw unavailable(name, error)
    })
    client.on('error', ignore) // A lost connection: the next statement fails, and says so.
    const guarded = guard(client)
    let ended: Promise<void> | undefined

    function release(destroy: boolean): void {
      if (!destroy) client.off('error', ignore)
      client.release(destroy)
    }

    async function rollBack(): Promise<void> {
      guarded.close()
      try {
        await inTime(guarded.run('ROLLBACK'), ROLLBACK_MS)
        release(false)
      } catch {
        // Over our own connection. Before the pool gets the client: it would report the end of its connection.
        const terminate = 'SELECT pg_terminate_backend($1)'
        await connection.call((boss) => boss.getDb().executeSql(terminate, [client.processID])).catch(ignore)
        release(true)
      }
    }

    function rollback(): Promise<void> {
      ended ??= rollBack()
      return ended
    }

    /** What comes after ROLLBACK would be a transaction of its own, or part of that of the next who has the client. */
    function runUnlessEnded(...args: unknown[]): ReturnType<PoolClient['query']> {
      return ended === undefined ? guarded.run(...args) : Promise.reject(new Error(OVER))
    }

    async function completeJob(log: Uint8Array | undefined): Promise<void> {
      const db: Db = { executeSql: (text, values) => runUnlessEnded(text, values) as never }
      await complete([{ claim, log }], await connection.opened(), db)
    }

    try {
      const limit = Math.min(limitMs, MAX_LIMIT) // Ends the transaction when the process stops or is cut off.
      await inTime(guarded.run(`BEGIN; ${limitsOf(limit, limit)}`), timeoutMs)
    } catch (error) {
      await rollback()
      throw unavailable(name, error)
    }
    return {
      db: guarded.client,
      async commit(log) {
        guarded.close()
        try {
          await inTime(completeJob(log), timeoutMs)
          await inTime(runUnlessEnded('COMMIT'), timeoutMs)
        } catch (error) {
          throw explain(name, error)
        }
        if (ended !== undefined) return
        ended = Promise.resolve()
        release(false)
      },
      rollback,
    }
  }

  return { begin, close: sockets.destroy }
}

/** pg-boss brings `pg`, but gives out no client. */
async function openPool({ connectionString, timeoutMs }: Settings, stream: () => Socket): Promise<Pool> {
  const { default: pg } = await import('pg').catch(() => {
    const advice = 'Run npm install pg, or pass your own pool as `db`.'
    throw new TypeError(`\`inbox.transactional\` needs the package pg. Got none. ${advice}`)
  })
  const pool = new pg.Pool({
    connectionString,
    max: 1_000, // The concurrency of the inbox bounds how many are open.
    connectionTimeoutMillis: timeoutMs,
    application_name: 'hookline handlers',
    allowExitOnIdle: true,
    stream,
  })
  pool.on('connect', survive)
  pool.on('error', ignore) // Of a connection that is idle: the pool opens another one.
  return pool as never
}

type Query = (...args: unknown[]) => ReturnType<PoolClient['query']>

/**
 * The client as handlers see it, for this message alone: a query that comes later is refused, and a library may release it. Queries of
 * several handlers meet, and `pg` takes one at a time; its own queue has those with a callback and cursors.
 */
function guard(client: PoolClient) {
  const direct = client.query.bind(client) as Query
  let last: Promise<unknown> = Promise.resolve()
  let isOpen = true

  const run: Query = (...args) => {
    const answer = last.then(() => direct(...args))
    last = answer.catch(ignore)
    return answer
  }

  const query: Query = (...args) => {
    const isPlain = typeof args.at(-1) !== 'function' && typeof (args[0] as { submit?: unknown }).submit !== 'function'
    if (isPlain) return isOpen ? run(...args) : Promise.reject(new Error(OVER))
    if (!isOpen) throw new Error(OVER)
    return direct(...args)
  }

  return {
    run,
    client: new Proxy(client, {
      get(target, key) {
        if (key === 'query') return query
        if (key === 'release') return ignore
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    }),
    close(): void {
      isOpen = false
    },
  }
}

const OVER = 'The transaction of this message is over. Got a query. Await each query in the handler.'

function explain(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const { code } = error as { readonly code?: unknown }
  if (typeof code !== 'string' || !/^(?:22|23|25P02|40)/.test(code)) return unavailable(name, error)
  const message =
    code === FAILED_BEFORE
      ? `Queue ${name}: no statement of a handler may fail unseen. Got one that failed. Let errors of \`delivery.db\` reject the handler, or use a SAVEPOINT.`
      : `Queue ${name}: PostgreSQL refused what the handlers wrote. Got SQLSTATE ${code}. They run again.`
  return new HooklineError('handler_failed', message)
}

const FAILED_BEFORE = '25P02'
