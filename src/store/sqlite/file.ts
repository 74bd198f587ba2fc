/**
 * A file of queues, as this process has it open: one connection for all of its queues, in the thread of the caller. All calls of a turn
 * of the event loop are one commit, which does not wait for the disk. What was promised is answered once the disk has the log, which the
 * system writes off the thread: frames of the log are written in order, so a sync is for all commits before it.
 */

import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../../kit/clock.ts'
import { within } from '../../kit/timeout.ts'
import { HooklineError } from '../../protocol/error.ts'
import { unavailable } from './advice.ts'
import { type Aside, createAside } from './aside.ts'
import { BUSY, inTransaction, OPENING_MS, realPathOf, resultOf, retryWhileBusy, UnusableFile } from './database.ts'
import { isDead, lockOwner, type OwnerLock } from './locks.ts'
import { guardLog, watchCommits } from './sqlite-log.ts'
import type { Settings } from './sqlite-options.ts'
import { type Kind, prepareStatements, type QueueFile, releaseAllOf, type Transaction } from './sqlite-store.ts'
import { createQueues, openTables, type Reservation } from './sqlite-tables.ts'

interface Call {
  readonly name: string
  readonly kind: Kind
  readonly step: (transaction: Transaction) => unknown
  readonly bytes: number
  readonly endsAt: number
  readonly resolve: (value: never) => void
  readonly reject: (error: HooklineError) => void
}

interface Done {
  readonly call: Call
  readonly value: unknown
}

type Shared = ReturnType<typeof createShared> & { users: number }

const shared = new Map<string, Shared>()

