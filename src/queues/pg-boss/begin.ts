/** The transactions of handlers: a client of `pg` each, in which the job is completed, too. */

import type { Db } from 'pg-boss'
import { HooklineError } from '../../message/error.ts'
import type { JobTransaction } from '../api.ts'
import { type Connection, unavailable } from './connection.ts'
import type { CompleteJob } from './history.ts'
import type { Pool, PoolClient, Settings } from './options.ts'
import type { PgBossClaim } from './rows.ts'

export function createTransactions(connection: Connection, settings: Settings, complete: CompleteJob) {
  const { name, timeoutMs } = settings
  let opening: Promise<OwnPool> | undefined

  async function connect(): Promise<PoolClient> {
    if (settings.db !== undefined) return settings.db.connect()
    opening ??= openPool(settings)
    return (await opening).connect()
  }

  async function begin(claim: PgBossClaim, limitMs: number): Promise<JobTransaction> {
    const client = await connect().catch((error) => {
      throw unavailable(name, error)
    })
    let isOver = false
    const ignore = (): void => {} // A lost connection: the next statement fails, and says so.
    client.on('error', ignore)

    function end(destroy: boolean): void {
      isOver = true
      client.off('error', ignore)
      if (destroy) client.on('error', ignore) // It may still come.
      client.release(destroy)
    }

    /** On our own connection, because this one may be busy: it ends the statement that runs, and all of the transaction. */
    async function rollback(): Promise<void> {
      if (isOver) return
      const { processID } = client
      end(true)
      const terminate = 'SELECT pg_terminate_backend($1)'
      await connection.call((boss) => boss.getDb().executeSql(terminate, [processID])).catch(() => {})
    }

    try {
      await client.query('BEGIN')
      // The process may stop, or be cut off: then nobody else would end it.
      for (const setting of ['statement_timeout', 'idle_in_transaction_session_timeout']) {
        await client.query(`SET LOCAL ${setting} = ${Math.min(limitMs, MAX_SETTING)}`)
      }
    } catch (error) {
      await rollback()
      throw unavailable(name, error)
    }

    return {
      db: client,
      async commit(keep) {
        if (client.getTransactionStatus?.() === 'I') throw endedBefore(name)
        const db: Db = { executeSql: (text, values) => client.query(text, values) as never }
        const boss = await connection.call(async (opened) => opened)
        try {
          if (!(await complete(claim, keep, boss, db))) throw lapsed(name)
          await client.query('COMMIT')
        } catch (error) {
          throw (error as { readonly code?: unknown }).code === FAILED_BEFORE
            ? endedBefore(name)
            : unavailable(name, error)
        }
        end(false)
      },
      rollback,
    }
  }

  return {
    begin: (claim: PgBossClaim, limitMs: number) => begin(claim, Math.max(limitMs, timeoutMs)),
    async close(): Promise<void> {
      await (await opening?.catch(() => undefined))?.end()
    },
  }
}

/** The greatest of such settings, in milliseconds. */
const MAX_SETTING = 2 ** 31 - 1

interface OwnPool extends Pool {
  end(): Promise<void>
  on(event: 'error', listener: () => void): unknown
}

/** pg-boss brings `pg`, but gives out no client. */
async function openPool({ connectionString, timeoutMs }: Settings): Promise<OwnPool> {
  const { default: pg } = await import('pg').catch(() => {
    const advice = 'Run npm install pg, or pass your own pool as `db`.'
    throw new TypeError(`\`inbox.transactional\` needs the package pg. Got none. ${advice}`)
  })
  // The concurrency of the inbox bounds how many are open.
  const pool = new pg.Pool({
    connectionString,
    max: 1_000,
    connectionTimeoutMillis: timeoutMs,
    application_name: 'hookline handlers',
    allowExitOnIdle: true,
  })
  return pool.on('error', () => {}) as never // Of a connection that is idle: the pool opens another one.
}

function lapsed(name: string): HooklineError {
  const rule = 'a claim must last until its transaction commits'
  return new HooklineError(
    'lease_lapsed',
    `Queue ${name}: ${rule}. Got one that is over. Another worker handles the job.`,
  )
}

/** A statement failed, and the handler went on; or a handler ended the transaction. */
function endedBefore(name: string): HooklineError {
  const rule = 'the transaction of a handler must last until the handlers have ended'
  const advice =
    'Let errors of `delivery.db` reject the handler or use a SAVEPOINT, and leave COMMIT and ROLLBACK to the inbox.'
  return new HooklineError('handler_failed', `Queue ${name}: ${rule}. Got one that is over. ${advice}`)
}

/** The transaction is aborted. */
const FAILED_BEFORE = '25P02'
