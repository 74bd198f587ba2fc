/** Opens SQLite files that several processes of one machine share, and retries while another process writes. */

import { closeSync, existsSync, openSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

/**
 * An error whose message says why a file cannot be used, and what to do. The HooklineError that is created from it adds the path of the
 * file.
 */
export class UnusableFile extends Error {}

export function connectTo(path: string): DatabaseSync {
  const { DatabaseSync } = requireSqlite()
  if (path.startsWith('file:')) {
    throw new UnusableFile("SQLite reads a path that begins with 'file:' as a URL. Pass the path of a file.")
  }
  if (existsSync(path) && isMountPoint(realPathOf(path))) {
    throw new UnusableFile(
      'the file is mounted on its own, so its WAL would be outside the mount, and would be lost. Mount its folder instead.',
    )
  }
  if (path !== ':memory:') createForThisUser(path)
  // SQLite must not wait for locks, because each call would then block the thread. Hookline itself retries instead.
  return new DatabaseSync(path, { timeout: 0 })
}

/**
 * Creates a file that only this user may read. SQLite gives the same mode to the files that it keeps beside this file. Does not open an
 * existing file, because closing the file would drop the locks of this process on it.
 */
function createForThisUser(path: string): void {
  if (existsSync(path)) return
  try {
    closeSync(openSync(path, 'a', 0o600)) // The flag `a` also works if the path is a symbolic link to a file that does not exist.
  } catch {
    // SQLite will say what is wrong with the path.
  }
}

function isMountPoint(file: string): boolean {
  let mounts: string
  try {
    mounts = readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return statSync(file).dev !== statSync(dirname(file)).dev // Systems other than Linux do not list their mounts here.
  }
  // The list shows spaces and backslashes as octal escapes.
  const escaped = file.replace(/[\s\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return mounts.split('\n').some((line) => line.split(' ')[4] === escaped)
}

/**
 * Returns the canonical path of an existing file, which is the same for all paths of the file: symbolic links are resolved and, if the file
 * system ignores case, the stored case is used.
 */
export function realPathOf(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return realpathSync(path) // On Windows, the native call fails for a RAM disk.
  }
}

/**
 * Returns a string that identifies the file at a path; undefined if the file does not exist. Uses big integers, because inodes on Windows
 * do not fit into a double.
 */
export function inodeOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

export function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // On Windows, a file that a process has open cannot be removed.
  }
}

export function requireSqlite(): typeof import('node:sqlite') {
  // SQLite is not imported, because an import would make Node.js 22 print a warning in every process that loads this module, even without a
  // queue.
  const sqlite = process.getBuiltinModule('node:sqlite')
  // A method is checked, because workerd has the classes without their methods.
  if (typeof sqlite?.DatabaseSync.prototype.exec === 'function') return sqlite
  throw new UnusableFile(
    'this runtime has no SQLite. Use at least Node 22.19, Bun 1.4 or Deno 2.9, or use another engine.',
  )
}

/** Prepares a connection, and closes it if the preparation throws. */
export function closeIfFails(database: DatabaseSync, prepare: (database: DatabaseSync) => void): DatabaseSync {
  try {
    prepare(database)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** How long opening a file waits for other processes, in milliseconds. */
export const OPENING_MS = 5_000

export function inTransaction<T>(database: DatabaseSync, step: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = step()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK') // After some errors, SQLite has already rolled back.
    throw error
  }
}

/** Retries a step while another connection has the file locked, for at most `ms` milliseconds. Blocks the thread. */
export function retryWhileBusy<T>(step: () => T, ms: number): T {
  for (const end = performance.now() + ms; ; ) {
    try {
      return step()
    } catch (error) {
      if (resultOf(error) !== BUSY || performance.now() >= end) throw error
      // The delay is random, because two connections that collided would otherwise collide again.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.5 + Math.random())
    }
  }
}

/**
 * Writes the content of the WAL to the database file, in this thread.
 *
 * @throws Error with the `errcode` BUSY if another connection to the file prevents the checkpoint, and any error from SQLite.
 */
export function checkpoint(database: DatabaseSync, mode: 'FULL' | 'TRUNCATE'): void {
  if (database.prepare(`PRAGMA wal_checkpoint(${mode})`).get()?.busy !== 0) throw LOCKED
}

/** Returns the result code of a SQLite error, which is the lowest byte of the extended code. Returns undefined for other errors. */
export function resultOf(error: unknown): number | undefined {
  const { errcode }: { readonly errcode?: unknown } = error ?? {}
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

export const BUSY = 5
export const CORRUPT = 11

/** An error with the code and the text of the one that SQLite throws when a file is locked. */
const LOCKED: Error & { readonly errcode: number } = Object.assign(new Error('database is locked'), {
  errcode: BUSY,
})