/** @throws Error of SQLite; UnusableFile; HooklineError. */
export function openFile(given: string, { name, timeoutMs }: Pick<Settings, 'name' | 'timeoutMs'>): QueueFile {
  const known = existsSync(given) ? shared.get(realPathOf(given)) : undefined
  if (known === undefined) openTables(given).close() // One that cannot be used is refused before anything else is made.
  const path = realPathOf(given)
  const file = known ?? { users: 0, ...createShared(path) }
  try {
    file.enter({ name })
  } catch (error) {
    if (file.users === 0) file.close()
    throw error
  }
  shared.set(path, file)
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
      shared.delete(path)
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

function createShared(path: string) {
  const listeners = new Set<() => void>()
  const reservations = new Map<string, Reservation>()
  let lock: OwnerLock | undefined
  let connection: Connection | undefined
  let turn: Call[] = []
  let unreleased: Call[] = []
  let isScheduled = false
  let keeping = 0 // Turns whose calls wait for the disk.
  let holds = 0 // While the rest of the log is written into the file.
  let written = 0 // Bytes in the log, about.
  let isErased = true
  let erasing: NodeJS.Timeout | undefined // The next try.

  function connect(): Connection {
    if (!lock?.isHeld()) {
      lock?.release()
      lock = undefined // Also when the next one cannot be taken.
      lock = lockOwner(path)
    }
    const opened = openConnection(path, lock.owner, () => {
      for (const listener of listeners) listener()
    })
    try {
      for (const reservation of reservations.values()) opened.enter(reservation)
      return opened
    } catch (error) {
      opened.close(error)
      throw error
    }
  }

  function schedule(): void {
    if (!isScheduled) setImmediate(flush)
    isScheduled = true
  }

  function flush(): void {
    isScheduled = false
    if (holds > 0 || turn.length === 0) return
    const { true: claims = [], false: others = [] } = Object.groupBy(turn, ({ kind }) => `${kind === 'claim'}`)
    const calls = [...unreleased, ...others, ...claims]
    unreleased = []
    turn = []
    try {
      connection ??= connect()
      connection.requireUnchanged()
      lock?.requireHeld()
    } catch (error) {
      reset(error)
      refuse(calls, error)
      return
    }
    run(calls, connection)
  }

  /** When one fails, each alone, so that only the one at fault does. */
  function run(calls: readonly Call[], by: Connection): void {
    const promised: Done[] = []
    try {
      for (const [index, { value, failure }] of by.run(calls).entries()) {
        const call = calls[index] as Call
        if (failure !== undefined) refuse([call], failure)
        else if (call.kind === 'promise' || call.kind === 'erase') promised.push({ call, value })
        else call.resolve(value as never)
      }
    } catch (error) {
      if (resultOf(error) === BUSY) tryLater(calls, error)
      else if (calls.length > 1) for (const call of calls) run([call], by)
      else refuse(calls, error)
    }
    if (promised.length > 0) void keep(promised, by)
  }

  /** Answers when the disk has what was promised. */
  async function keep(promised: readonly Done[], by: Connection): Promise<void> {
    keeping += 1
    try {
      await by.sync()
      const erases = promised.filter(({ call }) => call.kind === 'erase')
      if (erases.length > 0) await erase(Math.max(...erases.map(({ call }) => call.endsAt)))
      for (const { call, value } of promised) {
        call.resolve(value as never)
        written += 2 * call.bytes + TOUCHED_BYTES // It is overwritten when it goes.
      }
      if (written > LOG_BYTES) void shorten()
    } catch (error) {
      if (by === connection) reset(error)
      refuse(
        promised.map(({ call }) => call),
        error,
      )
    }
    keeping -= 1
  }

  function refuse(calls: readonly Call[], error: unknown): void {
    for (const call of calls) {
      if (call.kind !== 'release') call.reject(unavailable(`Queue ${call.name}`, path, error))
      else {
        unreleased.push(call)
        call.resolve(undefined as never)
      }
    }
  }

  /** Another process writes. SQLite does not wait, so that this thread does not. */
  function tryLater(calls: readonly Call[], error: unknown): void {
    const now = performance.now()
    const late = calls.filter(({ endsAt }) => endsAt <= now)
    turn.push(...calls.filter((call) => !late.includes(call)))
    if (turn.length > 0) setTimeout(schedule, 0.5 + Math.random()) // Random, because two that collided would collide again.
    refuse(late, error)
  }

  /** Writes the log into the file, off the thread; and the rest, while calls wait, so that the log begins anew. */
  async function shorten(): Promise<void> {
    written = 0
    await connection?.checkpoint('PASSIVE')
    await empty('PASSIVE')
  }

  async function empty(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
    holds += 1
    const isDone = await connection?.checkpoint(mode)
    holds -= 1
    schedule()
    return isDone !== false
  }

  /** The log holds older copies of what was deleted. Tried again while another process reads; a later checkpoint overwrites the rest. */
  async function erase(endsAt: number): Promise<void> {
    isErased = await empty('TRUNCATE')
    clearTimeout(erasing)
    if (!isErased && performance.now() < endsAt) erasing = setTimeout(() => void erase(endsAt), ERASE_EVERY_MS).unref()
  }

  /** The next call opens it anew. */
  function reset(error: unknown): void {
    const opened = connection
    connection = undefined
    opened?.close(error)
  }

  function close(): void {
    const found = 'this process has closed it. Got a call that another process kept waiting. Call again.'
    const error = new UnusableFile(found)
    refuse(turn.splice(0), error)
    reset(error)
    lock?.release()
    lock = undefined
  }

  return {
    listeners,
    add(call: Call): void {
      turn.push(call)
      schedule()
    },
    enter(reservation: Reservation): void {
      connection ??= connect()
      connection.enter(reservation)
      reservations.set(reservation.name, reservation)
    },
    /** Ends the calls that were made, but not those that another process keeps waiting. */
    async end(): Promise<void> {
      async function rest(): Promise<void> {
        while (turn.length + keeping > 0) await delay(1)
        if (!isErased) await connection?.checkpoint('TRUNCATE')
        if (written > LOG_BYTES / 16) await connection?.checkpoint('PASSIVE') // Closing it writes the rest.
        await connection?.endAside()
      }
      await within(rest(), END_MS, systemClock)
      close()
    },
    close,
  }
}

const LOOK_EVERY_MS = 500

type Connection = ReturnType<typeof openConnection>

interface Answer {
  readonly value?: unknown
  readonly failure?: HooklineError
}

/** @param onCommit Called soon after another connection has committed. */
export function openConnection(path: string, owner: number, onCommit: () => void) {
  const database = openTables(path)
  const log = guardLog(database, path)
  const queues = createQueues(database)
  const sql = prepareStatements(database)
  const [begin, beginWrite, commit] = [
    database.prepare('BEGIN'),
    database.prepare('BEGIN IMMEDIATE'),
    database.prepare('COMMIT'),
  ]
  const stopWatching = watchCommits(database, path, onCommit)
  let aside: Aside | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let hasFailed = false

  /** Outside of a transaction, because it touches other files. */
  function findDead(): number[] {
    if (performance.now() - lookedAt < LOOK_EVERY_MS) return []
    lookedAt = performance.now()
    const owners = sql.owners.all().map((row) => row.owner as number)
    return owners.filter((each) => each !== owner && isDead(path, each))
  }

  function make({ name, step }: Pick<Call, 'name' | 'step'>): Answer {
    try {
      return { value: step({ sql, row: queues.rowOf(name), owner }) }
    } catch (failure) {
      if (failure instanceof HooklineError) return { failure } // It has changed nothing.
      throw failure
    }
  }

  return {
    requireUnchanged: log.requireUnchanged,
    sync: log.sync,
    enter(reservation: Reservation): void {
      retryWhileBusy(() => inTransaction(database, () => queues.enter(reservation)), OPENING_MS)
    },
    /** Makes calls in one transaction. @throws Error of SQLite, and then it has made none. */
    run(calls: readonly Pick<Call, 'name' | 'kind' | 'step'>[]): Answer[] {
      const dead = calls.some(({ kind }) => kind === 'claim' || kind === 'erase') ? findDead() : []
      const isWrite = dead.length > 0 || calls.some(({ kind }) => kind !== 'read' && kind !== 'claim')
      if (hasFailed) {
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)') // After a full disk, the log gets none of the space before it is empty.
        hasFailed = false
      }
      ;(isWrite ? beginWrite : begin).run()
      try {
        queues.begin()
        for (const each of dead) releaseAllOf(sql, each)
        const answers = calls.map(make)
        queues.save()
        commit.run()
        return answers
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK') // After some errors SQLite has rolled back itself.
        if (dead.length > 0) lookedAt = Number.NEGATIVE_INFINITY
        hasFailed ||= resultOf(error) !== BUSY
        throw error
      }
    },
    /** Resolves to whether nothing was in its way. */
    async checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
      aside ??= createAside(path)
      const result = await aside.run(`PRAGMA wal_checkpoint(${mode})`).catch(() => undefined) // Another one later does it, too.
      return result?.busy === 0
    },
    async endAside(): Promise<void> {
      await aside?.close()
    },
    close(reason: unknown): void {
      stopWatching()
      void aside?.close()
      log.close(reason)
    },
  }
}
