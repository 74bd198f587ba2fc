/** Carries out requests on an open file. Those that arrive together become one commit. */

import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../../message/error.ts'
import {
  BUSY,
  checkpoint,
  connectTo,
  inTransaction,
  resultOf,
  retryWhileBusy,
  UnusableFile,
} from '../../sqlite/file.ts'
import { watchCommits, watchFile } from '../../sqlite/watch.ts'
import { createClaims } from './claims.ts'
import { createHistory } from './history.ts'
import { createOwners } from './owners.ts'
import { createStored, requireRoom } from './stored.ts'
import { CHECK_PATH, createQueues, type OpenTables, openFile, prepareObserver } from './tables.ts'
import { type Claims, type Finish, failureOf, type QueueSettings, type Reply, type Request } from './thread-messages.ts'

const DONE: Reply = { value: undefined }

/** Their commits do not wait for the disk: after a power cut they are made again. */
const MAY_BE_LOST: ReadonlySet<Request['kind']> = new Set([
  'claim',
  'nextDueAt',
  'counts',
  'deadLetters',
  'jobs',
  'history',
  'findHandled',
])

/** What a user has deleted: nothing of it stays in the log either. */
const ERASES: ReadonlySet<Request['kind']> = new Set(['drop', 'remove'])

export type OpenFile = ReturnType<typeof openForRequests>

/** @param onDue Called soon after another process has pushed into queues that claimed before. */
export function openForRequests(path: string, owner: number, onDue: (names: readonly string[]) => void = () => {}) {
  const database = openFile(path)
  const file = watchFile(database, path)
  const claiming = new Set<string>()
  const commits = watchCommits(database, path, findDue)
  const tables: OpenTables = { database, path, owner, queues: createQueues(database) }
  const { queues } = tables
  const owners = createOwners(tables)
  const jobs = prepareJobs(tables)
  let isDurable = true
  let hasFailed = false
  let erasing: NodeJS.Timeout | undefined

  function findDue(): void {
    try {
      const names = [...claiming].filter((name) => jobs.nextDueAt(queues.numberOf(name)) === 0)
      if (names.length > 0) onDue(names)
    } catch {
      // The next claim says what is wrong with the file.
    }
  }

  function answer(request: Request): Reply {
    try {
      if (request.kind === 'claim' || request.kind === 'remove') owners.releaseDead()
      return { value: jobs.carryOut(request) }
    } catch (error) {
      if (error instanceof HooklineError) return failureOf(error, request.queue, path) // It has changed nothing.
      throw error
    }
  }

  /** The answer to a claim when nothing is due: it need not lock the file. Undefined for any other request. */
  function answerUnlocked(request: Request): Reply | undefined {
    if (request.kind !== 'claim') return undefined
    claiming.add(request.queue.name)
    if (owners.hasDead()) return undefined
    const nextDueAt = jobs.nextDueAt(queues.numberOf(request.queue.name))
    if (nextDueAt !== undefined && nextDueAt <= request.now) return undefined
    return { value: { jobs: [], unreadable: [], nextDueAt } satisfies Claims }
  }

  function setDurable(next: boolean): void {
    if (isDurable !== next) database.exec(`PRAGMA synchronous = ${next ? 'FULL' : 'NORMAL'}`)
    isDurable = next
  }

  function runTogether(requests: readonly Request[]): Reply[] {
    queues.enter(requests.map(({ queue }) => queue))
    if (requests.some(({ kind }) => kind === 'claim' || kind === 'remove')) owners.findDead()
    const unlocked = requests.map(answerUnlocked).filter((reply) => reply !== undefined)
    if (unlocked.length === requests.length) return unlocked
    setDurable(requests.some(({ kind }) => !MAY_BE_LOST.has(kind)))
    return inTransaction(database, () => {
      queues.begin()
      jobs.complete(requests.filter(isComplete))
      const replies = requests.map((request) => (isComplete(request) ? DONE : answer(request)))
      queues.save()
      return replies
    })
  }

  /** When one fails, each alone, so that only the one at fault does. Together they wait as long as the longest. */
  function run(requests: readonly Request[], endsAt: number): Reply[] {
    const left = (): number => Math.max(0, endsAt - performance.now())
    try {
      if (hasFailed) hasFailed = !emptyLog(database)
      const replies = retryWhileBusy(() => runTogether(requests), left())
      if (requests.some(({ kind }) => ERASES.has(kind))) eraseLog(endsAt)
      return replies
    } catch (error) {
      hasFailed ||= resultOf(error) !== BUSY // After a full disk, the log gets none of the space before it has been emptied.
      if (requests.length > 1 && resultOf(error) !== BUSY) return requests.flatMap((request) => run([request], endsAt))
      return requests.map(({ queue }) => failureOf(error, queue, path))
    }
  }

  /** The log holds older copies of what was deleted. Tried again between the requests; a later checkpoint overwrites what is left. */
  function eraseLog(endsAt: number): void {
    clearTimeout(erasing)
    if (!emptyLog(database) && performance.now() < endsAt) erasing = setTimeout(eraseLog, ERASE_EVERY_MS, endsAt)
  }

  return {
    run(requests: readonly Request[]): Reply[] {
      file.requireUnchanged()
      const timeoutMs = Math.max(...requests.map(({ queue }) => queue.timeoutMs))
      const replies = run(requests, performance.now() + timeoutMs)
      file.requireUnchanged()
      commits.noteUse()
      return replies
    },
    close(): void {
      clearTimeout(erasing)
      commits.close()
      file.close()
    },
  }
}

