/** A connection to a file of queues, which makes all calls of a turn in one transaction. */

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { HooklineError } from '../../protocol/error.ts'
import { type Aside, createAside } from './aside.ts'
import { BUSY, inTransaction, OPENING_MS, resultOf, retryWhileBusy } from './database.ts'
import { isDead } from './locks.ts'
import { prepareStatements, type Statements } from './sqlite-statements.ts'
import { type Kind, releaseAllOf, type Step } from './sqlite-store.ts'
import { createQueueRows, openTables, type QueueAndUse, type Queues } from './sqlite-tables.ts'
import { WalGuard, watchCommits } from './wal.ts'

/** A call on the queue with this name. */
export interface Call {
  readonly name: string
  readonly kind: Kind
  readonly step: Step<unknown>
}

/** A call, with the value that its step returned or the error with which Hookline refused this call alone. */
export interface MadeCall<Called> {
  readonly call: Called
  readonly value?: unknown
  readonly failure?: HooklineError
}

/** How often to look for dead owners, in milliseconds. */
const LOOK_EVERY_MS = 500

export class Connection {
  /** About how many bytes the WAL has grown since the last checkpoint began. */
  walBytes = 0
  readonly #path: string
  readonly #owner: number
  readonly #database: DatabaseSync
  readonly #wal: WalGuard
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
    this.#wal = new WalGuard(database, path)
    this.#queues = createQueueRows(database)
    this.#sql = prepareStatements(database)
    this.#begin = database.prepare('BEGIN')
    this.#beginWrite = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
    this.#stopWatching = watchCommits(database, path, onCommit)
  }

  requireUnchanged(): void {
    this.#wal.requireUnchanged()
  }

  /** Resolves when all earlier commits are on the disk. */
  sync(): Promise<void> {
    return this.#wal.sync()
  }

  addQueue(queue: QueueAndUse): void {
    retryWhileBusy(() => inTransaction(this.#database, () => this.#queues.addQueue(queue)), OPENING_MS)
  }

  /**
   * Makes calls in one transaction.
   *
   * @throws Error from SQLite. The transaction has been rolled back.
   */
  makeCalls<Called extends Call>(calls: readonly Called[]): MadeCall<Called>[] {
    const dead = calls.some(({ kind }) => kind === 'claim' || kind === 'erase') ? this.#findDead() : []
    const isWrite = dead.length > 0 || calls.some(({ kind }) => kind !== 'read' && kind !== 'claim')
    if (this.#hasFailed) {
      // After an error such as a full disk, the WAL must be emptied before it can grow again.
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      this.#hasFailed = false
    }
    const begin = isWrite ? this.#beginWrite : this.#begin
    begin.run()
    try {
      this.#queues.forgetRows()
      for (const each of dead) releaseAllOf(this.#sql, each)
      const made = calls.map((call) => this.#make(call))
      this.#queues.save()
      this.#commit.run()
      return made
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK') // After some errors, SQLite has already rolled back.
      if (dead.length > 0) this.#lookedAt = Number.NEGATIVE_INFINITY
      this.#hasFailed ||= resultOf(error) !== BUSY
      throw error
    }
  }

  /**
   * Writes the content of the WAL to the database file, in a separate thread. Resolves to false if this fails, for
   * example because another connection uses the file.
   */
  async checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
    this.walBytes = 0
    try {
      this.#aside ??= createAside(this.#path)
      return (await this.#aside.runStatement(`PRAGMA wal_checkpoint(${mode})`))?.busy === 0
    } catch {
      return false // A later checkpoint writes the rest.
    }
  }

  async endAside(): Promise<void> {
    await this.#aside?.close()
  }

  close(reason: unknown): void {
    this.#stopWatching()
    void this.#aside?.close()
    this.#wal.close(reason)
  }

  /** Finds the owners that have died. Must run outside a transaction, because it opens other files. */
  #findDead(): number[] {
    if (performance.now() - this.#lookedAt < LOOK_EVERY_MS) return []
    this.#lookedAt = performance.now()
    const owners = this.#sql.owners.all().map(({ owner }) => owner)
    return owners.filter((each) => each !== this.#owner && isDead(this.#path, each))
  }

  #make<Called extends Call>(call: Called): MadeCall<Called> {
    try {
      const transaction = { sql: this.#sql, row: this.#queues.rowOf(call.name), owner: this.#owner, walBytes: 0 }
      const value = call.step(transaction)
      this.walBytes += transaction.walBytes
      return { call, value }
    } catch (failure) {
      // The transaction can go on, because a call that Hookline refuses, such as a push to a full queue, has changed no jobs. At most, it
      // has deleted ids whose dedupe window is over.
      if (failure instanceof HooklineError) return { call, failure }
      throw failure
    }
  }
}
