/**
 * A file of queues, as this process has it open: one connection for all of its queues, in the thread of the caller. All calls of a turn
 * of the event loop are one commit, which does not wait for the disk. What was promised is answered once the disk has the log, which the
 * system writes off the thread: frames of the log are written in order, so a sync is for all commits before it.
 */

import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { HooklineError } from '../../message/error.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import { type Aside, createAside } from '../../sqlite/aside.ts'
import {
  BUSY,
  checkpoint,
  connectTo,
  inTransaction,
  OPENING_MS,
  realPathOf,
  resultOf,
  retryWhileBusy,
  UnusableFile,
} from '../../sqlite/file.ts'
import { watchCommits, watchFile } from '../../sqlite/watch.ts'
import { systemClock } from '../../time/clock.ts'
import { within } from '../../time/timeout.ts'
import { createJobs, type Jobs } from './jobs.ts'
import { findDead, lockOwner, type OwnerLock } from './owners.ts'
import { CHECK_PATH, createQueues, openTables, type QueueRow, type Reservation, requireTables } from './tables.ts'

/**
 * What a call does:
 * - `read` changes nothing;
 * - `claim` comes after the others of its turn, and may change nothing;
 * - `write` may be lost in a power cut: its job is then handled again;
 * - `release` never fails: a later turn makes it again;
 * - `promise` is answered when the disk has it;
 * - `erase` is a promise that also empties the log of what it deletes.
 */
type Kind = 'read' | 'claim' | 'write' | 'release' | 'promise' | 'erase'

type Step<T> = (jobs: Jobs, row: QueueRow) => T

export interface QueueFile {
  /** The path by which all find it. */
  readonly path: string
  /** @param bytes What it adds. */
  call<T>(kind: Kind, step: Step<T>, bytes?: number): Promise<T>
  reserve(use: Reservation['use']): void
  nextClaim(): number
  /** Calls `listener` soon after another process has pushed. */
  onDue(listener: () => void): void
  close(): Promise<void>
}

interface Call {
  readonly name: string
  readonly kind: Kind
  readonly step: Step<unknown>
  readonly bytes: number
  readonly endsAt: number
  readonly resolve: (value: never) => void
  readonly reject: (error: HooklineError) => void
}

interface Caller {
  readonly name: string
  readonly timeoutMs: number
}

type Shared = ReturnType<typeof createShared> & { users: number }

const shared = new Map<string, Shared>()

