/** What to do about a SQLite file that cannot be opened. */

import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { BUSY, CORRUPT, resultOf } from './sqlite-file.ts'

/** Result codes of SQLite. */
const READONLY = 8
const CANTOPEN = 14
const NOTADB = 26

/** Says what is wrong with the file, and what to do. */
export function adviceFor(path: string, error: unknown): string {
  const directory = dirname(path)
  switch (resultOf(error)) {
    case BUSY:
      return 'another process keeps it locked. End that process, or give each its own file.'
    case NOTADB:
      return 'it is not a SQLite database. Give the path of a new file.'
    case CORRUPT:
      return 'it is damaged. Move it away, with the files -wal and -shm beside it, and restore a copy.'
    case CANTOPEN:
    case READONLY:
      if (!existsSync(directory)) return `the directory ${directory} does not exist. Make it first.`
      return isWritable(directory)
        ? 'this process may not write to it. Give it a file that it may read and write, and that is no directory.'
        : `this process may not write to ${directory}. SQLite keeps two files beside it there: make it writable.`
    default:
      return `${(error as Error).message}.`
  }
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK)
    return true
  } catch {
    return false
  }
}
