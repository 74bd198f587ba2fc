/** Carries out requests on an open file. Those that arrive together become one commit. */

import { HooklineError } from '../../message/error.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import { BUSY, CORRUPT, inTransaction, LOCKED, resultOf, retryWhileBusy } from '../../sqlite/file.ts'
import { watchFile } from '../../sqlite/watch.ts'
import { createClaims } from './claims.ts'
import { createCounts, createReserve } from './counts.ts'
import { createDueJobs } from './due.ts'
import { createOwners } from './owners.ts'
import { createPushes } from './pushes.ts'
import type { Claims, Reply, Request } from './rpc.ts'
import { alone, CHANGES, createStored, ERASES, eraseLog, type StoredRequest } from './stored.ts'
import { type OpenTables, openFile } from './tables.ts'

/** A file that is open. */
export interface OpenFile {
  /**
   * Carries out requests in their order. One that fails leaves no trace, and the others are carried out.
   *
   * @throws UnusableFile when the file was removed or replaced: whether they were carried out is unknown. Close it then.
   */
  run(requests: readonly Request[]): Reply[]
  close(): void
}

/**
 * Opens a file.
 *
 * @throws Error of SQLite, or one that says why the file cannot be used.
 */
export function openForRequests(path: string, owner: number): OpenFile {
  const database = openFile(path)
  const file = watchFile(database, path)
  const counts = createCounts(database)
  const tables: OpenTables = { database, path, owner, counts, damaged: new Set() }
  const reserve = createReserve(database)
  const owners = createOwners(tables)
  const pushes = createPushes(tables)
  const due = createDueJobs(tables, pushes)
  const claims = createClaims(tables, due)
  const stored = createStored(tables, pushes, due)
  let isDurable = true

  function carryOut(request: Request): unknown {
    const row = counts.rowOf(request.queue.name)
    switch (request.kind) {
      case 'push':
        return pushes.push(row, request.queue, request)
      case 'claim':
        owners.releaseDead()
        return { ...claims.claim(row, request), nextDueAt: due.nextDueAt(row.queue) } satisfies Claims
      case 'finish':
        return claims.finish(row, request)
      case 'release':
        return claims.release(row, request)
      case 'undoClaim':
        return claims.undo(row, request.claim)
      default:
        if (request.kind === 'remove') owners.releaseDead()
        return stored(row, request)
    }
  }

  function answer(request: Request): Reply {
    try {
      return { value: carryOut(request) }
    } catch (error) {
      if (error instanceof HooklineError) return failureOf(error, request.queue.name, path) // It has changed nothing.
      throw error
    }
  }

  /** The answer to a claim when nothing is due: it need not lock the file. Undefined for any other request. */
  function answerUnlocked({ kind, queue, now }: Request & { readonly now?: number }): Reply | undefined {
    if (kind !== 'claim' || owners.hasDead()) return undefined
    const nextDueAt = due.nextDueAt(counts.numberOf(queue.name))
    const isDue = nextDueAt !== undefined && nextDueAt <= (now as number)
    return isDue ? undefined : { value: { jobs: [], unreadable: [], nextDueAt } satisfies Claims }
  }

  /** Whether a commit waits for the disk. */
  function setDurable(next: boolean): void {
    if (isDurable !== next) database.exec(`PRAGMA synchronous = ${next ? 'FULL' : 'NORMAL'}`)
    isDurable = next
  }

  /** Ends the claims of complete jobs, and forgets ids twice as fast as jobs are complete. */
  function complete(requests: readonly Request[]): void {
    for (const [name, ofQueue] of Map.groupBy(requests.filter(isComplete), ({ queue }) => queue.name)) {
      const row = counts.rowOf(name)
      claims.complete(row, ofQueue)
      const [{ queue, now }] = ofQueue as [(typeof ofQueue)[number]]
      pushes.prune(row.queue, 2 * ofQueue.length, queue.dedupeWindowMs, now)
    }
  }

  function runTogether(requests: readonly Request[]): Reply[] {
    counts.enter(requests.map(({ queue }) => queue.name))
    for (const { queue } of requests) reserve(queue)
    if (requests.some(({ kind }) => kind === 'claim' || kind === 'remove')) owners.findDead()
    const unlocked = requests.map(answerUnlocked).filter((reply) => reply !== undefined)
    if (unlocked.length === requests.length) return unlocked
    setDurable(requests.some(({ kind }) => !MAY_BE_LOST.has(kind)))
    return inTransaction(database, () => {
      counts.begin()
      complete(requests)
      const replies = requests.map((request) => (isComplete(request) ? DONE : answer(request)))
      counts.save()
      return replies
    })
  }

  function run(requests: readonly Request[]): Reply[] {
    const known = tables.damaged.size
    const timeoutMs = Math.max(...requests.map(({ queue }) => queue.timeoutMs))
    try {
      const replies = retryWhileBusy(() => runTogether(requests), timeoutMs)
      if (requests.some(({ kind }) => ERASES.has(kind))) eraseLog(database, timeoutMs)
      return replies
    } catch (error) {
      if (tables.damaged.size > known) return run(requests)
      const withBody = resultOf(error) === CORRUPT ? keepingBody(requests) : undefined
      if (withBody !== undefined) return run(withBody)
      if (requests.length > 1 && resultOf(error) !== BUSY) return runEach(requests)
      return requests.map(({ queue }) => failureOf(error, queue.name, path))
    }
  }

  /** So that only the one at fault fails. While another process keeps the file locked, one of them waits, not each. */
  function runEach(requests: readonly Request[]): Reply[] {
    let isBusy = false
    return requests.map((request) => {
      if (isBusy) return failureOf(LOCKED, request.queue.name, path)
      const [reply] = run([request]) as [Reply]
      isBusy = 'failure' in reply && resultOf(reply.failure) === BUSY
      return reply
    })
  }

  return {
    run(requests) {
      file.requireUnchanged()
      const replies = run(requests)
      file.requireUnchanged()
      return replies
    },
    close: file.close,
  }
}

