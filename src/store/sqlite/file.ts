/**
 * A file of queues that this process has open, with one connection for all of its queues, in the thread of the caller. All calls of a turn
 * of the event loop are one commit, which does not wait for the disk. Calls of the kind `promise` are answered after the next sync, which
 * writes the WAL to the disk outside this thread. The frames of the WAL are written in order, so one sync covers all commits before it.
 *
 * A push takes this path: `call` of the file → `addCall` → `#schedule` → `#flush` at the end of the turn → `#makeCalls` →
 * `#answerWhenSynced` → `sync`. `#makeCalls` makes all calls of the turn in one transaction of the {@link Connection}.
 */

import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../../kit/clock.ts'
import { withTimeout } from '../../kit/timeout.ts'
import type { HooklineError } from '../../protocol/error.ts'
import { unavailable } from './advice.ts'
import { BUSY, realPathOf, resultOf, UnusableFile } from './database.ts'
import { lockOwner, type OwnerLock } from './locks.ts'
import { type Call, Connection, type MadeCall } from './sqlite-connection.ts'
import type { Settings } from './sqlite-options.ts'
import type { QueueFile } from './sqlite-store.ts'
import { openTables, type QueueAndUse } from './sqlite-tables.ts'

/** A call that has not been answered yet. */
interface PendingCall extends Call {
  /** The time at which the call is refused if another process is still writing. */
  readonly endsAt: number
  resolve(value: unknown): void
  reject(error: HooklineError): void
}

const files = new Map<string, SharedFile>()

/**
 * Opens a file for a queue. All queues of this process share the opened file.
 *
 * @throws Error from SQLite; UnusableFile; HooklineError.
 */
export function openFile(given: string, { name, timeoutMs }: Pick<Settings, 'name' | 'timeoutMs'>): QueueFile {
  const known = existsSync(given) ? files.get(realPathOf(given)) : undefined
  if (known === undefined) openTables(given).close() // A file that cannot be used is refused here, before anything else is created.
  const path = realPathOf(given)
  const file = known ?? new SharedFile(path)
  try {
    file.addQueue({ name })
  } catch (error) {
    if (file.users === 0) file.close()
    throw error
  }
  files.set(path, file)
  file.users += 1
  let stopListening = (): void => {}
  return {
    path,
    call: (kind, step) =>
      new Promise((resolve, reject) => {
        file.addCall({ name, kind, step, endsAt: performance.now() + timeoutMs, resolve, reject })
      }),
    reserve: (use) => file.addQueue({ name, use }),
    onCommit(listener) {
      file.listeners.add(listener)
      stopListening = () => void file.listeners.delete(listener)
    },
    async close() {
      stopListening()
      file.users -= 1
      if (file.users > 0) return
      files.delete(path)
      await file.closeWhenDone()
    },
  }
}

/** How long closing a file waits for other processes, in milliseconds. */
const END_MS = 200
const ERASE_EVERY_MS = 20
/** The approximate size in bytes at which the content of the WAL is written to the database file. */
const WAL_BYTES = 16 * 1024 * 1024

class SharedFile {
  users = 0
  readonly listeners = new Set<() => void>()
  readonly #path: string
  readonly #queues = new Map<string, QueueAndUse>()
  #lock: OwnerLock | undefined
  #connection: Connection | undefined
  #calls: PendingCall[] = []
  /** Releases that failed. The next turn retries them before its other calls. */
  #failedReleases: PendingCall[] = []
  #isScheduled = false
  /** How many turns of the event loop have calls that wait for the disk. */
  #syncs = 0
  /** How many of the running checkpoints hold up all calls. */
  #holds = 0
  /** Whether the WAL contains no copies of deleted data. */
  #isErased = true
  #nextErase: NodeJS.Timeout | undefined

  constructor(path: string) {
    this.#path = path
  }

  addCall(call: PendingCall): void {
    this.#calls.push(call)
    this.#schedule()
  }

  /**
   * Adds a queue to the table of queues, and remembers the queue. A later connection adds the queue again, because the path may lead to a
   * different file by then.
   */
  addQueue(queue: QueueAndUse): void {
    this.#connection ??= this.#connect()
    this.#connection.addQueue(queue)
    this.#queues.set(queue.name, queue)
  }

