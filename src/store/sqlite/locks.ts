/**
 * Owners are the processes that claim jobs of a file. Each owner keeps a lock on its own side file. The operating system
 * frees the lock when the process ends, for whatever reason. An owner whose lock is free is therefore dead, unless its
 * process has dropped the lock, as happens when the process copies the side file.
 */

import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import {
  closeIfFails,
  connectTo,
  inodeOf,
  OPENING_MS,
  removeIfPossible,
  retryWhileBusy,
  UnusableFile,
} from './database.ts'

/** Stands for an owner where no jobs are claimed: in the transactions of callers and in observers. */
export const NO_OWNER = 0

export interface OwnerLock {
  readonly owner: number
  /** @throws UnusableFile if other processes might treat this process as dead. */
  requireHeld(): void
  /**
   * Returns whether this process holds the lock for the file that is now at the path. Takes the lock again if this process dropped the lock
   * and no other process took it.
   */
  isHeld(): boolean
  release(): void
}

/**
 * Creates an owner and takes its lock, and removes the side files of dead owners.
 *
 * @throws Error from SQLite.
 */
export function lockOwner(path: string): OwnerLock {
  const owner = randomInt(1, 2 ** 48 - 1)
  const file = sideFileOf(path, owner)
  const connection = lock(file, OPENING_MS)
  if (!existsSync(file)) {
    connection.close() // Before the file was locked, another process removed it as the side file of a dead owner.
    return lockOwner(path)
  }
  const inode = inodeOf(path)
  const wasLocked = hasLockOn(file)
  const isLockGone = watchLock(file)
  removeSideFilesOfDead(path, owner)
  return {
    owner,
    requireHeld() {
      if (existsSync(file) && !isLockGone()) return
      throw new UnusableFile(
        `the lock on ${basename(file)}, which tells other processes that this process is alive, is gone. The file was removed, or this process copied or opened it. Call again: the next call takes the lock again. Jobs that another process has claimed in the meantime may be handled twice.`,
      )
    },
    isHeld() {
      // If another file, such as a backup, is now at the path, its claims are treated as claims of a dead process.
      if (inodeOf(path) !== inode) return false
      try {
        if (wasLocked && hasLockOn(file) === false) connection.exec('ROLLBACK; BEGIN EXCLUSIVE')
      } catch {
        return false
      }
      return existsSync(file)
    },
    release() {
      connection.close()
      removeIfPossible(file) // On Windows, this fails if another process is checking the file, but that process then removes the file.
    },
  }
}

function lock(file: string, timeoutMs: number): DatabaseSync {
  return closeIfFails(connectTo(file), (connection) => {
    // The journal is in memory, because a journal file would be left behind when the process dies.
    retryWhileBusy(() => connection.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'), timeoutMs)
  })
}

function sideFileOf(path: string, owner: number): string {
  return `${path}-owner-${owner.toString(16)}`
}

/** Returns whether the process of an owner has died. If it has, removes its side file. */
export function isDead(path: string, owner: number): boolean {
  const file = sideFileOf(path, owner)
  if (!existsSync(file)) return true
  try {
    const connection = lock(file, 0)
    // The file can be removed safely while it is locked, because an owner that waits for the lock will see that the file is gone.
    removeIfPossible(file)
    connection.close()
    removeIfPossible(file) // On Windows, the first removal failed, because the file was open.
    return true
  } catch {
    return false // The file is locked by its owner, or this process may not open it.
  }
}

/** Removes the side files of dead owners other than `self`. */
function removeSideFilesOfDead(path: string, self: number): void {
  const prefix = `${basename(path)}-owner-`
  for (const name of readdirSync(dirname(path))) {
    const owner = name.startsWith(prefix) ? name.slice(prefix.length) : ''
    if (/^[0-9a-f]+$/.test(owner) && owner !== self.toString(16)) isDead(path, Number.parseInt(owner, 16))
  }
}

const LOOK_EVERY_MS = 1_000

/**
 * Returns a function that tells whether this process has lost its lock on a file. The function checks at most once a second, and only on
 * systems that list their locks.
 */
export function watchLock(file: string): () => boolean {
  let lookedAt = hasLockOn(file) ? performance.now() : Number.POSITIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - lookedAt < LOOK_EVERY_MS) return false
    lookedAt = now
    return hasLockOn(file) === false
  }
}

/**
 * Returns whether this process has a lock on a file. Returns undefined if this cannot be determined, because no file descriptor is left or
 * the system is not Linux.
 */
function hasLockOn(file: string): boolean | undefined {
  try {
    const inode = `:${statSync(file).ino}`
    const locks = readFileSync('/proc/locks', 'utf8').split('\n')
    return locks
      .map((line) => line.split(/\s+/))
      .some(([, , , , pid, on]) => pid === `${process.pid}` && on?.endsWith(inode))
  } catch {
    return undefined
  }
}