/** @throws Error of SQLite; UnusableFile; HooklineError. */
export function openFile(given: string, { name, timeoutMs }: Caller): QueueFile {
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
    call: <T>(kind: Kind, step: Step<T>, bytes = 0) => file.call({ name, timeoutMs }, kind, step, bytes),
    reserve: (use) => file.enter({ name, use }),
    nextClaim: file.nextClaim,
    onDue(listener) {
      stopListening = file.onDue(name, listener)
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

function createShared(path: string) {
  const listeners = new Set<{ readonly name: string; readonly listener: () => void }>()
  const reservations = new Map<string, Reservation>()
  let lock: OwnerLock | undefined
  let opened: Opened | undefined
  let turn: Call[] = []
  let isScheduled = false
  let holds = 0 // While the rest of the log is written into the file.
  let written = 0 // Bytes in the log, about.
  let claims = 0
  let promised: Call[] = []
  const unreleased: Call[] = []
  let syncing: Promise<void> | undefined
  let erasing = 0 // While the log holds what was deleted, and is tried again.

  function start(): Opened {
    if (!lock?.isHeld()) {
      lock?.release()
      lock = undefined // Also when the next one cannot be taken.
      lock = lockOwner(path)
    }
    const file = openConnection(path, lock.owner, (isDue) => {
      for (const { name, listener } of listeners) if (isDue(name)) listener()
    })
    try {
      for (const reservation of reservations.values()) file.enter(reservation)
      return file
    } catch (error) {
      file.close()
      throw error
    }
  }

  function requireUnchanged(): void {
    opened?.requireUnchanged()
    if (lock?.isGone() !== true) return
    throw new UnusableFile(
      `the lock on ${basename(lock.file)}, which tells other processes that this one lives, is gone: the file was removed, or this process copied or opened it. Got no lock. Call again: the next call takes it again. Jobs that another process has taken meanwhile are handled twice.`,
    )
  }

  /** The next call opens it anew. */
  function reset(error: unknown): void {
    const file = opened
    opened = undefined
    refuse(promised.splice(0), error)
    file?.close()
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

  function schedule(): void {
    if (!isScheduled) setImmediate(flush)
    isScheduled = true
  }

  function flush(): void {
    isScheduled = false
    if (holds > 0 || turn.length === 0) return
    const { claim: claiming = [], others = [] } = Object.groupBy(turn, ({ kind }) =>
      kind === 'claim' ? kind : 'others',
    )
    const calls = [...unreleased.splice(0), ...others, ...claiming]
    turn = []
    try {
      opened ??= start()
      requireUnchanged()
    } catch (error) {
      reset(error)
      refuse(calls, error)
      return
    }
    run(calls, opened)
    if (promised.length > 0) syncing ??= sync()
  }

  /** When one fails, each alone, so that only the one at fault does. */
  function run(calls: readonly Call[], file: Opened): void {
    try {
      const answers = file.run(calls)
      for (const [index, call] of calls.entries()) settle(call, answers[index] as Answer)
    } catch (error) {
      if (resultOf(error) === BUSY) tryLater(calls, error)
      else if (calls.length > 1) for (const call of calls) run([call], file)
      else refuse(calls, error)
    }
  }

  function settle(call: Call, answer: Answer): void {
    if ('failure' in answer) refuse([call], answer.failure)
    else if (call.kind === 'promise' || call.kind === 'erase') {
      promised.push({ ...call, resolve: () => call.resolve(answer.value as never) })
      written += 2 * call.bytes + TOUCHED_BYTES // It is overwritten when it goes.
    } else call.resolve(answer.value as never)
  }

  /** Another process writes. SQLite does not wait, so that this thread does not. */
  function tryLater(calls: readonly Call[], error: unknown): void {
    const now = performance.now()
    refuse(
      calls.filter(({ endsAt }) => endsAt <= now),
      error,
    )
    turn.push(...calls.filter(({ endsAt }) => endsAt > now))
    if (turn.length > 0) setTimeout(schedule, 0.5 + Math.random()) // Random, because two that collided would collide again.
  }

  /** Until all that was promised is on the disk. */
  async function sync(): Promise<void> {
    while (promised.length > 0) {
      const calls = promised
      promised = []
      try {
        await (opened as Opened).sync()
        const erases = calls.filter(({ kind }) => kind === 'erase')
        if (erases.length > 0) await erase(Math.max(...erases.map(({ endsAt }) => endsAt)))
        for (const { resolve } of calls) resolve(undefined as never)
        if (written > LOG_BYTES) void shorten()
      } catch (error) {
        reset(error)
        refuse(calls, error)
      }
    }
    syncing = undefined
  }

  /** Writes the log into the file, off the thread; and the rest, while calls wait, so that the log begins anew. */
  async function shorten(): Promise<void> {
    written = 0
    await opened?.checkpoint('PASSIVE')
    await empty('PASSIVE')
  }

  async function empty(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
    holds += 1
    const isDone = await opened?.checkpoint(mode)
    holds -= 1
    schedule()
    return isDone !== false
  }

  /** The log holds older copies of what was deleted. Tried again while another process reads; a later checkpoint overwrites the rest. */
  async function erase(endsAt: number): Promise<void> {
    if ((await empty('TRUNCATE')) || performance.now() >= endsAt) return
    erasing += 1
    const again = (): void => void erase(endsAt).finally(() => (erasing -= 1))
    setTimeout(again, ERASE_EVERY_MS).unref()
  }

  return {
    call<T>({ name, timeoutMs }: Caller, kind: Kind, step: Step<T>, bytes: number): Promise<T> {
      return new Promise((resolve, reject) => {
        turn.push({ name, kind, step, bytes, endsAt: performance.now() + timeoutMs, resolve, reject })
        schedule()
      })
    },
    enter(reservation: Reservation): void {
      opened ??= start()
      opened.enter(reservation)
      reservations.set(reservation.name, reservation)
    },
    nextClaim: () => ++claims,
    onDue(name: string, listener: () => void): () => void {
      const added = { name, listener }
      listeners.add(added)
      return () => void listeners.delete(added)
    },
    /** Ends the calls that were made, but not those that another process keeps waiting. */
    async end(): Promise<void> {
      async function rest(): Promise<void> {
        while (turn.length > 0 || syncing !== undefined) await (syncing ?? nextTurn())
        while (erasing > 0) await delay(ERASE_EVERY_MS)
        if (written > LOG_BYTES / 16) await opened?.checkpoint('PASSIVE') // Closing it writes the rest.
        await opened?.endAside()
      }
      await within(rest(), END_MS, systemClock)
      close()
    },
    close,
  }

  function close(): void {
    const error = new UnusableFile(
      'this process has closed it. Got a call that another process kept waiting. Call again.',
    )
    refuse(turn.splice(0), error)
    reset(error)
    lock?.release()
    lock = undefined
  }
}

const END_MS = 200
const ERASE_EVERY_MS = 20
/** How long the log gets before it is written into the file, about. */
const LOG_BYTES = 16 * 1024 * 1024
/** How many bytes of the log a call takes beside what it adds, about. */
const TOUCHED_BYTES = 8 * 1024

type Opened = ReturnType<typeof openConnection>

type Answer = { readonly value: unknown } | { readonly failure: HooklineError }

/** @param onDue Called soon after another process has committed. */
export function openConnection(path: string, owner: number, onDue: (isDue: (name: string) => boolean) => void) {
  const database = openTables(path)
  const file = watchFile(database, path)
  const queues = createQueues(database)
  const jobs = createJobs(database, queues, owner)
  const [begin, beginWrite, commit] = ['BEGIN', 'BEGIN IMMEDIATE', 'COMMIT'].map((sql) => database.prepare(sql)) as [
    Statement,
    Statement,
    Statement,
  ]
  const commits = watchCommits(database, path, () => onDue(isDue))
  let aside: Aside | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let hasFailed = false

  function isDue(name: string): boolean {
    try {
      return jobs.nextDueAt({ queue: queues.numberOf(name) }) === 0
    } catch {
      return false // The next claim says what is wrong with the file.
    }
  }

  /** Outside of a transaction, because it touches other files. */
  function findDeadOwners(): readonly number[] {
    if (performance.now() - lookedAt < LOOK_EVERY_MS) return []
    lookedAt = performance.now()
    return findDead(
      path,
      jobs.owners().filter((each) => each !== owner),
    )
  }

  function answer({ name, step }: Pick<Call, 'name' | 'step'>): Answer {
    try {
      return { value: step(jobs, queues.rowAt(queues.numberOf(name))) }
    } catch (error) {
      if (error instanceof HooklineError) return { failure: error } // It has changed nothing.
      throw error
    }
  }

  /** Resolves to whether nothing was in its way. */
  async function checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): Promise<boolean> {
    aside ??= createAside(path)
    const result = await aside.run(`PRAGMA wal_checkpoint(${mode})`).catch(() => undefined) // Another one later does it, too.
    return result?.busy === 0
  }

  return {
    requireUnchanged: file.requireUnchanged,
    sync: file.sync,
    checkpoint,
    enter(reservation: Reservation): void {
      retryWhileBusy(() => inTransaction(database, () => queues.enter(reservation)), OPENING_MS)
    },
    run(calls: readonly Pick<Call, 'name' | 'kind' | 'step'>[]): Answer[] {
      const mayClaim = calls.some(({ kind }) => kind === 'claim' || kind === 'erase')
      const dead = mayClaim ? findDeadOwners() : []
      const writes = dead.length > 0 || calls.some(({ kind }) => kind !== 'read' && kind !== 'claim')
      if (hasFailed) {
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)') // After a full disk, the log gets none of the space before it is empty.
        hasFailed = false
      }
      ;(writes ? beginWrite : begin).run()
      try {
        queues.begin()
        for (const each of dead) jobs.releaseAllOf(each)
        const answers = calls.map(answer)
        queues.save()
        commit.run()
        commits.noteUse()
        return answers
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK') // After some errors SQLite has rolled back itself.
        if (dead.length > 0) lookedAt = Number.NEGATIVE_INFINITY
        hasFailed ||= resultOf(error) !== BUSY
        throw error
      }
    },
    async endAside(): Promise<void> {
      await aside?.close()
    },
    close(): void {
      commits.close()
      void aside?.close()
      file.close()
    },
  }
}

type Statement = ReturnType<DatabaseSync['prepare']>

const LOOK_EVERY_MS = 500

/** A file that this process only looks into: each call opens it, and creates nothing. */
export function observeFile(path: string, { name, timeoutMs }: Caller): QueueFile {
  return {
    path,
    async call(kind, step) {
      const value = await observe(`Queue ${name}`, path, timeoutMs, (database) => {
        const queues = createQueues(database)
        const jobs = createJobs(database, queues)
        database.exec(kind === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE')
        const value = step(jobs, queues.rowAt(queues.numberOf(name)))
        queues.save()
        database.exec('COMMIT')
        return value
      })
      const empty = (database: DatabaseSync): void => checkpoint(database, 'TRUNCATE')
      if (kind === 'erase') await observe(`Queue ${name}`, path, timeoutMs, empty).catch(() => {}) // A later one does it, too.
      return value
    },
    reserve() {},
    nextClaim: () => 0,
    onDue() {},
    close: async () => {},
  }
}

export function listQueues(path: string, timeoutMs: number): Promise<string[]> {
  return observe('An observer', path, timeoutMs, (database) => createQueues(database).names())
}

async function observe<T>(
  subject: string,
  path: string,
  timeoutMs: number,
  step: (database: DatabaseSync) => T,
): Promise<T> {
  await nextTurn()
  for (const end = performance.now() + timeoutMs; ; await delay(1)) {
    try {
      if (!existsSync(path)) throw new UnusableFile(`it does not exist. Got no file. ${CHECK_PATH}`)
      const database = connectTo(path)
      try {
        requireTables(database)
        return step(database)
      } finally {
        database.close()
      }
    } catch (error) {
      if (resultOf(error) === BUSY && performance.now() < end) continue
      throw unavailable(subject, path, error)
    }
  }
}

export function unavailable(subject: string, path: string, cause: unknown): HooklineError {
  if (cause instanceof HooklineError) return cause
  return new HooklineError('queue_unavailable', cannotUse(subject, path, cause), { cause })
}