/**
 * Carries out the request of an observer, which keeps no file open. What is asked for changes the file, and nothing else does.
 *
 * @throws Error of SQLite, or one that says why the file cannot be used.
 */
export function runAlone(path: string, request: StoredRequest, damaged: OpenTables['damaged'] = new Set()): unknown {
  const known = damaged.size
  try {
    return alone(path, (database) => {
      const counts = createCounts(database)
      const tables: OpenTables = { database, path, owner: NO_OWNER, counts, damaged }
      const pushes = createPushes(tables)
      const stored = createStored(tables, pushes, createDueJobs(tables, pushes))
      database.exec(CHANGES.has(request.kind) ? 'BEGIN IMMEDIATE' : 'BEGIN')
      const answer = stored(counts.find(request.queue.name), request)
      counts.save()
      database.exec('COMMIT')
      if (ERASES.has(request.kind)) eraseLog(database, 0)
      return answer
    })
  } catch (error) {
    if (damaged.size === known) throw error
    return runAlone(path, request, damaged) // Around what is damaged.
  }
}

/** Lists the queues of a file, as {@link runAlone} opens it. */
export function namesIn(path: string): string[] {
  return alone(path, (database) => createCounts(database).names())
}

/** Of what claims nothing. */
const NO_OWNER = 0

/** A body beside a damaged page cannot be deleted: it stays in the file, and its job is complete nonetheless. */
function keepingBody([request, ...others]: readonly Request[]): Request[] | undefined {
  if (others.length > 0 || request?.kind !== 'finish' || request.keepsBody === true) return undefined
  return [{ ...request, keepsBody: true }]
}

const DONE: Reply = { value: undefined }

function isComplete(request: Request): request is Extract<Request, { readonly kind: 'finish' }> {
  return request.kind === 'finish' && request.outcome === 'complete'
}

/** Their commits do not wait for the disk: after a power cut they are made again. */
const MAY_BE_LOST: ReadonlySet<Request['kind']> = new Set(['claim', 'nextDueAt', 'counts', 'deadLetters', 'jobs'])

/** The reply to a request that failed. Messages of SQLite hold no values. */
export function failureOf(error: unknown, name: string, path: string): Reply {
  const errcode = (error as { readonly errcode?: number }).errcode
  if (error instanceof HooklineError) return { failure: { code: error.code, message: error.message, errcode } }
  return { failure: { code: 'queue_unavailable', message: cannotUse(`Queue ${name}`, path, error), errcode } }
}
