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

const CLOSE_MS = 200
const START_FACTOR = 10
const SUPERVISE_SECONDS = 10
/** The schema was dropped. The next call creates it again. */
const UNDEFINED_TABLE = '42P01'
/** Where transactions are serializable by default: pg-boss does the same again when it supervises next. It listens again by itself, too. */
const SERIALIZATION_FAILURE = '40001'
const CLOSED = 'the queue closed before PostgreSQL responded'

class NoResponse extends Error {}

type Prepare = (boss: PgBoss, use: QueueUse | undefined) => Promise<void>

export class Connection {
  readonly #settings: Settings
  readonly #prepare: Prepare
  readonly #sockets = createSockets() // Of a pg-boss of ours.
  readonly #pending = createPending()
  readonly #channel: string
  readonly #self: string = randomUUID()
  #ours: PgBoss | undefined
  #starting: Promise<PgBoss> | undefined
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
    this.#opening = undefined
  }

  opened(): Promise<PgBoss> {
    return this.call(async (boss) => boss)
  }

  /** Calls what needs no transaction. */
  call<T>(make: (boss: PgBoss) => Promise<T>, limitMs = this.#settings.timeoutMs): Promise<T> {
    return this.#attempt((boss) => this.inTime(make(boss), limitMs), limitMs)
  }

  /**
   * Runs statements in a transaction. One half of the time is for the statements, and one for the end: PostgreSQL itself ends each that
   * takes longer, so that nothing is done after its caller has given up. What is rejected is not done, unless the answer to COMMIT was lost.
   */
  transact<T>(
    make: (boss: PgBoss, db: Db) => Promise<T>,
    limitMs = this.#settings.timeoutMs,
    end: 'commit' | 'rollback' = 'commit',
  ): Promise<T> {
    const halfMs = Math.ceil(limitMs / 2)
    return this.#attempt(async (boss) => {
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
        const result = await this.inTime(run(), halfMs)
        isOver = true
        const transaction = await beginning
        await this.inTime(transaction[end](), halfMs)
        return result
      } catch (error) {
        isOver = true
        beginning.then((begun) => begun.rollback()).catch(() => {})
        throw error
      }
    }, limitMs)
  }

  async inTime<T>(answer: Promise<T>, limitMs: number): Promise<T> {
    const result = await this.#pending.wait(answer, limitMs)
    if (result === TIMED_OUT) throw new NoResponse(`no response within ${limitMs} ms`)
    return result
  }

  /** Calls back soon after another process has pushed. */
  onPush(listener: () => void): void {
    this.#onPush = listener
    this.#opening?.then((boss) => this.#listen(boss)).catch(() => {})
  }

  /** Wakes the workers of other processes; in a transaction, once it commits, which must see the queue: without it, pg-boss stores nothing. */
  async notify(db?: Db): Promise<void> {
    const { name, schema } = this.#settings
    const statement = `SELECT pg_notify($1, $2) FROM ${schema}.hookline_queue WHERE name = $3`
    const send = (to: Db) => to.executeSql(statement, [this.#channel, this.#self, name])
    const { rows } = await (db === undefined ? this.call((boss) => send(boss.getDb())) : send(db))
    if (rows.length === 0) throw unseen(name)
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish()
    return this.#closing
  }

  async #attempt<T>(make: (boss: PgBoss) => Promise<T>, limitMs: number): Promise<T> {
    try {
      if (this.#closing !== undefined) throw new Error(CLOSED)
      return await make(await this.inTime(this.#open(), limitMs))
    } catch (error) {
      if (error instanceof NoResponse) this.#sockets.destroy()
      if (this.#opening !== undefined && codeOf(error) === UNDEFINED_TABLE) this.#startAnew()
      throw unavailable(this.#settings.name, error)
    }
  }

  /** Starts and prepares it; again after a failure. */
  #open(): Promise<PgBoss> {
    this.#opening ??= this.inTime(this.#prepared(), this.#settings.timeoutMs * START_FACTOR).catch((error) => {
      this.#startAnew()
      throw error
    })
    return this.#opening
  }

  async #prepared(): Promise<PgBoss> {
    this.#starting ??= this.#start()
    const running = await this.#starting
    await this.#prepare(running, this.#use)
    this.#listen(running)
    return running
  }

  async #start(): Promise<PgBoss> {
    if (this.#settings.boss !== undefined) return this.#settings.boss
    const boss = createBoss(this.#settings, () => this.#createSocket())
    this.#ours = boss.on('error', (error) => this.#reportError(error))
    return this.#ours.start()
  }

  #startAnew(): void {
    void this.#stop()
    this.#sockets.destroy()
    this.#opening = undefined
    this.#starting = undefined
  }

  async #stop(): Promise<void> {
    const stopping = [this.#listening?.then((handle) => handle.close()), this.#ours?.stop({ graceful: false })]
    this.#listening = undefined
    await Promise.allSettled(stopping)
  }

  async #finish(): Promise<void> {
    this.#pending.rejectAll(new Error(CLOSED))
    await within(this.#stop(), CLOSE_MS, systemClock)
    this.#sockets.destroy()
  }

  /** Over a connection of its own, which pg-boss keeps. If it cannot be opened, `pollMs` finds what others push. */
  #listen(boss: PgBoss): void {
    const wake = this.#onPush
    if (wake === undefined || this.#listening !== undefined || this.#settings.boss !== undefined) return
    this.#listening = boss.getDb().listen?.(this.#channel, (pusher) => pusher !== this.#self && wake(), wake)
    this.#listening?.catch(() => {}) // Not tried again before the next start.
  }

  #reportError(error: Error): void {
    const isExpected = codeOf(error) === SERIALIZATION_FAILURE || error.message.startsWith('LISTEN/NOTIFY')
    if (this.#closing === undefined && !isExpected) this.#settings.onError(unavailable(this.#settings.name, error))
  }

  #createSocket(): Socket {
    if (this.#closing !== undefined) throw new Error(CLOSED)
    return this.#sockets.create()
  }
}

/** Returns the code of an error of PostgreSQL or of Hookline. */
export function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
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
  return codeOf(error) === 'lease_lapsed' || (error instanceof Error && isOfData(codeOf(error.cause)))
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
  const code = codeOf(first)
  const text = isOfData(code) ? `SQLSTATE ${code}` : first.message
  return Object.assign(new Error(text), code === undefined ? {} : { code })
}
