/**
 * Owners: the processes that claim jobs of a file. Each keeps a lock on a side file of its own, which the operating system frees when the
 * process ends, however it ends, and never before: so a lock that is free tells a dead owner.
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

/** Stands for an owner where nothing is claimed: in the transactions of callers and in observers. */
export const NO_OWNER = 0

export interface OwnerLock {
  readonly owner: number
  /** @throws UnusableFile when another process could take this one for dead. */
  requireHeld(): void
  /** Whether it still holds for the file at the path; takes it again where this process has dropped it, and no other one took it. */
  isHeld(): boolean
  release(): void
}

/** Takes the lock of a new owner, and removes the files of dead ones. @throws Error of SQLite. */
export function lockOwner(path: string): OwnerLock {
  const owner = randomInt(1, 2 ** 48 - 1)
  const file = sideFileOf(path, owner)
  const connection = lock(file, OPENING_MS)
  if (!existsSync(file)) {
    connection.close() // A process that cleans up removed it before it was locked.
    return lockOwner(path)
  }
  const inode = inodeOf(path)
  const wasLocked = isLocked(file)
  const isLockGone = watchLock(file)
  removeStrays(path, owner)
  return {
    owner,
    requireHeld() {
      if (existsSync(file) && !isLockGone()) return
      throw new UnusableFile(
        `the lock on ${basename(file)}, which tells other processes that this one lives, is gone: the file was removed, or this process copied or opened it. Got no lock. Call again: the next call takes it again. Jobs that another process has taken meanwhile are handled twice.`,
      )
    },
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

function lock(file: string, timeoutMs: number): DatabaseSync {
  return closeIfFails(connectTo(file), (connection) => {
    // In memory, else the journal would be one more file.
    retryWhileBusy(() => connection.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'), timeoutMs)
  })
}

function sideFileOf(path: string, owner: number): string {
  return `${path}-owner-${owner.toString(16)}`
}

/** Whether the process of an owner has died. Removes its side file then. */
export function isDead(path: string, owner: number): boolean {
  const file = sideFileOf(path, owner)
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

function removeStrays(path: string, own: number): void {
  const prefix = `${basename(path)}-owner-`
  for (const name of readdirSync(dirname(path))) {
    const owner = name.startsWith(prefix) ? name.slice(prefix.length) : ''
    if (/^[0-9a-f]+$/.test(owner) && owner !== own.toString(16)) isDead(path, Number.parseInt(owner, 16))
  }
}

const LOOK_EVERY_MS = 1_000

/** Returns what tells whether this process has lost its lock on a file. It looks once a second, and only where locks can be seen. */
export function watchLock(file: string): () => boolean {
  let lookedAt = isLocked(file) ? performance.now() : Number.POSITIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - lookedAt < LOOK_EVERY_MS) return false
    lookedAt = now
    return isLocked(file) === false
  }
}

/** Whether this process has a lock on a file. Undefined when that cannot be seen: without a file descriptor, or not on Linux. */
function isLocked(file: string): boolean | undefined {
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
