/** The transactions of handlers: a client of `pg` each, in which the job is completed, too. */

import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import type { Db } from 'pg-boss'
import { HooklineError } from '../../message/error.ts'
import { systemClock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { JobTransaction } from '../api.ts'
import { type Connection, survive, unavailable } from './connection.ts'
import type { Pool, PoolClient, Settings } from './options.ts'
import type { PgBossClaim } from './rows.ts'

/** How long a ROLLBACK may take. A statement that runs takes longer: then its server process is ended. */
const ROLLBACK_MS = 500
/** The greatest limit of PostgreSQL, in milliseconds. */
const MAX_LIMIT = 2 ** 31 - 1

export function createTransactions(connection: Connection, settings: Settings) {
  const { name, timeoutMs } = settings
  const sockets = new Set<Socket>()
  let opening: Promise<OwnPool> | undefined
  if (settings.db instanceof EventEmitter) survive(settings.db)

  async function connect(): Promise<PoolClient> {
    if (settings.db !== undefined) return settings.db.connect()
    opening ??= openPool(settings, sockets)
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
    const line = createLine(client)
    const facade = createFacade(client, line)
    /** A setting that ends with the transaction: a handler that committed has begun another one at most. */
    const mark = randomUUID()
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
      facade.close()
      try {
        await inTime(line.runLast('ROLLBACK'), ROLLBACK_MS)
        end(false)
      } catch {
        // Over our own connection. Before the pool gets the client: it would report the end of its connection.
        const terminate = 'SELECT pg_terminate_backend($1)'
        const { processID } = client
        await connection.call((boss) => boss.getDb().executeSql(terminate, [processID])).catch(ignore)
        end(true)
      }
    }

    function rollback(): Promise<void> {
      rollingBack ??= rollBack()
      return rollingBack
    }

    function limits(ms: number): string {
      const limit = Math.min(ms, MAX_LIMIT)
      // Ends the transaction when the process stops or is cut off.
      return `SET LOCAL statement_timeout = ${limit}; SET LOCAL idle_in_transaction_session_timeout = ${limit}`
    }

    async function finish(): Promise<void> {
      const checks = `${limits(timeoutMs)}; SELECT current_setting('hookline.mark', true) AS mark`
      const [, , marked] = (await line.run(checks)) as unknown as { readonly rows: { readonly mark: unknown }[] }[]
      if (marked?.rows[0]?.mark !== mark) throw endedBefore(name)
      const db: Db = { executeSql: (text, values) => line.run(text, values) as never }
      const boss = await connection.call(async (opened) => opened)
      const { affected } = (await boss.complete(name, [claim] as never, undefined, { db })) as {
        readonly affected: number
      }
      if (affected !== 1) throw lapsed(name)
      // PostgreSQL answers ROLLBACK when a statement has failed meanwhile.
      if ((await line.run('COMMIT')).command !== 'COMMIT') throw endedBefore(name)
    }

    try {
      await inTime(
        line.run(`BEGIN ISOLATION LEVEL READ COMMITTED; ${limits(limitMs)}; SET LOCAL hookline.mark = '${mark}'`),
      )
    } catch (error) {
      await rollback()
      throw unavailable(name, error)
    }
    return {
      db: facade.client,
      async commit() {
        facade.close()
        try {
          await inTime(finish())
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
      for (const socket of sockets) socket.destroy()
    },
  }
}

const CLOSE_MS = 200
const ignore = (): void => {}

interface OwnPool extends Pool {
  end(): Promise<void>
  on(event: 'error', listener: () => void): unknown
}

/** pg-boss brings `pg`, but gives out no client. */
async function openPool({ connectionString, timeoutMs }: Settings, sockets: Set<Socket>): Promise<OwnPool> {
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
    stream: () => {
      const socket = new Socket().setKeepAlive(true, 10_000)
      sockets.add(socket)
      return socket.once('close', () => sockets.delete(socket))
    },
  })
  survive(pool)
  return pool.on('error', ignore) as never // Of a connection that is idle: the pool opens another one.
}

/** What a statement must not begin with: ends of a transaction, and beginnings. */
const CONTROL =
  /^(?:begin|start|commit|end|abort|prepare\s+transaction|rollback(?!\s+(?:work\s+|transaction\s+)?to))\b/i

