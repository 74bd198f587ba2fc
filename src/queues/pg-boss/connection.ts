/** The connection to pg-boss: starts it at the first call, starts it again when that failed, and bounds every wait. */

import { Socket } from 'node:net'
import { type Db, PgBoss } from 'pg-boss'
import { systemClock } from '../../time/clock.ts'
import { createPending } from '../../time/pending.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { QueueUse } from '../queue.ts'
import { unavailable } from './error.ts'
import type { Settings } from './options.ts'

/** How to make a call. */
interface CallOptions<T> {
  /** How long it may take, in milliseconds. Default `timeoutMs`. */
  readonly limitMs?: number
  /** Receives an answer that came later than that. */
  readonly onLate?: (answer: T) => unknown
}

/** The connection. Every call rejects with the HooklineError `queue_unavailable`. */
export interface Connection {
  /** From the next call on, the queue must have this use. */
  reserve(use: QueueUse): void
  call<T>(make: (boss: PgBoss) => Promise<T>, options?: CallOptions<T>): Promise<T>
  /** Makes calls in one transaction: each takes `{ db }`. */
  transaction<T>(make: (boss: PgBoss, db: Db) => Promise<T>, options?: CallOptions<T>): Promise<T>
  /** Rejects the calls under way and all later ones, and ends a pg-boss of ours within {@link CLOSE_MS}. */
  close(): Promise<void>
}

/** Prepares the queue in pg-boss for this use. */
export type Prepare = (boss: PgBoss, use: QueueUse | undefined) => Promise<void>

/** The longest that closing waits for PostgreSQL, in milliseconds. */
const CLOSE_MS = 200

/** Creates a connection that is not open yet. `prepare` runs after each start of pg-boss, before the first call. */
export function createConnection(settings: Settings, prepare: Prepare): Connection {
  const { name, timeoutMs, onError } = settings
  const isOurs = settings.boss === undefined
  const sockets = new Set<Socket>() // Of a pg-boss of ours.
  const pending = createPending()
  let opening: Promise<PgBoss> | undefined
  let opened: PgBoss | undefined
  let use: QueueUse | undefined
  let closing: Promise<void> | undefined

  function open(): Promise<PgBoss> {
    return opening ?? keep(start())
  }

  /** Until it fails. */
  function keep(started: Promise<PgBoss>): Promise<PgBoss> {
    const kept = started.then(
      (boss) => {
        if (opening === kept) opened = boss
        return boss
      },
      (error) => {
        if (opening === kept) opening = undefined
        throw error
      },
    )
    opening = kept
    return kept
  }

  async function start(): Promise<PgBoss> {
    const boss = settings.boss ?? createBoss(settings, createSocket).on('error', reportError)
    return ready(boss, isOurs ? boss.start() : Promise.resolve())
  }

  async function ready(boss: PgBoss, started: Promise<unknown>): Promise<PgBoss> {
    try {
      await inTime(
        started.then(() => prepare(boss, use)),
        timeoutMs * START_FACTOR,
      )
      return boss
    } catch (error) {
      destroySockets()
      stop(boss).catch(() => {})
      throw error
    }
  }

  function reportError(error: unknown): void {
    if (closing === undefined) onError(unavailable(name, error))
  }

  async function stop(boss: PgBoss): Promise<void> {
    if (isOurs) await boss.stop({ graceful: false })
  }

  /** pg opens its connections over these. */
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

  /** Rejects when the time is over, by the machine's clock, and when the connection closes. */
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
      const boss = opened ?? (await inTime(open(), limitMs))
      const answer = make(boss)
      return await inTime(answer, limitMs).catch((error) => {
        if (error instanceof NoResponse) {
          answer.then(onLate, () => {})
          destroySockets()
        }
        throw error
      })
    } catch (error) {
      throw unavailable(name, error)
    }
  }

  async function end(): Promise<void> {
    pending.rejectAll(new Error(CLOSED))
    const stopped = opening?.then(stop).catch(() => {})
    if (stopped !== undefined) await within(stopped, CLOSE_MS, systemClock)
    destroySockets()
  }

  return {
    reserve(reservedFor) {
      use = reservedFor
      opened = undefined
      if (opening !== undefined) keep(opening.then((boss) => ready(boss, Promise.resolve()))).catch(() => {}) // Calls reject.
    },
    call,
    transaction: (make, options) => call((boss) => inTransaction(boss, 'commit', (db) => make(boss, db)), options),
    close() {
      closing ??= end()
      return closing
    },
  }
}

/** Runs calls in one transaction, and then commits it or rolls it back. */
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

class NoResponse extends Error {}

const CLOSED = 'the queue closed before PostgreSQL responded'

/** To create a schema, or to migrate one, takes a while. */
const START_FACTOR = 10

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

/** How often leases that are over are looked for. */
const SUPERVISE_SECONDS = 10