  /** Closes the file when its calls have been answered. Calls that still wait for another process after {@link END_MS} are refused. */
  async closeWhenDone(): Promise<void> {
    await withTimeout(this.#answerAll(), END_MS, systemClock)
    this.close()
  }

  close(): void {
    const error = new UnusableFile(
      'this process closed it while the call waited for another process. Open the queue again, and repeat the call.',
    )
    this.#refuse(this.#calls.splice(0), error)
    this.#reset(error)
    this.#lock?.release()
    this.#lock = undefined
  }

  #connect(): Connection {
    if (!this.#lock?.isHeld()) {
      this.#lock?.release()
      this.#lock = undefined // The field stays undefined if `lockOwner` throws.
      this.#lock = lockOwner(this.#path)
    }
    const opened = new Connection(this.#path, this.#lock.owner, () => {
      for (const listener of this.listeners) listener()
    })
    try {
      for (const queue of this.#queues.values()) opened.addQueue(queue)
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
    if (this.#holds > 0 || this.#calls.length === 0) return
    const claims = this.#calls.filter(({ kind }) => kind === 'claim')
    const others = this.#calls.filter(({ kind }) => kind !== 'claim')
    const calls = [...this.#failedReleases, ...others, ...claims]
    this.#failedReleases = []
    this.#calls = []
    try {
      this.#connection ??= this.#connect()
      this.#connection.requireUnchanged()
      this.#lock?.requireHeld()
    } catch (error) {
      this.#reset(error)
      this.#refuse(calls, error)
      return
    }
    this.#makeCalls(calls, this.#connection)
  }

  /**
   * Makes calls together. If another process is writing, retries the calls later. After any other failure, makes each call alone, so that
   * only the call at fault fails.
   */
  #makeCalls(calls: readonly PendingCall[], connection: Connection): void {
    const unsynced: MadeCall<PendingCall>[] = []
    try {
      for (const made of connection.makeCalls(calls)) {
        const { call, value, failure } = made
        if (failure !== undefined) this.#refuse([call], failure)
        else if (call.kind === 'promise' || call.kind === 'erase') unsynced.push(made)
        else call.resolve(value)
      }
      if (connection.walBytes > WAL_BYTES) void this.#shorten()
    } catch (error) {
      if (resultOf(error) === BUSY) this.#tryLater(calls, error)
      else if (calls.length > 1) for (const call of calls) this.#makeCalls([call], connection)
      else this.#refuse(calls, error)
    }
    if (unsynced.length > 0) void this.#answerWhenSynced(unsynced, connection)
  }

  async #answerWhenSynced(unsynced: readonly MadeCall<PendingCall>[], connection: Connection): Promise<void> {
    const calls = unsynced.map(({ call }) => call)
    this.#syncs += 1
    try {
      await connection.sync()
      const erases = calls.filter(({ kind }) => kind === 'erase')
      if (erases.length > 0) await this.#erase(Math.max(...erases.map(({ endsAt }) => endsAt)))
      for (const { call, value } of unsynced) call.resolve(value)
    } catch (error) {
      if (connection === this.#connection) this.#reset(error) // Another call may already have reset the connection.
      this.#refuse(calls, error)
    }
    this.#syncs -= 1
  }

  /**
   * Rejects calls, except releases, which a later turn makes again: otherwise, their jobs would stay claimed for as long as this process
   * lives.
   */
  #refuse(calls: readonly PendingCall[], error: unknown): void {
    for (const call of calls) {
      if (call.kind !== 'release') call.reject(unavailable(`Queue ${call.name}`, this.#path, error))
      else {
        this.#failedReleases.push(call)
        call.resolve(undefined)
      }
    }
  }

  /**
   * Retries calls soon, because another process is writing. SQLite itself does not wait for that process, because this would block the
   * thread.
   */
  #tryLater(calls: readonly PendingCall[], error: unknown): void {
    const now = performance.now()
    const late = calls.filter(({ endsAt }) => endsAt <= now)
    this.#calls.push(...calls.filter(({ endsAt }) => endsAt > now))
    // The delay is random, because two processes that collided would otherwise collide again.
    if (this.#calls.length > 0) setTimeout(() => this.#schedule(), 0.5 + Math.random())
    this.#refuse(late, error)
  }

  /**
   * Writes the WAL to the database file in a separate thread, then holds back all calls and writes what was added in the meantime. SQLite
   * reuses the WAL from its start only after all of it has been written to the file.
   */
  async #shorten(): Promise<void> {
    await this.#connection?.checkpoint('PASSIVE')
    await this.#checkpointAlone('PASSIVE')
  }

  async #checkpointAlone(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
    this.#holds += 1
    const isDone = await this.#connection?.checkpoint(mode)
    this.#holds -= 1
    this.#schedule()
    return isDone !== false
  }

  /**
   * Empties the WAL, which contains older copies of deleted data. While another process is reading, retries until `endsAt`.
   * If the last retry also fails, a later checkpoint overwrites the copies.
   */
  async #erase(endsAt: number): Promise<void> {
    this.#isErased = await this.#checkpointAlone('TRUNCATE')
    clearTimeout(this.#nextErase)
    if (this.#isErased || performance.now() >= endsAt) return
    this.#nextErase = setTimeout(() => void this.#erase(endsAt), ERASE_EVERY_MS).unref()
  }

  /** Closes the connection. The next call opens another one. */
  #reset(error: unknown): void {
    const opened = this.#connection
    this.#connection = undefined
    opened?.close(error)
  }

  async #answerAll(): Promise<void> {
    while (this.#calls.length + this.#syncs > 0) await delay(1)
    const connection = this.#connection
    if (!this.#isErased) await connection?.checkpoint('TRUNCATE')
    // Closing the connection writes what is left in the WAL in this thread, so most of it is written first in the other thread.
    if (connection !== undefined && connection.walBytes > WAL_BYTES / 16) await connection.checkpoint('PASSIVE')
    await connection?.endAside()
  }
}
