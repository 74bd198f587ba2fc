/** Opens a SQLite file that several processes of one machine share, and waits while another one writes. */

import { closeSync, existsSync, openSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

export class UnusableFile extends Error {}

export function connectTo(path: string): DatabaseSync {
  const { DatabaseSync } = requireSqlite()
  if (path.startsWith('file:')) {
    throw new UnusableFile("SQLite reads it as a URL. Got a path that begins with 'file:'. Pass the path of a file.")
  }
  if (existsSync(path) && isMountPoint(realPathOf(path))) {
    throw new UnusableFile(
      'the file is mounted alone, so its WAL would lie outside of the mount, and be lost. Mount its folder.',
    )
  }
  if (path !== ':memory:') createForThisUser(path)
  return new DatabaseSync(path, { timeout: 0 })
}

/** SQLite gives the files beside it the same mode. One that exists is not opened: to close it would drop the locks of this process. */
function createForThisUser(path: string): void {
  if (existsSync(path)) return
  try {
    closeSync(openSync(path, 'a', 0o600)) // Also through a symbolic link to a file that does not exist.
  } catch {
    // SQLite says what is wrong with the path.
  }
}

function isMountPoint(file: string): boolean {
  let mounts: string
  try {
    mounts = readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return statSync(file).dev !== statSync(dirname(file)).dev // Not Linux.
  }
  const escaped = file.replace(/[\s\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return mounts.split('\n').some((line) => line.split(' ')[4] === escaped)
}

/** The one path of a file that exists, by whichever path it is found: also in another case, where the file system ignores case. */
export function realPathOf(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return realpathSync(path) // Windows does not know that of a file on a disk in memory.
  }
}

/** Identifies the file at a path; undefined if it does not exist. Its number does not fit into a double on Windows. */
export function inodeOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

export function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // Windows removes no file that a process has open.
  }
}

export function requireSqlite(): typeof import('node:sqlite') {
  // Not an import: Node 22 would print a warning to everybody who loads this module, used or not.
  const sqlite = process.getBuiltinModule('node:sqlite')
  if (typeof sqlite?.DatabaseSync.prototype.exec === 'function') return sqlite // workerd has the names alone.
  throw new UnusableFile(
    'this runtime has no SQLite. Got one without the module node:sqlite. Run on Node 22.19, Bun 1.4 or Deno 2.9, or use another engine.',
  )
}

export function closeIfFails(database: DatabaseSync, prepare: (database: DatabaseSync) => void): DatabaseSync {
  try {
    prepare(database)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** How long opening waits for other processes, in milliseconds. */
export const OPENING_MS = 5_000

export function inTransaction<T>(database: DatabaseSync, step: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = step()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK') // After some errors SQLite has rolled back itself.
    throw error
  }
}

/** Runs a step again while another connection has the file locked, for at most `ms` milliseconds. Blocks the thread. */
export function retryWhileBusy<T>(step: () => T, ms: number): T {
  for (const end = performance.now() + ms; ; ) {
    try {
      return step()
    } catch (error) {
      if (resultOf(error) !== BUSY || performance.now() >= end) throw error
      // Random, because two connections that collided would collide again.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.5 + Math.random())
    }
  }
}

export function checkpoint(database: DatabaseSync, mode: 'FULL' | 'TRUNCATE'): void {
  if (database.prepare(`PRAGMA wal_checkpoint(${mode})`).get()?.busy !== 0) throw LOCKED
}

/** The result code of an SQLite error: the lowest byte of the extended one. Undefined for other errors. */
export function resultOf(error: unknown): number | undefined {
  const errcode = (error as { readonly errcode?: unknown } | null)?.errcode
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

export const BUSY = 5
export const CORRUPT = 11

const LOCKED: Error & { readonly errcode: number } = Object.assign(new Error('database is locked'), {
  errcode: BUSY,
})
