/**
 * Owners: the processes that claim jobs of a file. Each keeps a lock on a side file of its own, which the operating system
 * frees when the process ends, however it ends, and never before: so a lock that is free tells a dead owner.
 */

import { randomInt } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { connectTo, inodeOf, OPENING_MS, removeIfPossible, retryWhileBusy } from '../../sqlite/file.ts'
import { isLocked, watchLocks } from '../../sqlite/watch.ts'

export interface OwnerLock {
  readonly owner: number
  readonly file: string
  /** Whether another process could take this one for dead. It looks at the lock once a second. */
  isGone(): boolean
  /** Whether it still holds for the file at the path; takes it again where this process has dropped it, and no other one took it. */
  isHeld(): boolean
  release(): void
}

/** Takes the lock of a new owner, and removes the files of dead ones. @throws Error of SQLite. */
export function lockOwner(path: string): OwnerLock {
  const inode = inodeOf(path)
  for (;;) {
    const owner = randomInt(1, 2 ** 48 - 1)
    const file = sideFileOf(path, owner)
    const connection = lock(file, OPENING_MS)
    if (existsSync(file)) {
      const wasLocked = isLocked(file)
      const isLockGone = watchLocks(file)
      removeStrays(path, file)
      return {
        owner,
        file,
        isGone: () => !existsSync(file) || isLockGone(),
        isHeld() {
          if (inodeOf(path) !== inode) return false // In a restored backup, its claims are those of a process that is gone.
          try {
            if (wasLocked && isLocked(file) === false) connection.exec('ROLLBACK; BEGIN EXCLUSIVE')
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

function sideFileOf(path: string, owner: number): string {
  return `${path}-owner-${owner.toString(16)}`
}

/** Returns those of these owners whose processes have died. */
export function findDead(path: string, owners: readonly number[]): readonly number[] {
  return owners.filter((owner) => removeIfDead(sideFileOf(path, owner)))
}

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

function removeStrays(path: string, own: string): void {
  const [folder, prefix] = [dirname(path), `${basename(path)}-owner-`]
  for (const name of readdirSync(folder)) {
    const file = join(folder, name)
    if (name.startsWith(prefix) && /^[0-9a-f]+$/.test(name.slice(prefix.length)) && file !== own) removeIfDead(file)
  }
}
