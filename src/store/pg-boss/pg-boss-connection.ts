/** The connection to pg-boss: starts pg-boss at the first call, starts it again after a failure, and limits every wait. */

import { createHash, randomUUID } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import { type Db, PgBoss } from 'pg-boss'
import { systemClock } from '../../kit/clock.ts'
import { createPending, TIMED_OUT, withTimeout } from '../../kit/timeout.ts'
import { describeError, HooklineError } from '../../protocol/error.ts'
import type { QueueUse } from '../queue-types.ts'
import type { Settings } from './pg-boss-options.ts'

const CLOSE_MS = 200
/** Starting pg-boss may take this many times as long as a call, because it may create the schema. */
const START_FACTOR = 10
const SUPERVISE_SECONDS = 10
/** PostgreSQL's code for a missing table, for example after the schema was dropped. The next call creates the table again. */
const UNDEFINED_TABLE = '42P01'
/** PostgreSQL's code for a conflict between transactions, which can occur if the database's default isolation level is serializable. */
const SERIALIZATION_FAILURE = '40001'
const CLOSED = 'the queue closed before PostgreSQL responded'

class NoResponse extends Error {}

/** Creates or checks the queues in pg-boss, before the first call. */
type Prepare = (boss: PgBoss, use: QueueUse | undefined) => Promise<void>

export class Connection {
  readonly #settings: Settings
  readonly #prepare: Prepare
  /** The sockets of the pg-boss instance that this connection starts. */
  readonly #sockets = createSockets()
  readonly #pending = createPending()
  readonly #channel: string
  readonly #self: string = randomUUID()
  #ownBoss: PgBoss | undefined
  #starting: Promise<PgBoss> | undefined
  /** Resolves when pg-boss has started and its queues are prepared. */
  #opening: Promise<PgBoss> | undefined
  #use: QueueUse | undefined
  #onPush: (() => void) | undefined
  #listening: Promise<{ close(): Promise<void> }> | undefined
  #closing: Promise<void> | undefined

  constructor(settings: Settings, prepare: Prepare) {
    const { name, schema } = settings
    this.#settings = settings
    this.#prepare = prepare
    this.#channel = `hookline_${createHash('sha1').update(`${schema} ${name}`).digest('hex')}`
  }

  reserve(use: QueueUse): void {
    this.#use = use
    // The next call prepares the queues again. This stores the use, or fails if the jobs are reserved for the other use.
    this.#opening = undefined
  }

  /** Resolves to pg-boss when it has started and its queues are prepared. */
  opened(): Promise<PgBoss> {
    return this.call(async (boss) => boss)
  }

  /** Makes a call without a transaction. */
  call<T>(make: (boss: PgBoss) => Promise<T>, limitMs = this.#settings.timeoutMs): Promise<T> {
    return this.#attempt((boss) => this.inTime(make(boss), limitMs), limitMs)
  }

