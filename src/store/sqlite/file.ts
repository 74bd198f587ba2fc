/**
 * A file of queues, as this process has it open: one connection for all of its queues, in the thread of the caller. All calls of a turn
 * of the event loop are one commit, which does not wait for the disk. What was promised is answered once the disk has the log, which the
 * system writes off the thread: frames of the log are written in order, so a sync is for all commits before it.
 */

import { existsSync } from 'node:fs'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../../kit/clock.ts'
import { within } from '../../kit/timeout.ts'
import { HooklineError } from '../../protocol/error.ts'
import { unavailable } from './advice.ts'
import { type Aside, createAside } from './aside.ts'
import { BUSY, inTransaction, OPENING_MS, realPathOf, resultOf, retryWhileBusy, UnusableFile } from './database.ts'
import { isDead, lockOwner, type OwnerLock } from './locks.ts'
import { LogGuard, watchCommits } from './sqlite-log.ts'
import type { Settings } from './sqlite-options.ts'
import { prepareStatements, type Statements } from './sqlite-statements.ts'
import { type Kind, type QueueFile, releaseAllOf, type Transaction } from './sqlite-store.ts'
import { createQueues, openTables, type Queues, type Reservation } from './sqlite-tables.ts'

interface Step {
  readonly name: string
  readonly kind: Kind
  readonly step: (transaction: Transaction) => unknown
}

interface Call extends Step {
  readonly bytes: number
  readonly endsAt: number
  resolve(value: unknown): void
  reject(error: HooklineError): void
}

/** A call that was made. */
interface Made<Called> {
  readonly call: Called
  readonly value?: unknown
  readonly failure?: HooklineError
}

const files = new Map<string, SharedFile>()

/** @throws Error of SQLite; UnusableFile; HooklineError. */
export function openFile(given: string, { name, timeoutMs }: Pick<Settings, 'name' | 'timeoutMs'>): QueueFile {
  const known = existsSync(given) ? files.get(realPathOf(given)) : undefined
  if (known === undefined) openTables(given).close() // One that cannot be used is refused before anything else is made.
  const path = realPathOf(given)
  const file = known ?? new SharedFile(path)
  try {
    file.enter({ name })
  } catch (error) {
    if (file.users === 0) file.close()
    throw error
  }
  files.set(path, file)
  file.users += 1
  let stopListening = (): void => {}
  return {
    path,
    call: (kind, step, bytes = 0) =>
      new Promise((resolve, reject) => {
        file.add({ name, kind, step, bytes, endsAt: performance.now() + timeoutMs, resolve, reject })
      }),
    reserve: (use) => file.enter({ name, use }),
    onCommit(listener) {
      file.listeners.add(listener)
      stopListening = () => void file.listeners.delete(listener)
    },
    async close() {
      stopListening()
      file.users -= 1
      if (file.users > 0) return
      files.delete(path)
      await file.end()
    },
  }
}

/** How long the end of a file waits for other processes. */
const END_MS = 200
const ERASE_EVERY_MS = 20
/** How long the log gets before it is written into the file, about. */
const LOG_BYTES = 16 * 1024 * 1024
/** How many bytes of the log a call takes beside what it adds, about. */
const TOUCHED_BYTES = 8 * 1024

class SharedFile {
  users = 0
  readonly listeners = new Set<() => void>()
  readonly #path: string
  readonly #reservations = new Map<string, Reservation>()
  #lock: OwnerLock | undefined
  #connection: Connection | undefined
  #turn: Call[] = []
  #unreleased: Call[] = []
  #isScheduled = false
  #keeping = 0 // Turns whose calls wait for the disk.
  #holds = 0 // While the rest of the log is written into the file.
  #written = 0 // Bytes in the log, about.
  #isErased = true
  #erasing: NodeJS.Timeout | undefined // The next try.

  constructor(path: string) {
    this.#path = path
  }

  add(call: Call): void {
    this.#turn.push(call)
    this.#schedule()
  }

  enter(reservation: Reservation): void {
    this.#connection ??= this.#connect()
    this.#connection.enter(reservation)
    this.#reservations.set(reservation.name, reservation)
  }