/** Returns what follows the spaces and comments that a statement begins with. PostgreSQL nests comments, and ends a line at \r, too. */
function skipComments(text: string): string {
  const pattern = { outside: /\s+|--[^\r\n]*|\/\*/y, inside: /\/\*|\*\/|[^*/]+|[*/]/y }
  let depth = 0
  for (let at = 0; ; ) {
    const token = depth > 0 ? pattern.inside : pattern.outside
    token.lastIndex = at
    const [found] = token.exec(text) ?? []
    if (found === undefined) return text.slice(at)
    if (found === '/*') depth += 1
    if (found === '*/') depth -= 1
    at += found.length
  }
}

type Query = PoolClient['query']
type Line = ReturnType<typeof createLine>

/** Runs one query after the other: those of several handlers meet, and `pg` takes one at a time. */
function createLine(client: PoolClient) {
  let last: Promise<unknown> = Promise.resolve()
  let isEnded = false

  function add(...args: Parameters<Query>): ReturnType<Query> {
    const answer = last.then(() => client.query(...args))
    last = answer.catch(ignore)
    return answer
  }

  return {
    run: (...args: Parameters<Query>) =>
      isEnded ? Promise.reject(new Error('the transaction is over')) : add(...args),
    /** What came after it would be outside of the transaction: it is refused. */
    runLast(text: string): ReturnType<Query> {
      isEnded = true
      return add(text)
    },
  }
}

/** The client as handlers see it: for this message alone, also for a library that releases it after each query. */
function createFacade(client: PoolClient, line: Line) {
  let isOpen = true

  function query(...args: Parameters<Query>): unknown {
    const [first] = args as readonly unknown[]
    if (isSubmittable(first)) return submit(first, args)
    const callback: unknown = args.at(-1)
    if (typeof callback !== 'function') return ask(...args)
    const asked = ask(...(args.slice(0, -1) as unknown as Parameters<Query>))
    return void asked.then((result) => callback(null, result), callback as (error: unknown) => void)
  }

  function ask(...args: Parameters<Query>): ReturnType<Query> {
    const refusal = refuse(args[0])
    return refusal === undefined ? line.run(...args) : Promise.reject(refusal)
  }

  /** A cursor or a stream. It hears of a refusal as from `pg`; without a listener, the process goes on. */
  function submit(query: Submittable, args: Parameters<Query>): unknown {
    const refusal = refuse(query)
    if (refusal === undefined) return client.query(...args)
    process.nextTick(() => {
      try {
        query.handleError?.(refusal, client.connection)
      } catch {
        // It has no listener for errors.
      }
    })
    return query
  }

  function refuse(given: unknown): Error | undefined {
    const text = typeof given === 'string' ? given : (given as { readonly text?: unknown } | null)?.text
    if (!isOpen) return new Error(`The transaction of this message is over. Got a query. ${AWAIT}`)
    const control = typeof text === 'string' ? CONTROL.exec(skipComments(text)) : null
    if (control === null) return undefined
    return new Error(`A handler must not begin or end a transaction. Got ${control[0].toUpperCase()}. Use a SAVEPOINT.`)
  }

  const facade = new Proxy(client, {
    get(target, key) {
      if (key === 'query') return query
      if (key === 'release') return ignore
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return {
    client: facade,
    close(): void {
      isOpen = false
    },
  }
}

interface Submittable {
  readonly submit: unknown
  handleError?(error: Error, connection: unknown): void
}

function isSubmittable(query: unknown): query is Submittable {
  return typeof (query as Partial<Submittable> | null | undefined)?.submit === 'function'
}

const AWAIT = 'Await each query in the handler.'

function explain(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const { code } = error as { readonly code?: unknown }
  if (code === ABORTED) return endedBefore(name)
  if (typeof code !== 'string' || !/^(?:22|23|40)/.test(code)) return unavailable(name, error)
  const message = `Queue ${name}: PostgreSQL refused what the handlers wrote. Got SQLSTATE ${code}. They run again.`
  return new HooklineError('handler_failed', message)
}

function lapsed(name: string): HooklineError {
  const rule = 'a claim must last until its transaction commits'
  const message = `Queue ${name}: ${rule}. Got one whose lease has ended. Another worker handles the job.`
  return new HooklineError('lease_lapsed', message)
}

/** A statement failed, and the handler went on; or a handler ended the transaction. */
function endedBefore(name: string): HooklineError {
  const rule = 'the transaction of a handler must last until the handlers have ended'
  const advice = 'Let errors of `delivery.db` reject the handler or use a SAVEPOINT, and leave the end to the inbox.'
  return new HooklineError('handler_failed', `Queue ${name}: ${rule}. Got one that failed or ended before. ${advice}`)
}

/** A statement failed before. */
const ABORTED = '25P02'
