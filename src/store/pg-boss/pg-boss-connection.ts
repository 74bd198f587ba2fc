/** The connection to pg-boss: starts it at the first call, starts it again when that failed, and bounds every wait. */

import { createHash, randomUUID } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import { type Db, PgBoss } from 'pg-boss'
import { systemClock } from '../../kit/clock.ts'
import { createPending, TIMED_OUT, within } from '../../kit/timeout.ts'
import { describeError, HooklineError } from '../../protocol/error.ts'
import type { QueueUse } from '../queue-types.ts'
import type { Settings } from './pg-boss-options.ts'

export type Connection = ReturnType<typeof createConnection>

const CLOSE_MS = 200
const START_FACTOR = 10
const SUPERVISE_SECONDS = 10
/** The schema was dropped. The next call creates it again. */
const UNDEFINED_TABLE = '42P01'
/** Where transactions are serializable by default: pg-boss does the same again when it supervises next. It listens again by itself, too. */
const SERIALIZATION_FAILURE = '40001'
const CLOSED = 'the queue closed before PostgreSQL responded'

class NoResponse extends Error {}

export function createConnection(
  settings: Settings,
  prepare: (boss: PgBoss, use: QueueUse | undefined) => Promise<void>,
) {
  const { name, schema, timeoutMs, onError } = settings
  const sockets = createSockets() // Of a pg-boss of ours.
  const pending = createPending()
  const channel = `hookline_${createHash('sha1').update(`${schema} ${name}`).digest('hex')}`
  const self: string = randomUUID()
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
    void stop()
    sockets.destroy()
    opening = undefined
    starting = undefined
  }

  async function stop(): Promise<void> {
    const stopping = [listening?.then((handle) => handle.close()), ours?.stop({ graceful: false })]
    listening = undefined
    await Promise.allSettled(stopping)
  }

  async function start(): Promise<PgBoss> {
    if (settings.boss !== undefined) return settings.boss
    ours = createBoss(settings, createSocket).on('error', reportError)
    return ours.start()
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
    if (onPush === undefined || listening !== undefined || settings.boss !== undefined) return
    const wake = onPush
    listening = boss.getDb().listen?.(channel, (pusher) => pusher !== self && wake(), wake)
    listening?.catch(() => {}) // Not tried again before the next start.
  }

  function reportError(error: Error): void {
    const { code, message } = error as Error & { readonly code?: unknown }
    const isExpected = code === SERIALIZATION_FAILURE || message.startsWith('LISTEN/NOTIFY')
    if (closing === undefined && !isExpected) onError(unavailable(name, error))
  }

  function createSocket(): Socket {
    if (closing !== undefined) throw new Error(CLOSED)
    return sockets.create()
  }

  async function inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
    const result = await pending.wait(answer, limitMs)
    if (result === TIMED_OUT) throw new NoResponse(`no response within ${limitMs} ms`)
    return result
  }

  async function attempt<T>(make: (boss: PgBoss) => Promise<T>, limitMs: number): Promise<T> {
    try {
      if (closing !== undefined) throw new Error(CLOSED)
      return await make(await inTime(open(), limitMs))
    } catch (error) {
      if (error instanceof NoResponse) sockets.destroy()
      if (opening !== undefined && (error as { readonly code?: unknown }).code === UNDEFINED_TABLE) startAnew()
      throw unavailable(name, error)
    }
  }

  /** Calls what needs no transaction. */
  function call<T>(make: (boss: PgBoss) => Promise<T>, limitMs = timeoutMs): Promise<T> {
    return attempt((boss) => inTime(make(boss), limitMs), limitMs)
  }

  /**
   * Runs statements in a transaction. One half of the time is for the statements, and one for the end: PostgreSQL itself ends each that
   * takes longer, so that nothing is done after its caller has given up. What is rejected is not done, unless the answer to COMMIT was lost.
   */
  function transact<T>(
    make: (boss: PgBoss, db: Db) => Promise<T>,
    limitMs = timeoutMs,
    end: 'commit' | 'rollback' = 'commit',
  ): Promise<T> {
    const halfMs = Math.ceil(limitMs / 2)
    return attempt(async (boss) => {
      const beginning = (boss.getDb() as Required<Db>).beginTransaction() // The options require it.
      let isOver = false
      const executeSql: Db['executeSql'] = async (text, values) => {
        const { db } = await beginning
        if (isOver) throw new Error('the transaction is over')
        return db.executeSql(text, values)
      }
      async function run(): Promise<T> {
        await executeSql(limitsOf(halfMs, limitMs))
        return make(boss, { executeSql })
      }
      try {
        const result = await inTime(run(), halfMs)
        isOver = true
        const transaction = await beginning
        await inTime(transaction[end](), halfMs)
        return result
      } catch (error) {
        isOver = true
        beginning.then((begun) => begun.rollback()).catch(() => {})
        throw error
      }
    }, limitMs)
  }

  async function finish(): Promise<void> {
    pending.rejectAll(new Error(CLOSED))
    await within(stop(), CLOSE_MS, systemClock)
    sockets.destroy()
  }

  return {
    reserve(reservedFor: QueueUse): void {
      use = reservedFor
      opening = undefined
    },
    call,
    opened: () => call(async (boss) => boss),
    transact,
    inTime,
    /** Calls back soon after another process has pushed. */
    onPush(listener: () => void): void {
      onPush = listener
      opening?.then(listen, () => {})
    },
    /** Wakes the workers of other processes; in a transaction, once it commits, which must see the queue: without it, pg-boss stores nothing. */
    async notify(db?: Db): Promise<void> {
      const statement = `SELECT pg_notify($1, $2) FROM ${schema}.hookline_queue WHERE name = $3`
      const send = (to: Db) => to.executeSql(statement, [channel, self, name])
      const { rows } = await (db === undefined ? call((boss) => send(boss.getDb())) : send(db))
      if (rows.length === 0) throw unseen(name)
    },
    close(): Promise<void> {
      closing ??= finish()
      return closing
    },
  }
}