  /**
   * Runs statements in a transaction. Half of the time limit is for the statements, and half for ending the transaction. PostgreSQL itself
   * cancels a statement that takes longer than half, so that nothing is changed after the caller has given up. If this call rejects,
   * nothing was changed, unless only the answer to COMMIT was lost.
   *
   * @param ending With `rollback`, the statements are undone even if they succeed, for callers that only need their results.
   */
  transact<T>(
    make: (boss: PgBoss, db: Db) => Promise<T>,
    limitMs = this.#settings.timeoutMs,
    ending: 'commit' | 'rollback' = 'commit',
  ): Promise<T> {
    const halfMs = Math.ceil(limitMs / 2)
    return this.#attempt(async (boss) => {
      // The first statement waits for the transaction, within the time limit. A transaction that begins later is rolled back. The check of
      // the options has ensured that `beginTransaction` exists.
      const beginning = (boss.getDb() as Required<Db>).beginTransaction()
      let isOver = false
      const executeSql: Db['executeSql'] = async (text, values) => {
        const { db } = await beginning
        if (isOver) throw new Error('the transaction ended before its next statement began')
        return db.executeSql(text, values)
      }
      async function runLimited(): Promise<T> {
        await executeSql(limitsOf(halfMs, limitMs))
        return make(boss, { executeSql })
      }
      try {
        const result = await this.inTime(runLimited(), halfMs)
        isOver = true
        const transaction = await beginning
        await this.inTime(transaction[ending](), halfMs)
        return result
      } catch (error) {
        isOver = true
        beginning.then((begun) => begun.rollback()).catch(() => {})
        throw error
      }
    }, limitMs)
  }

  /**
   * Waits for an answer.
   *
   * @throws Error if no answer arrives in time, or if the queue closes.
   */
  async inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
    const result = await this.#pending.wait(answer, limitMs)
    if (result === TIMED_OUT) throw new NoResponse(`no response within ${limitMs} ms`)
    return result
  }

  /** Calls `listener` soon after another process has pushed. */
  onPush(listener: () => void): void {
    this.#onPush = listener
    this.#opening?.then((boss) => this.#listen(boss)).catch(() => {})
  }

  /**
   * Wakes the workers of other processes. With a `db`, wakes them when its transaction commits. Rejects if the transaction does not see the
   * queue, because pg-boss has then stored nothing.
   */
  async notify(db?: Db): Promise<void> {
    const { name, schema } = this.#settings
    const statement = `SELECT pg_notify($1, $2) FROM ${schema}.hookline_queue WHERE name = $3`
    const send = (to: Db) => to.executeSql(statement, [this.#channel, this.#self, name])
    const { rows } = await (db === undefined ? this.call((boss) => send(boss.getDb())) : send(db))
    if (rows.length === 0) throw doesNotSeeQueue(name)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Opens the connection, and makes a call. Closes the connection if the call fails in a way that a new start may repair. */
  async #attempt<T>(make: (boss: PgBoss) => Promise<T>, limitMs: number): Promise<T> {
    try {
      if (this.#closing !== undefined) throw new Error(CLOSED)
      return await make(await this.inTime(this.#openBoss(), limitMs))
    } catch (error) {
      if (error instanceof NoResponse) this.#sockets.destroy()
      if (this.#opening !== undefined && codeOf(error) === UNDEFINED_TABLE) this.#reset()
      throw unavailable(this.#settings.name, error)
    }
  }

  /** Starts pg-boss and prepares its queues, once. After a failure, the next call tries again. */
  #openBoss(): Promise<PgBoss> {
    this.#opening ??= this.inTime(this.#startAndPrepare(), this.#settings.timeoutMs * START_FACTOR).catch((error) => {
      this.#reset()
      throw error
    })
    return this.#opening
  }

  async #startAndPrepare(): Promise<PgBoss> {
    this.#starting ??= this.#start()
    const boss = await this.#starting
    await this.#prepare(boss, this.#use)
    this.#listen(boss)
    return boss
  }

  async #start(): Promise<PgBoss> {
    if (this.#settings.boss !== undefined) return this.#settings.boss
    const boss = createBoss(this.#settings, () => this.#createSocket())
    this.#ownBoss = boss.on('error', (error) => this.#reportError(error))
    return this.#ownBoss.start()
  }

  #reset(): void {
    void this.#stop()
    this.#sockets.destroy()
    this.#opening = undefined
    this.#starting = undefined
  }

  async #stop(): Promise<void> {
    const stopping = [this.#listening?.then((handle) => handle.close()), this.#ownBoss?.stop({ graceful: false })]
    this.#listening = undefined
    await Promise.allSettled(stopping)
  }

  async #close(): Promise<void> {
    this.#pending.rejectAll(new Error(CLOSED))
    await withTimeout(this.#stop(), CLOSE_MS, systemClock)
    this.#sockets.destroy()
  }

  /**
   * Listens for pushes over a separate connection, which pg-boss keeps. Also wakes the worker whenever that connection is opened, because
   * pushes may have been missed. If the connection cannot be opened, the worker finds the jobs of other processes by polling every
   * `pollMs`.
   */
  #listen(boss: PgBoss): void {
    const wake = this.#onPush
    if (wake === undefined || this.#listening !== undefined || this.#settings.boss !== undefined) return
    this.#listening = boss.getDb().listen?.(this.#channel, (pusher) => pusher !== this.#self && wake(), wake)
    this.#listening?.catch(() => {}) // After a failure, the queue listens again only once pg-boss is started again.
  }

  /** Reports an error from pg-boss, unless pg-boss retries automatically after it or the queue is closing. */
  #reportError(error: Error): void {
    const isExpected = codeOf(error) === SERIALIZATION_FAILURE || error.message.startsWith('LISTEN/NOTIFY')
    if (this.#closing === undefined && !isExpected) this.#settings.onError(unavailable(this.#settings.name, error))
  }

  /**
   * Serves as the `stream` option of `pg`, which calls this method for each new connection. A closing queue opens no more connections, and
   * `#sockets` can destroy the open ones.
   */
  #createSocket(): Socket {
    if (this.#closing !== undefined) throw new Error(CLOSED)
    return this.#sockets.create()
  }
}

/** Returns the code of an error from PostgreSQL or Hookline. */
export function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}

/**
 * Returns the statements that begin each transaction, so that its isolation level and time limits do not depend on the defaults of the
 * database. The time limits also ensure that a process that stops during a transaction does not lock rows for longer than other processes
 * wait for them.
 */
export function limitsOf(statementMs: number, idleMs: number): string {
  return `SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = ${statementMs};
    SET LOCAL lock_timeout = ${statementMs}; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`
}

/**
 * Returns an object that creates the sockets of a pool, and can destroy all of them. A silent socket that stays open would block later
 * calls, and keep the process alive.
 */
export function createSockets() {
  const openSockets = new Set<Socket>()
  return {
    create(): Socket {
      const socket = new Socket().setKeepAlive(true, 10_000)
      openSockets.add(socket)
      return socket.once('close', () => openSockets.delete(socket))
    },
    destroy(): void {
      for (const socket of openSockets) socket.destroy()
    },
  }
}

function createBoss({ connectionString, schema, max, timeoutMs, observe }: Settings, stream: () => Socket): PgBoss {
  return new PgBoss({
    connectionString: connectionString as string, // The options require a connection string if there is no `boss`.
    schema,
    max,
    application_name: 'hookline',
    connectionTimeoutMillis: timeoutMs,
    schedule: false,
    migrate: !observe, // If false, pg-boss only checks the version of its tables.
    supervise: !observe,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    maintenanceIntervalSeconds: 60,
    ...{ stream, onConnect: survive }, // Options of `pg`, which gets all options of pg-boss.
  })
}

/**
 * Ignores the `error` events of a client. Otherwise, the process would end if PostgreSQL closed a connection just after it was opened. The
 * next statement on the connection fails in any case.
 */
export function survive(client: Pick<EventEmitter, 'on'>): void {
  client.on('error', () => {})
}

/**
 * Turns an error from PostgreSQL, pg-boss or the connection into an error for users, without the rows, bodies or passwords that it may
 * contain.
 */
export function unavailable(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const cause = redact(error)
  const found = cause.message.replace(/\.$/, '')
  const advice = OBSERVER_ADVICE.get(found) ?? 'Check that PostgreSQL is running, can be reached and accepts the user.'
  const text = `Queue ${name}: a call to PostgreSQL failed: ${found}. ${advice}`
  return new HooklineError('queue_unavailable', text, { cause })
}

/** Advice for users of an observer, which creates and migrates nothing, keyed by the pg-boss error message. */
const OBSERVER_ADVICE: ReadonlyMap<string, string> = new Map([
  ['pg-boss is not installed', 'Check the schema, or first start the app that pushes to the queue.'],
  ['pg-boss database requires migrations', 'Install the pg-boss version that the workers use.'],
])

/** Returns whether a batch failed because of one of its jobs. If so, the other jobs are tried without it. */
export function isFaultOfItems(error: unknown): boolean {
  return codeOf(error) === 'lease_lapsed' || (error instanceof Error && isDataError(codeOf(error.cause)))
}

/** Returns whether a PostgreSQL error code stands for bad data, a violated constraint, or an exceeded limit. */
function isDataError(code: unknown): boolean {
  return typeof code === 'string' && /^(?:22|23|54)/.test(code)
}

function doesNotSeeQueue(name: string): HooklineError {
  const reason = 'The transaction is in another database, or its snapshot was taken before the queue was opened'
  const advice = 'Roll back, and begin a new transaction in the database of the queue.'
  const message = `The transaction of \`db\` does not see queue ${name}. ${reason}. ${advice}`
  return new HooklineError('queue_unavailable', message)
}

export function lapsed(name: string): HooklineError {
  const message = `Queue ${name}: the lease of a job ended before the job was completed. The job may be handled again. If this happens often, raise \`leaseMs\`.`
  return new HooklineError('lease_lapsed', message)
}

function redact(error: unknown): Error {
  // If a host has several addresses and all of them refuse, the error is an AggregateError without a message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return new Error(describeError(first))
  const code = codeOf(first)
  const text = isDataError(code) ? `SQLSTATE ${code}` : first.message
  return Object.assign(new Error(text), code === undefined ? {} : { code })
}
