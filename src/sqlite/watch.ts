/**
 * An open SQLite file that may lose its log: whoever drops the locks of this process, or deletes or truncates the files beside it,
 * takes away what is written from then on, without an error of SQLite.
 */

import {
  closeSync,
  existsSync,
  type FSWatcher,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  watch,
} from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { checkpoint, inodeOf, removeIfPossible, retryWhileBusy, UnusableFile } from './file.ts'

export interface WatchedFile {
  requireUnchanged(): void
  /** Resolves when the disk has what was committed before, in a log that others will find. */
  sync(): Promise<void>
  close(): void
}

export function watchFile(database: DatabaseSync, path: string): WatchedFile {
  const before = identityOf(path)
  const areLocksGone = watchLocks(path)
  const log = before === undefined ? undefined : openLog(database, path)
  const header = Buffer.alloc(LOG_MAGIC.length)
  let syncs = 0 // In flight.
  let isClosed = false

  /** A file that cannot be looked at, because no file descriptor is left, for instance, has not changed. */
  function isUnchanged(): boolean {
    try {
      return before !== undefined && identityOf(path) === before
    } catch {
      return true
    }
  }

  /** Whether the log has lost its header: then all of it is ignored when the file is opened again. It may be empty. */
  function isLogTruncated(): boolean {
    if (log === undefined || readSync(log, header, 0, header.length, 0) === 0) return false
    header[3] = (header[3] as number) & 0xfe // Its lowest bit is the byte order of the checksums.
    return !header.equals(LOG_MAGIC)
  }

  /** Else SQLite would write the hole in it into the file. Other processes notice that it is gone. */
  function dropLog(): void {
    ftruncateSync(log as number)
    for (const end of ['-wal', '-shm']) removeIfPossible(path + end)
  }

  function closeLog(): void {
    if (isClosed && syncs === 0 && log !== undefined) closeSync(log)
  }

  function requireUnchanged(): void {
    if (areLocksGone()) {
      throw new UnusableFile(
        'this process copied it, or opened it by other means, which drops all locks on it. Got no lock. Call again: the next call opens it anew.',
      )
    }
    if (isLogTruncated()) throw truncated()
    if (!isUnchanged()) throw removed()
  }

  return {
    requireUnchanged,
    async sync() {
      syncs += 1
      try {
        if (log !== undefined && MAY_SYNC) await syncLog(log)
      } finally {
        syncs -= 1
        closeLog()
      }
      if (isClosed || (log !== undefined && fstatSync(log).nlink === 0)) throw removed()
      if (isLogTruncated()) throw truncated()
    },
    close() {
      if (isLogTruncated()) dropLog()
      else if (!isUnchanged() && !existsSync(`${path}-wal`)) saveLog(database, path)
      database.close()
      isClosed = true
      closeLog()
    },
  }
}

function truncated(): UnusableFile {
  return new UnusableFile(
    'the log beside it was truncated while it was in use, and what was in the log is lost. Got a log without its header. Call again: the next call opens it anew.',
  )
}

function removed(): UnusableFile {
  return new UnusableFile(
    'it, or the log beside it, was removed or replaced while it was in use. Got another file, or none. Call again: the next call opens it anew.',
  )
}

/** SQLite has no locks on the log, which closing it would drop. */
function openLog(database: DatabaseSync, path: string): number {
  try {
    return openSync(`${path}-wal`, 'r+')
  } catch (error) {
    database.close()
    throw error
  }
}

/** Node's permission model allows no program to do so. */
export const MAY_SYNC: boolean = process.permission === undefined

function syncLog(log: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(log, (error) => (error ? reject(error) : resolve()))
  })
}

const LOG_MAGIC = Buffer.from([0x37, 0x7f, 0x06, 0x82])

/** Writes the removed log into the file. The caller has checked that no new log exists: it would be overwritten. */
function saveLog(database: DatabaseSync, path: string): void {
  try {
    retryWhileBusy(() => checkpoint(database, 'FULL'), SAVING_MS)
    removeIfPossible(`${path}-shm`) // It describes the log that is gone.
  } catch {
    // Closing the last connection saves it, too.
  }
}

const SAVING_MS = 1_000
const LOCKS_EVERY_MS = 1_000