/** Whatever the defaults of the database are. A process that stops in the middle holds its rows no longer than others wait. */
export function limitsOf(statementMs: number, idleMs: number): string {
  return `SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = ${statementMs};
    SET LOCAL lock_timeout = ${statementMs}; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`
}

/** The sockets of a pool. One that stays silent would be in the way of all calls that follow, and keep the process alive. */
export function createSockets() {
  const open = new Set<Socket>()
  return {
    create(): Socket {
      const socket = new Socket().setKeepAlive(true, 10_000)
      open.add(socket)
      return socket.once('close', () => open.delete(socket))
    },
    destroy(): void {
      for (const socket of open) socket.destroy()
    },
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
    ...{ stream, onConnect: survive }, // Options of pg, which pg-boss passes its options on to.
  })
}

/** Without a listener, PostgreSQL ends the process when it closes a connection that is new. Those who use it learn from their next statement. */
export function survive(client: Pick<EventEmitter, 'on'>): void {
  client.on('error', () => {})
}

/** What PostgreSQL, pg-boss or the connection threw, without the rows, bodies and passwords that it may hold. */
export function unavailable(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const cause = redact(error)
  const found = cause.message.replace(/\.$/, '')
  const text = `Queue ${name}: PostgreSQL failed. Got ${found}. ${adviceOn(found)}`
  return new HooklineError('queue_unavailable', text, { cause })
}

function adviceOn(found: string): string {
  return ADVICE.get(found) ?? 'Check that it runs, can be reached and accepts the user.'
}

/** By what pg-boss says to an observer, which creates and migrates nothing. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['pg-boss is not installed', 'Check the schema, or start what pushes to the queue first.'],
  ['pg-boss database requires migrations', 'Install the pg-boss of the workers.'],
])

/** Whether one of the jobs is at fault: the others can be done without it. */
export function isFaultOfItems(error: unknown): boolean {
  const { code, cause } = error as HooklineError
  return code === 'lease_lapsed' || isOfData((cause as { readonly code?: unknown } | undefined)?.code)
}

function isOfData(code: unknown): boolean {
  return typeof code === 'string' && /^(?:22|23|54)/.test(code)
}

function unseen(name: string): HooklineError {
  const found = 'a `db` of another database, or a snapshot from before the queue was opened'
  const message = `The transaction must see queue ${name}. Got ${found}. Roll back, and begin again in the database of the queue.`
  return new HooklineError('queue_unavailable', message)
}

export function lapsed(name: string): HooklineError {
  const rule = 'a claim must last until its job is completed'
  const message = `Queue ${name}: ${rule}. Got one whose lease has ended. Another worker handles the job.`
  return new HooklineError('lease_lapsed', message)
}

function redact(error: unknown): Error {
  // Several addresses that all refuse come as one error without a message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return new Error(describeError(first))
  const { code, message } = first as Error & { readonly code?: unknown }
  const text = isOfData(code) ? `SQLSTATE ${code}` : message
  return Object.assign(new Error(text), code === undefined ? {} : { code })
}