  /** Ends the calls that were made, but not those that another process keeps waiting. */
  async end(): Promise<void> {
    await within(this.#finish(), END_MS, systemClock)
    this.close()
  }

  close(): void {
    const found = 'this process has closed it. Got a call that another process kept waiting. Call again.'
    const error = new UnusableFile(found)
    this.#refuse(this.#turn.splice(0), error)
    this.#reset(error)
    this.#lock?.release()
    this.#lock = undefined
  }

  #connect(): Connection {
    if (!this.#lock?.isHeld()) {
      this.#lock?.release()
      this.#lock = undefined // Also when the next one cannot be taken.
      this.#lock = lockOwner(this.#path)
    }
    const opened = new Connection(this.#path, this.#lock.owner, () => {
      for (const listener of this.listeners) listener()
    })
    try {
      for (const reservation of this.#reservations.values()) opened.enter(reservation)
      return opened
    } catch (error) {
      opened.close(error)
      throw error
    }
  }

  #schedule(): void {
    if (!this.#isScheduled) setImmediate(() => this.#flush())
    this.#isScheduled = true
  }

  #flush(): void {
    this.#isScheduled = false
    if (this.#holds > 0 || this.#turn.length === 0) return
    const { true: claims = [], false: others = [] } = Object.groupBy(this.#turn, ({ kind }) => `${kind === 'claim'}`)
    const calls = [...this.#unreleased, ...others, ...claims]
    this.#unreleased = []
    this.#turn = []
    try {
      this.#connection ??= this.#connect()
      this.#connection.requireUnchanged()
      this.#lock?.requireHeld()
    } catch (error) {
      this.#reset(error)
      this.#refuse(calls, error)
      return
    }
    this.#run(calls, this.#connection)
  }

  /** When one fails, each alone, so that only the one at fault does. */
  #run(calls: readonly Call[], by: Connection): void {
    const promised: Made<Call>[] = []
    try {
      for (const made of by.run(calls)) {
        const { call, value, failure } = made
        if (failure !== undefined) this.#refuse([call], failure)
        else if (call.kind === 'promise' || call.kind === 'erase') promised.push(made)
        else call.resolve(value)
      }
    } catch (error) {
      if (resultOf(error) === BUSY) this.#tryLater(calls, error)
      else if (calls.length > 1) for (const call of calls) this.#run([call], by)
      else this.#refuse(calls, error)
    }
    if (promised.length > 0) void this.#keep(promised, by)
  }

  /** Answers when the disk has what was promised. */
  async #keep(promised: readonly Made<Call>[], by: Connection): Promise<void> {
    const calls = promised.map(({ call }) => call)
    this.#keeping += 1
    try {
      await by.sync()
      const erases = calls.filter(({ kind }) => kind === 'erase')
      if (erases.length > 0) await this.#erase(Math.max(...erases.map(({ endsAt }) => endsAt)))
      for (const { call, value } of promised) {
        call.resolve(value)
        this.#written += 2 * call.bytes + TOUCHED_BYTES // It is overwritten when it goes.
      }
      if (this.#written > LOG_BYTES) void this.#shorten()
    } catch (error) {
      if (by === this.#connection) this.#reset(error)
      this.#refuse(calls, error)
    }
    this.#keeping -= 1
  }

  #refuse(calls: readonly Call[], error: unknown): void {
    for (const call of calls) {
      if (call.kind !== 'release') call.reject(unavailable(`Queue ${call.name}`, this.#path, error))
      else {
        this.#unreleased.push(call)
        call.resolve(undefined)
      }
    }
  }

  /** Another process writes. SQLite does not wait, so that this thread does not. */
  #tryLater(calls: readonly Call[], error: unknown): void {
    const now = performance.now()
    const late = calls.filter(({ endsAt }) => endsAt <= now)
    this.#turn.push(...calls.filter((call) => !late.includes(call)))
    // Random, because two that collided would collide again.
    if (this.#turn.length > 0) setTimeout(() => this.#schedule(), 0.5 + Math.random())
    this.#refuse(late, error)
  }

  /** Writes the log into the file, off the thread; and the rest, while calls wait, so that the log begins anew. */
  async #shorten(): Promise<void> {
    this.#written = 0
    await this.#connection?.checkpoint('PASSIVE')
    await this.#empty('PASSIVE')
  }

  async #empty(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
    this.#holds += 1
    const isDone = await this.#connection?.checkpoint(mode)
    this.#holds -= 1
    this.#schedule()
    return isDone !== false
  }

  /** The log holds older copies of what was deleted. Tried again while another process reads; a later checkpoint overwrites the rest. */
  async #erase(endsAt: number): Promise<void> {
    this.#isErased = await this.#empty('TRUNCATE')
    clearTimeout(this.#erasing)
    if (this.#isErased || performance.now() >= endsAt) return
    this.#erasing = setTimeout(() => void this.#erase(endsAt), ERASE_EVERY_MS).unref()
  }

  /** The next call opens it anew. */
  #reset(error: unknown): void {
    const opened = this.#connection
    this.#connection = undefined
    opened?.close(error)
  }

  async #finish(): Promise<void> {
    while (this.#turn.length + this.#keeping > 0) await delay(1)
    if (!this.#isErased) await this.#connection?.checkpoint('TRUNCATE')
    if (this.#written > LOG_BYTES / 16) await this.#connection?.checkpoint('PASSIVE') // Closing it writes the rest.
    await this.#connection?.endAside()
  }
}

const LOOK_EVERY_MS = 500

export class Connection {
  readonly #path: string
  readonly #owner: number
  readonly #database: DatabaseSync
  readonly #log: LogGuard
  readonly #queues: Queues
  readonly #sql: Statements
  readonly #begin: StatementSync
  readonly #beginWrite: StatementSync
  readonly #commit: StatementSync
  readonly #stopWatching: () => void
  #aside: Aside | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  #hasFailed = false

  /** @param onCommit Called soon after another connection has committed. */
  constructor(path: string, owner: number, onCommit: () => void) {
    const database = openTables(path)
    this.#path = path
    this.#owner = owner
    this.#database = database
    this.#log = new LogGuard(database, path)
    this.#queues = createQueues(database)
    this.#sql = prepareStatements(database)
    this.#begin = database.prepare('BEGIN')
    this.#beginWrite = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
    this.#stopWatching = watchCommits(database, path, onCommit)
  }

  requireUnchanged(): void {
    this.#log.requireUnchanged()
  }

  /** Resolves when the disk has what was committed before. */
  sync(): Promise<void> {
    return this.#log.sync()
  }

  enter(reservation: Reservation): void {
    retryWhileBusy(() => inTransaction(this.#database, () => this.#queues.enter(reservation)), OPENING_MS)
  }

  /** Makes calls in one transaction. @throws Error of SQLite, and then it has made none. */
  run<Called extends Step>(calls: readonly Called[]): Made<Called>[] {
    const dead = calls.some(({ kind }) => kind === 'claim' || kind === 'erase') ? this.#findDead() : []
    const isWrite = dead.length > 0 || calls.some(({ kind }) => kind !== 'read' && kind !== 'claim')
    if (this.#hasFailed) {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)') // After a full disk, the log gets none of the space before it is empty.
      this.#hasFailed = false
    }
    const begin = isWrite ? this.#beginWrite : this.#begin
    begin.run()
    try {
      this.#queues.begin()
      for (const each of dead) releaseAllOf(this.#sql, each)
      const made = calls.map((call) => this.#make(call))
      this.#queues.save()
      this.#commit.run()
      return made
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK') // After some errors SQLite has rolled back itself.
      if (dead.length > 0) this.#lookedAt = Number.NEGATIVE_INFINITY
      this.#hasFailed ||= resultOf(error) !== BUSY
      throw error
    }
  }

  /** Resolves to whether nothing was in its way. */
  async checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
    this.#aside ??= createAside(this.#path)
    const result = await this.#aside.run(`PRAGMA wal_checkpoint(${mode})`).catch(() => undefined) // Another one later does it, too.
    return result?.busy === 0
  }

  async endAside(): Promise<void> {
    await this.#aside?.close()
  }

  close(reason: unknown): void {
    this.#stopWatching()
    void this.#aside?.close()
    this.#log.close(reason)
  }

  /** Outside of a transaction, because it touches other files. */
  #findDead(): number[] {
    if (performance.now() - this.#lookedAt < LOOK_EVERY_MS) return []
    this.#lookedAt = performance.now()
    const owners = this.#sql.owners.all().map(({ owner }) => owner)
    return owners.filter((each) => each !== this.#owner && isDead(this.#path, each))
  }

  #make<Called extends Step>(call: Called): Made<Called> {
    try {
      return { call, value: call.step({ sql: this.#sql, row: this.#queues.rowOf(call.name), owner: this.#owner }) }
    } catch (failure) {
      if (failure instanceof HooklineError) return { call, failure } // It has changed nothing.
      throw failure
    }
  }
}
