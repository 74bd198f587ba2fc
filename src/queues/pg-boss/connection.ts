/** The connection to pg-boss: starts it at the first call, starts it again when that failed, and bounds every wait. */

import { createHash } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import { type Db, PgBoss } from 'pg-boss'
import { describeError, HooklineError } from '../../message/error.ts'
import { systemClock } from '../../time/clock.ts'
import { createPending, TIMED_OUT, within } from '../../time/timeout.ts'
import type { QueueUse } from '../api.ts'
import type { Settings } from './options.ts'

interface CallOptions<T> {
  /** How long it may take, in milliseconds. Default `timeoutMs`. */
  readonly limitMs?: number
  /** Receives an answer that came later than that. */
  readonly onLate?: (answer: T) => unknown
}

export type Connection = ReturnType<typeof createConnection>

const CLOSE_MS = 200
const START_FACTOR = 10
const SUPERVISE_SECONDS = 10
/** The schema was dropped. The next call creates it again. */
const UNDEFINED_TABLE = '42P01'
const CLOSED = 'the queue closed before PostgreSQL responded'

class NoResponse extends Error {}

export function createConnection(
  settings: Settings,
  prepare: (boss: PgBoss, use: QueueUse | undefined) => Promise<void>,
) {
  const { name, timeoutMs, onError } = settings
  const sockets = new Set<Socket>() // Of a pg-boss of ours.
  const pending = createPending()
  let ours: PgBoss | undefined
  let starting: Promise<PgBoss> | undefined
  let opening: Promise<PgBoss> | undefined
  let use: QueueUse | undefined
  let onPush: (() => void) | undefined
  let listening: Promise<{ close(): Promise<void> }> | undefined
  let closing: Promise<void> | undefined

  /** Starts and prepares it; again after a failure. */
  function open(): Promise<PgBoss> {
    opening ??= inTime(prepared(), timeoutMs * START_FACTOR).catch((error) => {
      startAnew()
      throw error
    })
    return opening
  }

  function startAnew(): void {
    opening = undefined
    starting = undefined
    stopListening()
    destroySockets()
    stop().catch(() => {})
  }

  async function start(): Promise<PgBoss> {
    if (settings.boss !== undefined) return settings.boss
    ours = createBoss(settings, createSocket).on('error', reportError)
    const started = await ours.start()
    const { pool } = started.getDb() as { readonly pool?: EventEmitter }
    if (pool !== undefined) survive(pool)
    return started
  }

  async function prepared(): Promise<PgBoss> {
    starting ??= start()
    const running = await starting
    await prepare(running, use)
    listen(running)
    return running
  }

  /** Over a connection of its own, which pg-boss keeps. If it cannot be opened, `pollMs` finds what others push. */
  function listen(boss: PgBoss): void {
    const db = boss.getDb() as Db
    if (onPush === undefined || listening !== undefined || settings.boss !== undefined) return
    const wake = onPush
    listening = db.listen?.(channelOf(settings.schema), (queue) => queue === name && wake(), wake)
    listening?.catch(() => {}) // Not tried again before the next start.
  }

  function stopListening(): void {
    listening?.then((handle) => handle.close()).catch(() => {})
    listening = undefined
  }

  function reportError(error: unknown): void {
    if (closing === undefined && !isOfListening(error)) onError(unavailable(name, error))
  }

  async function stop(): Promise<void> {
    await ours?.stop({ graceful: false })
  }

  function createSocket(): Socket {
    if (closing !== undefined) throw new Error(CLOSED)
    const socket = new Socket().setKeepAlive(true, 10_000)
    sockets.add(socket)
    return socket.once('close', () => sockets.delete(socket))
  }

  /** A PostgreSQL that does not answer would keep them open, in the pool and for the process. */
  function destroySockets(): void {
    for (const socket of sockets) socket.destroy()
  }

  async function inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
    const result = await pending.wait(answer, limitMs)
    if (result === TIMED_OUT) throw new NoResponse(`no response within ${limitMs} ms`)
    return result
  }

  async function call<T>(
    make: (boss: PgBoss) => Promise<T>,
    { limitMs = timeoutMs, onLate }: CallOptions<T> = {},
  ): Promise<T> {
    try {
      if (closing !== undefined) throw new Error(CLOSED)
      const boss = await inTime(open(), limitMs)
      const answer = make(boss)
      return await inTime(answer, limitMs).catch((error) => {
        if (error instanceof NoResponse) {
          answer.then(onLate, () => {})
          destroySockets()
        }
        throw error
      })
    } catch (error) {
      if (opening !== undefined && (error as { readonly code?: unknown }).code === UNDEFINED_TABLE) startAnew()
      throw unavailable(name, error)
    }
  }

  async function end(): Promise<void> {
    pending.rejectAll(new Error(CLOSED))
    stopListening()
    const stopped = starting?.then(stop).catch(() => {})
    if (stopped !== undefined) await within(stopped, CLOSE_MS, systemClock)
    destroySockets()
  }

  return {
    reserve(reservedFor: QueueUse): void {
      use = reservedFor
      opening = undefined
    },
    call,
    /** Calls back soon after any process has pushed. */
    onPush(listener: () => void): void {
      onPush = listener
      opening?.then(listen, () => {})
    },
    transaction: <T>(make: (boss: PgBoss, db: Db) => Promise<T>, options?: CallOptions<T>) =>
      call((boss) => inTransaction(boss, 'commit', (db) => make(boss, db)), options),
    close(): Promise<void> {
      closing ??= end()
      return closing
    },
  }
}