function prepareJobs(tables: OpenTables) {
  const { queues } = tables
  const claims = createClaims(tables)
  const stored = createStored(tables)
  const history = createHistory(tables)

  function carryOut(request: Request): unknown {
    const settings = request.queue
    const row = queues.rowAt(queues.numberOf(settings.name))
    switch (request.kind) {
      case 'push':
        return stored.push(row, settings, request)
      case 'claim':
        return claims.claim(row, request)
      case 'finish':
        return claims.finish(row, request)
      case 'save':
        return claims.save(request.retryState, request)
      case 'release':
        return claims.release(row, request)
      case 'undoClaim':
        return claims.undo(row, request.claim)
      case 'nextDueAt':
        return claims.nextDueAt(row.queue)
      case 'counts':
        return { ...row, ...claims.health(row.queue, request.now) }
      case 'deadLetters':
        return stored.deadLetters(row.queue, request)
      case 'redrive':
        return stored.redrive(row, settings, request)
      case 'drop':
        return stored.drop(row, request)
      case 'jobs':
        return stored.jobs(row.queue, request.after, request.limit)
      case 'remove':
        return stored.remove(row, request.ids) + history.remove(row, request.ids)
      case 'history':
        return history.list(row.queue, request)
      case 'findHandled':
        return history.find(row.queue, request.ids)
      case 'replay':
        return history.replay(row, request.now, request.jobs, (more) => requireRoom(row, settings, more))
      case 'dropHandled':
        return history.drop(row, request)
      case 'note':
        return history.note(row.queue, request.name, request.text)
    }
  }

  return {
    carryOut,
    nextDueAt: claims.nextDueAt,
    complete(requests: readonly CompleteRequest[]): void {
      for (const [name, ofQueue] of Map.groupBy(requests, ({ queue }) => queue.name)) {
        const row = queues.rowAt(queues.numberOf(name))
        const [{ queue, now }] = ofQueue as [CompleteRequest]
        claims.complete(row, ofQueue)
        stored.prune(row.queue, 2 * ofQueue.length, queue, now)
      }
    },
  }
}

type CompleteRequest = Finish & { readonly queue: QueueSettings }

function isComplete(request: Request): request is CompleteRequest {
  return request.kind === 'finish' && (request.outcome === 'complete' || request.outcome === 'keep')
}

const ERASE_EVERY_MS = 20

/** Writes the log into the file. False while another process reads or writes, and where that fails. */
function emptyLog(database: DatabaseSync): boolean {
  try {
    checkpoint(database, 'TRUNCATE')
    return true
  } catch {
    return false
  }
}

export function runAlone(path: string, request: Request): unknown {
  return alone(path, (database) => {
    const queues = createQueues(database)
    database.exec(CHANGES.has(request.kind) ? 'BEGIN IMMEDIATE' : 'BEGIN')
    const answer = prepareJobs({ database, path, owner: NO_OWNER, queues }).carryOut(request)
    queues.save()
    database.exec('COMMIT')
    if (ERASES.has(request.kind)) emptyLog(database)
    return answer
  })
}

const NO_OWNER = 0

/** What an observer may change. */
const CHANGES: ReadonlySet<Request['kind']> = new Set(['redrive', 'drop', 'remove', 'replay', 'note'])

export function alone<T>(path: string, step: (database: DatabaseSync) => T): T {
  if (!existsSync(path)) throw new UnusableFile(`it does not exist. Got no file. ${CHECK_PATH}`)
  const database = connectTo(path)
  try {
    prepareObserver(database)
    return step(database)
  } finally {
    database.close()
  }
}