export interface CommitWatch {
  /** To be called after each use of the connection: while it is used much, it looks then, and not at its own writes. */
  noteUse(): void
  close(): void
}

/**
 * Calls back soon after another connection has committed, as the system reports writes to the log. Some systems report none: then it does
 * not call back while this connection is idle.
 */
export function watchCommits(database: DatabaseSync, path: string, onCommit: () => void): CommitWatch {
  const read = database.prepare('PRAGMA data_version')
  let version = readVersion()
  let watcher: FSWatcher | undefined
  let looking: NodeJS.Timeout | undefined
  let resuming: NodeJS.Timeout | undefined
  let looks = 0 // Since the last write.
  let usedAt = 0
  let lookedAt = 0
  let tookMs = 0 // The last look.

  /** It does not change with the commits of this connection. */
  function readVersion(): unknown {
    try {
      return read.get()?.data_version
    } catch {
      return undefined // The next request says what is wrong with the file.
    }
  }

  function look(): void {
    const startedAt = performance.now()
    const before = version
    version = readVersion()
    if (version !== before) onCommit()
    lookedAt = performance.now()
    tookMs = lookedAt - startedAt
  }

  function lookLater(): void {
    clearTimeout(looking)
    looking = setTimeout(lookAgain, Math.max(LOOK_AFTER_MS[looks] ?? 0, tookMs / MAX_SHARE)).unref()
  }

  function lookAgain(): void {
    looking = undefined
    look()
    looks += 1
    if (looks < LOOK_AFTER_MS.length) lookLater()
  }

  /** A commit is several writes, and is seen only after the disk has it, without another write. */
  function noteWrite(): void {
    if (looks === 0 && looking !== undefined) return
    looks = 0
    lookLater()
  }

  function open(): void {
    try {
      watcher = watch(`${path}-wal`, { persistent: false }, noteWrite).on('error', stop)
    } catch {
      // The system has no watches left, for instance.
    }
  }

  function stop(): void {
    watcher?.close()
    watcher = undefined
  }

  function resume(): void {
    resuming = performance.now() - usedAt < BUSY_MS ? setTimeout(resume, BUSY_MS).unref() : undefined
    if (resuming !== undefined) return
    open()
    noteWrite() // It may have missed one.
  }

  open()
  return {
    noteUse() {
      const now = performance.now()
      const isBusy = now - usedAt < BUSY_MS
      usedAt = now
      if (!isBusy) return
      stop()
      resuming ??= setTimeout(resume, BUSY_MS).unref()
      if (now - lookedAt > tookMs / MAX_SHARE) look()
    },
    close() {
      clearTimeout(looking)
      clearTimeout(resuming)
      stop()
    },
  }
}

/** A connection that was used so shortly before is busy. */
const BUSY_MS = 10
/** The most of a core that looks take while others write much. */
const MAX_SHARE = 0.02
/** After a write, and after each look. */
const LOOK_AFTER_MS = [1, 2, 5, 10, 20, 50, 100]

/** Returns what tells whether the locks that this process has on a file are gone. It looks once a second. */
export function watchLocks(path: string): () => boolean {
  const wasLocked = isLocked(path)
  let lookedAt = performance.now()
  return () => {
    if (!wasLocked || performance.now() - lookedAt < LOCKS_EVERY_MS) return false
    lookedAt = performance.now()
    return isLocked(path) === false
  }
}

/** Whether this process has a lock on a file. Undefined when that cannot be seen: without a file descriptor, or not on Linux. */
export function isLocked(path: string): boolean | undefined {
  try {
    const inode = `:${statSync(path).ino}`
    const locks = readFileSync('/proc/locks', 'utf8').split('\n')
    return locks.some((line) => {
      const fields = line.split(/\s+/)
      return fields[4] === `${process.pid}` && fields[5]?.endsWith(inode)
    })
  } catch {
    return undefined
  }
}

/** Which files are there; undefined when one is missing. An inode is not used again while this process has it open. */
function identityOf(path: string): string | undefined {
  let identity = ''
  for (const end of ['', '-wal', '-shm']) {
    const inode = inodeOf(path + end)
    if (inode === undefined) return undefined
    identity += `${inode} `
  }
  return identity
}