/** As pg-boss names it. */
function channelOf(schema: string): string {
  return `pgboss_${createHash('sha224').update(schema).digest('hex').slice(0, 24)}`
}

/** What pg-boss says of it. A failure of that connection is otherwise reported as any other. */
function isOfListening(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('LISTEN/NOTIFY')
}

const survives = new WeakSet<EventEmitter>()

/** Adds an `error` listener to each connection as it opens. Without one, PostgreSQL ends the process when it closes a new connection. */
export function survive(pool: EventEmitter): void {
  if (survives.has(pool)) return
  survives.add(pool)
  pool.on('connect', (client: EventEmitter) => client.on('error', () => {}))
}

export async function inTransaction<T>(
  boss: PgBoss,
  end: 'commit' | 'rollback',
  make: (db: Db) => Promise<T>,
): Promise<T> {
  const transaction = await (boss.getDb() as Required<Db>).beginTransaction() // The options require it.
  try {
    const result = await make(transaction.db)
    await transaction[end]()
    return result
  } catch (error) {
    await transaction.rollback()
    throw error
  }
}

function createBoss({ connectionString, schema, max, timeoutMs, observe }: Settings, stream: () => Socket): PgBoss {
  return new PgBoss({
    connectionString: connectionString as string, // The options require it, or a boss.
    schema,
    max,
    application_name: 'hookline',
    connectionTimeoutMillis: timeoutMs,
    schedule: false,
    migrate: !observe, // Then pg-boss checks the version of its tables.
    supervise: !observe,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    maintenanceIntervalSeconds: 60,
    ...{ stream }, // An option of pg, which pg-boss passes its options on to.
  })
}

/** What PostgreSQL, pg-boss or the connection threw, without the rows, bodies and passwords that it may hold. */
export function unavailable(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const cause = redact(error)
  const refused = REFUSED.get(cause.message)
  if (refused !== undefined) {
    const [rule, tables, advice] = refused
    return new HooklineError(
      'queue_unavailable',
      `Queue ${name} cannot use PostgreSQL: ${rule}. Got ${tables}. ${advice}`,
    )
  }
  const found = cause.message.replace(/\.$/, '')
  const message = `Queue ${name}: PostgreSQL failed. Got ${found}. Check that it runs, can be reached and accepts the user.`
  return new HooklineError('queue_unavailable', message, { cause })
}

/** By what pg-boss says to an observer, which creates and migrates nothing. */
const REFUSED: ReadonlyMap<string, readonly [rule: string, found: string, advice: string]> = new Map([
  [
    'pg-boss is not installed',
    ['the schema has no queues', 'no tables of pg-boss', 'Check the schema, or start what pushes to the queue first.'],
  ],
  [
    'pg-boss database requires migrations',
    [
      'its tables are of another version of pg-boss',
      'one that the pg-boss here does not know',
      'Install that of the workers.',
    ],
  ],
])

export function isFaultOfData(error: unknown): boolean {
  return isOfData(((error as HooklineError).cause as { readonly code?: unknown } | undefined)?.code)
}

function isOfData(code: unknown): boolean {
  return typeof code === 'string' && /^(?:22|23|54)/.test(code)
}

function redact(error: unknown): Error {
  // Several addresses that all refuse come as one error without a message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return new Error(describeError(first))
  const { code, message } = first as Error & { readonly code?: unknown }
  const text = isOfData(code) ? `SQLSTATE ${code}` : message
  return Object.assign(new Error(text), code === undefined ? {} : { code })
}
