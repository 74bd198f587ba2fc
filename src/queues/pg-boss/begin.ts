/** The transactions of handlers: a client of `pg` each, in which the job is completed, too. */

import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Db, PgBoss } from 'pg-boss'
import { HooklineError } from '../../message/error.ts'
import { systemClock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { JobTransaction } from '../api.ts'
import { type Connection, createSockets, limitsOf, unavailable } from './connection.ts'
import type { PgBossClaim } from './job.ts'
import type { Pool, PoolClient, Settings } from './options.ts'

/** How long a ROLLBACK may take. A statement that runs takes longer: then its server process is ended. */
const ROLLBACK_MS = 500
/** The greatest limit of PostgreSQL, in milliseconds. */
const MAX_LIMIT = 2 ** 31 - 1
const CLOSE_MS = 200
const ignore = (): void => {}

type Complete = (
  batch: readonly { readonly claim: PgBossClaim; readonly log: Uint8Array | undefined }[],
  boss: PgBoss,
  db: Db,
) => Promise<void>

export function createTransactions(connection: Connection, settings: Settings, complete: Complete) {
  const { name, timeoutMs } = settings
  const sockets = createSockets()
  let opening: Promise<OwnPool> | undefined
  if (settings.db instanceof EventEmitter) survive(settings.db)

  async function connect(): Promise<PoolClient> {
    if (settings.db !== undefined) return settings.db.connect()
    opening ??= openPool(settings, sockets.create)
    return (await opening).connect()
  }

  async function inTime<T>(answer: Promise<T>, ms = timeoutMs): Promise<T> {
    const result = await within(answer, ms, systemClock)
    if (result === TIMED_OUT) throw new Error(`no response within ${ms} ms`)
    return result
  }

  async function begin(claim: PgBossClaim, limitMs: number): Promise<JobTransaction> {
    const connecting = connect()
    const client = await inTime(connecting).catch((error) => {
      connecting.then((late) => late.release(true), ignore)
      throw unavailable(name, error)
    })
    client.on('error', ignore) // A lost connection: the next statement fails, and says so.
    const guarded = guard(client)
    let isOver = false
    let rollingBack: Promise<void> | undefined

    function end(destroy: boolean): void {
      if (isOver) return
      isOver = true
      if (!destroy) client.off('error', ignore)
      client.release(destroy)
    }

    async function rollBack(): Promise<void> {
      if (isOver) return
      guarded.close()
      try {
        await inTime(guarded.run('ROLLBACK'), ROLLBACK_MS)
        end(false)
      } catch {
        // Over our own connection. Before the pool gets the client: it would report the end of its connection.
        const terminate = 'SELECT pg_terminate_backend($1)'
        await connection.call((boss) => boss.getDb().executeSql(terminate, [client.processID])).catch(ignore)
        end(true)
      }
    }

    function rollback(): Promise<void> {
      rollingBack ??= rollBack()
      return rollingBack
    }

    async function completeJob(log: Uint8Array | undefined): Promise<void> {
      const boss = await connection.call(async (opened) => opened)
      const db: Db = { executeSql: (text, values) => guarded.run(text, values) as never }
      await complete([{ claim, log }], boss, db)
    }

    try {
      const limit = Math.min(limitMs, MAX_LIMIT) // Ends the transaction when the process stops or is cut off.
      await inTime(guarded.run('BEGIN'))
      await inTime(guarded.run(limitsOf(limit, limit)))
    } catch (error) {
      await rollback()
      throw unavailable(name, error)
    }
    return {
      db: guarded.client,
      async commit(log) {
        guarded.close()
        try {
          await inTime(completeJob(log))
          await inTime(guarded.run('COMMIT'))
        } catch (error) {
          throw explain(name, error)
        }
        end(false)
      },
      rollback,
    }
  }

  return {
    begin,
    async close(): Promise<void> {
      const pool = await opening?.catch(ignore)
      await within(Promise.resolve(pool?.end()), CLOSE_MS, systemClock)
      sockets.destroy()
    },
  }
}

interface OwnPool extends Pool {
  end(): Promise<void>
  on(event: 'error', listener: () => void): unknown
}

/** pg-boss brings `pg`, but gives out no client. */
async function openPool({ connectionString, timeoutMs }: Settings, stream: () => Socket): Promise<OwnPool> {
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
  survive(pool)
  return pool.on('error', ignore) as never // Of a connection that is idle: the pool opens another one.
}

const survives = new WeakSet<EventEmitter>()

/** Adds an `error` listener to each connection as it opens. Without one, PostgreSQL ends the process when it closes a new connection. */
function survive(pool: EventEmitter): void {
  if (survives.has(pool)) return
  survives.add(pool)
  pool.on('connect', (client: EventEmitter) => client.on('error', ignore))
}

type Query = (...args: unknown[]) => ReturnType<PoolClient['query']>

/**
 * The client as handlers see it, for this message alone: a query that comes later fails, and a library may release it. Those of several
 * handlers meet, and `pg` takes one at a time; a cursor goes to it at once.
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
    const [first, callback] = [args[0] as { readonly submit?: unknown } | string, args.at(-1)]
    if (typeof first === 'object' && typeof first.submit === 'function') {
      if (isOpen) return direct(...args)
      throw new Error(OVER)
    }
    if (typeof callback !== 'function') return isOpen ? run(...args) : Promise.reject(new Error(OVER))
    const answer = isOpen ? run(...args.slice(0, -1)) : Promise.reject(new Error(OVER))
    answer.then((result) => callback(null, result), callback as (error: unknown) => void)
    return undefined as never
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
  if (code === ABORTED) return failedBefore(name)
  if (typeof code !== 'string' || !/^(?:22|23|40)/.test(code)) return unavailable(name, error)
  const message = `Queue ${name}: PostgreSQL refused what the handlers wrote. Got SQLSTATE ${code}. They run again.`
  return new HooklineError('handler_failed', message)
}

function failedBefore(name: string): HooklineError {
  const rule = 'no statement of a handler may fail unseen'
  const advice = 'Let errors of `delivery.db` reject the handler, or use a SAVEPOINT.'
  return new HooklineError('handler_failed', `Queue ${name}: ${rule}. Got one that failed. ${advice}`)
}

/** A statement failed before. */
const ABORTED = '25P02'
