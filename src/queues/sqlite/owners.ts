/**
 * Owners: the processes that claim jobs of a file. Each keeps a lock on a side file of its own, which the operating system
 * frees when the process ends, however it ends, and never before: so a lock that is free tells a dead owner.
 */

import { randomInt } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { connectTo, inodeOf, OPENING_MS, removeIfPossible, retryWhileBusy } from '../../sqlite/file.ts'
import { isLocked } from '../../sqlite/watch.ts'
import { type OpenTables, PHASE } from './tables.ts'

export interface OwnerLock {
  readonly owner: number
  /** Whether it still holds for the file at the path; takes it again where this process has dropped it, and no other one took it. */
  isHeld(): boolean
  release(): void
}

/**
 * Takes the lock of a new owner. Held by the thread that calls, so that it outlives a worker thread that dies.
 *
 * @throws Error of SQLite.
 */
export function lockOwner(path: string): OwnerLock {
  const inode = inodeOf(path)
  for (;;) {
    const owner = randomInt(1, 2 ** 48 - 1)
    const file = sideFileOf(path, owner)
    const connection = lock(file, OPENING_MS)
    if (existsSync(file)) {
      const wasLocked = isLocked(file)
      return {
        owner,
        isHeld() {
          if (inodeOf(path) !== inode) return false // In a restored backup, its claims are those of a process that is gone.
          try {
            if (wasLocked && !isLocked(file)) connection.exec('ROLLBACK; BEGIN EXCLUSIVE')
          } catch {
            return false
          }
          return existsSync(file)
        },
        release() {
          connection.close()
          removeIfPossible(file) // Another process may be looking whether it is locked, and then removes it.
        },
      }
    }
    connection.close() // A process that cleans up removed it before it was locked.
  }
}

function lock(file: string, timeoutMs: number): DatabaseSync {
  const connection = connectTo(file)
  try {
    // In memory, else the journal would be one more file.
    retryWhileBusy(() => connection.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'), timeoutMs)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

export function sideFileOf(path: string, owner: number): string {
  return `${path}-owner-${owner.toString(16)}`
}

export function createOwners({ database, path, owner, queues }: OpenTables) {
  const find = database.prepare(`SELECT DISTINCT queue, owner FROM hookline_queue_jobs WHERE phase = ${PHASE.claimed}`)
  // They keep their places: what was claimed first was due first.
  const release = database.prepare(`
    UPDATE hookline_queue_jobs SET phase = ${PHASE.due}, owner = NULL, claim = NULL WHERE phase = ${PHASE.claimed} AND queue = ? AND owner = ?`)
  let dead: { readonly queue: number; readonly owner: number }[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  removeStrays(path, owner)

  return {
    /** Looks for owners that have died, twice a second at most. Outside of a transaction, because it touches other files. */
    findDead(): void {
      if (performance.now() - lookedAt < LOOK_EVERY_MS) return
      lookedAt = performance.now()
      const claims = find.all() as unknown as typeof dead
      const others = new Set(claims.map((claim) => claim.owner))
      others.delete(owner)
      const deadOwners = new Set([...others].filter((other) => removeIfDead(sideFileOf(path, other))))
      dead = claims.filter((claim) => deadOwners.has(claim.owner))
    },
    hasDead: () => dead.length > 0,
    releaseDead(): void {
      for (const { queue, owner } of dead) {
        const count = Number(release.run(queue, owner).changes)
        const row = queues.rowAt(queue)
        row.active -= count
        row.waiting += count
      }
    },
  }
}

const LOOK_EVERY_MS = 500

function removeIfDead(file: string): boolean {
  if (!existsSync(file)) return true
  try {
    const connection = lock(file, 0)
    removeIfPossible(file) // While it is locked: an owner that locks it next sees that it is gone.
    connection.close()
    removeIfPossible(file) // Windows removes no open file.
    return true
  } catch {
    return false // It is locked, or this process may not open it.
  }
}

function removeStrays(path: string, owner: number): void {
  const [folder, prefix] = [dirname(path), `${basename(path)}-owner-`]
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]+$/.test(name.slice(prefix.length))) continue
    const file = join(folder, name)
    if (file !== sideFileOf(path, owner)) removeIfDead(file)
  }
}
