/**
 * The WAL of an open SQLite file, which is the file with `-wal` added to the path. Syncs the WAL outside this thread.
 * Refuses further writes if this process has lost its locks, or if a file was deleted or truncated, because SQLite would
 * lose such writes without an error.
 */

import {
  closeSync,
  existsSync,
  type FSWatcher,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  watch,
} from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { checkpoint, inodeOf, removeIfPossible, retryWhileBusy, UnusableFile } from './database.ts'
import { watchLock } from './locks.ts'

/** Whether this process may sync files, which the Node.js permission model does not allow. */
export const MAY_SYNC: boolean = process.permission === undefined

/** The first bytes of every WAL, except for the lowest bit of the last byte, which tells the byte order of the checksums. */
const MAGIC = Buffer.from([0x37, 0x7f, 0x06, 0x82])
const SAVE_MS = 1_000
const CALL_AGAIN = 'Call again: the next call reopens the file.'

export class WalGuard {
  readonly #database: DatabaseSync
  readonly #path: string
  readonly #openedFiles: string
  readonly #wal: number
  readonly #header = Buffer.alloc(MAGIC.length)
  readonly #isLockGone: () => boolean
  #syncing: Promise<void> | undefined
  #nextSync: Promise<void> | undefined
  #closeReason: unknown

  constructor(database: DatabaseSync, path: string) {
    this.#database = database
    this.#path = path
    this.#openedFiles = identifyFiles(path)
    // Opening and closing the WAL drops no locks, because SQLite has none on it.
    this.#wal = openSync(`${path}-wal`, 'r+')
    this.#isLockGone = watchLock(path)
  }

  requireUnchanged(): void {
    if (this.#isLockGone()) {
      const reason = 'this process copied it, or opened it by other means, which drops all locks on it'
      throw new UnusableFile(`${reason}. ${CALL_AGAIN}`)
    }
    this.#requireWal(this.#isReplaced())
  }

  /**
   * Resolves when all earlier commits are on the disk, in a WAL that other processes will find. Calls during a sync share the next sync.
   */
  sync(): Promise<void> {
    this.#nextSync ??= Promise.allSettled([this.#syncing]).then(() => {
      this.#syncing = this.#nextSync
      this.#nextSync = undefined
      return this.#syncNow()
    })
    return this.#nextSync
  }

  /** @param reason The error with which unfinished syncs reject. */
  close(reason: unknown): void {
    if (this.#isTruncated()) {
      // Without the truncation, SQLite would write the missing part of the WAL to the database file as zeros. Other processes will notice
      // that the WAL is gone.
      ftruncateSync(this.#wal)
      for (const end of ['-wal', '-shm']) removeIfPossible(this.#path + end)
    } else if (this.#isReplaced() && !existsSync(`${this.#path}-wal`)) saveRemovedWal(this.#database, this.#path)
    this.#database.close()
    this.#closeReason = reason
    void Promise.allSettled([this.#syncing, this.#nextSync]).then(() => closeSync(this.#wal))
  }

  async #syncNow(): Promise<void> {
    if (this.#closeReason === undefined && MAY_SYNC) await promisify(fdatasync)(this.#wal)
    if (this.#closeReason !== undefined) throw this.#closeReason
    this.#requireWal(fstatSync(this.#wal).nlink === 0)
  }

  #requireWal(isGone: boolean): void {
    if (isGone)
      throw new UnusableFile(`the file or its WAL was removed or replaced while the file was in use. ${CALL_AGAIN}`)
    if (!this.#isTruncated()) return
    throw new UnusableFile(
      `its WAL was truncated while the file was in use, and the data in the WAL is lost. ${CALL_AGAIN}`,
    )
  }

  /**
   * Returns whether one of the files was removed or replaced. Returns false if the files cannot be inspected, because the
   * process may just have no file descriptor left.
   */
  #isReplaced(): boolean {
    try {
      return identifyFiles(this.#path) !== this.#openedFiles
    } catch {
      return false
    }
  }

  /**
   * Returns whether the WAL has lost its header. Without the header, the next process that opens the file would ignore the whole WAL. An
   * empty WAL counts as intact.
   */
  #isTruncated(): boolean {
    const header = this.#header
    if (readSync(this.#wal, header, 0, header.length, 0) === 0) return false
    header.writeUInt8(header.readUInt8(3) & 0xfe, 3)
    return !header.equals(MAGIC)
  }
}

/** Returns the inodes of the file, its WAL and its index. The system does not reuse an inode while this process has the file open. */
function identifyFiles(path: string): string {
  return ['', '-wal', '-shm'].map((end) => inodeOf(path + end)).join(' ')
}

/**
 * Writes the content of a removed WAL to the database file. The caller has checked that there is no new WAL, because the
 * older content would overwrite the changes in a new one.
 */
function saveRemovedWal(database: DatabaseSync, path: string): void {
  try {
    retryWhileBusy(() => checkpoint(database, 'FULL'), SAVE_MS)
    removeIfPossible(`${path}-shm`) // The index describes the WAL that is gone.
  } catch {
    // Closing the last connection also writes the WAL to the file.
  }
}

/**
 * The delays, in milliseconds, after which to look for a commit once the WAL has been written to. One look is not enough, because a commit
 * consists of several writes and is visible only after the last one, which may wait for the disk.
 */
const LOOK_AFTER_MS = [1, 2, 5, 20, 100] as const

/**
 * Calls `onCommit` soon after another connection has committed. Relies on the operating system to report writes to the WAL; if it reports
 * none, `onCommit` is never called.
 *
 * @returns A function that stops watching.
 */
export function watchCommits(database: DatabaseSync, path: string, onCommit: () => void): () => void {
  const versionQuery = database.prepare('PRAGMA data_version') // `data_version` changes only with the commits of other connections.
  let version = versionQuery.get()?.data_version
  let looks = 0 // The number of looks since the last write.
  let timer: NodeJS.Timeout | undefined
  let watcher: FSWatcher | undefined

  function look(): void {
    const before = version
    try {
      version = versionQuery.get()?.data_version
    } catch {
      // The next call will say what is wrong with the file.
    }
    looks += 1
    timer = looks < LOOK_AFTER_MS.length ? setTimeout(look, LOOK_AFTER_MS[looks]).unref() : undefined
    if (version !== before) onCommit()
  }

  function noteWrite(): void {
    if (timer !== undefined && looks === 0) return // The first look is still to come.
    clearTimeout(timer)
    looks = 0
    timer = setTimeout(look, LOOK_AFTER_MS[0]).unref()
  }

  try {
    watcher = watch(`${path}-wal`, { persistent: false }, noteWrite).on('error', () => watcher?.close())
  } catch {
    // The system cannot watch the file, for example because it has no watches left.
  }
  return () => {
    clearTimeout(timer)
    watcher?.close()
  }
}
