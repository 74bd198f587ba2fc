/** The way to pg-boss: starts it when it is needed, tries again when that failed, and waits for no answer for ever. */

import { PgBoss } from 'pg-boss'
import { report } from '../protocol/report.ts'
import { unavailable } from './pg-boss-error.ts'
import type { Settings } from './pg-boss-options.ts'
import { FOREVER_SECONDS } from './pg-boss-row.ts'

/** What pg-boss runs statements on. */
type Database = ReturnType<PgBoss['getDb']>

/** A pg-boss that is ready, with the queue in it. */
export interface Session {
  readonly boss: PgBoss
  /** For calls of pg-boss and statements of our own: ends them in time too, where that is in our hands. */
  readonly db: Database
}

/** How to make a call. */
interface CallOptions<T> {
  /** How long it may take, in milliseconds. Default: `timeoutMs`. */
  readonly limitMs?: number
  /** Sees an answer that came too late. */
  readonly late?: (answer: T) => void
}

/** The way. */
export interface Connection {
  /** @throws HooklineError `queue_unavailable` (as a rejection). */
  call<T>(make: (session: Session) => Promise<T>, options?: CallOptions<T>): Promise<T>
  /** Waits for the calls under way, and ends what is ours. A call made later opens a way of its own, and closes it. */
  close(): Promise<void>
}

interface Opened {
  readonly boss: PgBoss
  end(): Promise<void>
}

/** Makes it, and connects to nothing yet. */
export function createConnection(settings: Settings): Connection {
  const { name, timeoutMs } = settings
  const calls = new Set<Promise<unknown>>()
  let opening: Promise<Opened> | undefined
  let isClosed = false

  function open(): Promise<Opened> {
    opening ??= openBoss(settings).catch((error) => {
      opening = undefined
      throw error
    })
    return opening
  }

  async function reach<T>(make: (session: Session) => Promise<T>, limitMs: number): Promise<T> {
    const isLate = isClosed
    const until = performance.now() + limitMs
    const opened = await (isLate ? openBoss(settings) : open())
    try {
      if (performance.now() >= until) throw new Error('too late') // Nobody waits any more.
      const db = opened.boss.getDb()
      return await make({ boss: opened.boss, db: settings.boss === undefined ? limited(db, limitMs) : db })
    } finally {
      if (isLate) await opened.end()
    }
  }

  async function call<T>(
    make: (session: Session) => Promise<T>,
    { limitMs = timeoutMs, late }: CallOptions<T> = {},
  ): Promise<T> {
    const answer = reach(make, limitMs)
    calls.add(answer)
    try {
      return await within(limitMs, answer, late)
    } catch (error) {
      throw unavailable(name, error)
    } finally {
      calls.delete(answer)
    }
  }

  return {
    call,
    async close() {
      isClosed = true
      await Promise.allSettled([...calls].map((answer) => within(timeoutMs, answer)))
      if (opening === undefined) return
      await within(
        timeoutMs,
        opening.then(({ end }) => end()),
      ).catch(() => {})
    },
  }
}

/** Waits for an answer, by the machine's clock: it comes over a real socket. */
async function within<T>(ms: number, answer: Promise<T>, late?: (answer: T) => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      isOver = true
      reject(new Error(`no answer within ${Math.round(ms)} ms`))
    }, ms)
  })
  answer.then(
    (value) => isOver && late?.(value),
    () => {},
  )
  try {
    return await Promise.race([answer, over])
  } finally {
    clearTimeout(timer)
  }
}

async function openBoss(settings: Settings): Promise<Opened> {
  const { boss } = settings
  if (boss === undefined) return openOwn(settings)
  await createQueue(boss, settings)
  return { boss, end: async () => {} }
}

async function openOwn(settings: Settings): Promise<Opened> {
  const { name, connectionString, schema, max, timeoutMs, leaseMs, onError } = settings
  const seconds = Math.min(60, Math.floor(leaseMs / 1000))
  const boss = new PgBoss({
    connectionString: connectionString as string, // There is one where there is no boss.
    schema,
    max,
    application_name: 'hookline',
    connectionTimeoutMillis: timeoutMs,
    schedule: false,
    superviseIntervalSeconds: seconds,
    monitorIntervalSeconds: seconds,
    maintenanceIntervalSeconds: 60 * 60,
    ...FOR_PG,
  })
  boss.on('error', (error) => report(onError, unavailable(name, error), undefined))
  const end = () => boss.stop({ graceful: false })
  try {
    await within(
      timeoutMs * PATIENCE,
      boss.start().then(() => createQueue(boss, settings)),
    )
  } catch (error) {
    end().catch(() => {}) // It waits for the start, which may wait for an answer that never comes.
    throw error
  }
  return { boss, end }
}

/** To make a schema, or a newer one, takes a while. */
const PATIENCE = 10

/** What pg-boss hands on to pg: its own work, too, must not wait for ever for an answer that never comes. */
const FOR_PG = { keepAlive: true, keepAliveInitialDelayMillis: 10_000, query_timeout: 15 * 60_000 }

async function createQueue(boss: PgBoss, { name, schema }: Settings): Promise<void> {
  await boss.createQueue(name)
  // Also of one that is there: pg-boss is to give up no job by itself, and to delete none that waits.
  await boss.updateQueue(name, { retryLimit: FOREVER_SECONDS, retryDelay: 0, retentionSeconds: FOREVER_SECONDS })
  const { rows } = await boss.getDb().executeSql(`SELECT FROM ${schema}.queue WHERE name = $1`, [name])
  if (rows.length === 0) throw new Error(`the boss has another schema than ${schema}: say which`)
}

/** The database of a pg-boss of ours hands on what pg takes: a statement with a time limit, past which its socket ends. */
function limited(db: Database, limitMs: number): Database {
  return {
    executeSql: (text, values) =>
      db.executeSql({ text, query_timeout: Math.max(1, Math.round(limitMs)) } as unknown as string, values),
  }
}
