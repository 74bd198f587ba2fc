/**
 * The log of an open SQLite file, `-wal`: synced off the thread, and guarded. Whoever drops the locks of this process, or deletes or
 * truncates one of the files, takes away what is written from then on, without an error of SQLite.
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

/** Node's permission model allows no program to sync. */
export const MAY_SYNC: boolean = process.permission === undefined

const MAGIC = Buffer.from([0x37, 0x7f, 0x06, 0x82])
const SAVING_MS = 1_000
const AGAIN = 'Call again: the next call opens it anew.'

export class LogGuard {
  readonly #database: DatabaseSync
  readonly #path: string
  readonly #before: string
  readonly #log: number
  readonly #header = Buffer.alloc(MAGIC.length)
  readonly #isLockGone: () => boolean
  #syncing: Promise<void> | undefined
  #nextSync: Promise<void> | undefined
  #closedFor: unknown

  constructor(database: DatabaseSync, path: string) {
    this.#database = database
    this.#path = path
    this.#before = identityOf(path)
    this.#log = openSync(`${path}-wal`, 'r+') // SQLite has no locks on it, which closing it would drop.
    this.#isLockGone = watchLock(path)
  }

  requireUnchanged(): void {
    if (this.#isLockGone()) {
      const what = 'this process copied it, or opened it by other means, which drops all locks on it'
      throw new UnusableFile(`${what}. Got no lock. ${AGAIN}`)
    }
    this.#requireLog(this.#isReplaced())
  }

  /** Resolves when the disk has what was committed before, in a log that others will find. Calls that come during a sync share the next. */
  sync(): Promise<void> {
    this.#nextSync ??= Promise.allSettled([this.#syncing]).then(() => {
      this.#syncing = this.#nextSync
      this.#nextSync = undefined
      return this.#syncNow()
    })
    return this.#nextSync
  }

  /** @param reason Rejects the syncs that have not ended. */
  close(reason: unknown): void {
    if (this.#isTruncated()) {
      ftruncateSync(this.#log) // SQLite would write the hole in it into the file. Other processes notice that it is gone.
      for (const end of ['-wal', '-shm']) removeIfPossible(this.#path + end)
    } else if (this.#isReplaced() && !existsSync(`${this.#path}-wal`)) save(this.#database, this.#path)
    this.#database.close()
    this.#closedFor = reason
    void Promise.allSettled([this.#syncing, this.#nextSync]).then(() => closeSync(this.#log))
  }

  async #syncNow(): Promise<void> {
    if (this.#closedFor === undefined && MAY_SYNC) await promisify(fdatasync)(this.#log)
    if (this.#closedFor !== undefined) throw this.#closedFor
    this.#requireLog(fstatSync(this.#log).nlink === 0)
  }

  #requireLog(isGone: boolean): void {
    if (!isGone && !this.#isTruncated()) return
    const [what, found] = isGone
      ? ['it, or the log beside it, was removed or replaced while it was in use', 'another file, or none']
      : [
          'the log beside it was truncated while it was in use, and what was in the log is lost',
          'a log without its header',
        ]
    throw new UnusableFile(`${what}. Got ${found}. ${AGAIN}`)
  }

  /** A file that cannot be looked at, because no file descriptor is left, for instance, has not changed. */
  #isReplaced(): boolean {
    try {
      return identityOf(this.#path) !== this.#before
    } catch {
      return false
    }
  }

  /** Whether the log has lost its header: then all of it is ignored when the file is opened again. It may be empty. */
  #isTruncated(): boolean {
    const header = this.#header
    if (readSync(this.#log, header, 0, header.length, 0) === 0) return false
    header.writeUInt8(header.readUInt8(3) & 0xfe, 3) // Its lowest bit is the byte order of the checksums.
    return !header.equals(MAGIC)
  }
}

/** Names the three files that are there. An inode is not used again while this process has it open. */
function identityOf(path: string): string {
  return ['', '-wal', '-shm'].map((end) => inodeOf(path + end)).join(' ')
}

/** Writes the removed log into the file. The caller has checked that no new log exists: it would be overwritten. */
function save(database: DatabaseSync, path: string): void {
  try {
    retryWhileBusy(() => checkpoint(database, 'FULL'), SAVING_MS)
    removeIfPossible(`${path}-shm`) // It describes the log that is gone.
  } catch {
    // Closing the last connection saves it, too.
  }
}

/** A commit is several writes, and is seen only after the last one, which may wait for the disk. */
const LOOK_AFTER_MS = [1, 2, 5, 20, 100] as const

/**
 * Calls back soon after another connection has committed, as the system reports writes to the log; not where it reports none.
 *
 * @returns A function that ends it.
 */
export function watchCommits(database: DatabaseSync, path: string, onCommit: () => void): () => void {
  const read = database.prepare('PRAGMA data_version') // It does not change with the commits of this connection.
  let version = read.get()?.data_version
  let looks = 0 // Since the last write.
  let timer: NodeJS.Timeout | undefined
  let watcher: FSWatcher | undefined

  function look(): void {
    const before = version
    try {
      version = read.get()?.data_version
    } catch {
      // The next call says what is wrong with the file.
    }
    looks += 1
    timer = looks < LOOK_AFTER_MS.length ? setTimeout(look, LOOK_AFTER_MS[looks]).unref() : undefined
    if (version !== before) onCommit()
  }

  function noteWrite(): void {
    if (timer !== undefined && looks === 0) return
    clearTimeout(timer)
    looks = 0
    timer = setTimeout(look, LOOK_AFTER_MS[0]).unref()
  }

  try {
    watcher = watch(`${path}-wal`, { persistent: false }, noteWrite).on('error', () => watcher?.close())
  } catch {
    // The system has no watches left, for instance.
  }
  return () => {
    clearTimeout(timer)
    watcher?.close()
  }
}
