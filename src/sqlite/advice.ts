/** What errors say about a SQLite file that cannot be used. */

import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { BUSY, CORRUPT, resultOf, UnusableFile } from './file.ts'

const READONLY = 8
const IOERR = 10
const FULL = 13
const CANTOPEN = 14
const NOTADB = 26

export function cannotUse(subject: string, path: string, error: unknown): string {
  const { message } = error as Error
  if (error instanceof UnusableFile) return `${subject} cannot use ${path}: ${message}`
  const [reason, advice] = explain(path, resultOf(error))
  return `${subject} cannot use ${path}: ${reason}. Got '${message}'. ${advice}`
}

function explain(path: string, code: number | undefined): readonly [reason: string, advice: string] {
  switch (code) {
    case BUSY:
      return ['another process keeps it locked', 'End that process, or give each its own file.']
    case NOTADB:
      return ['it is not a SQLite database', 'Pass the path of a new file.']
    case CORRUPT:
      return ['it is damaged', 'Move it away, with the files -wal and -shm beside it, and restore a copy.']
    case CANTOPEN:
    case READONLY:
      return explainAccess(dirname(path))
    case FULL:
    case IOERR:
      return ['the disk is full or failed', 'Free space on it, or check the disk.']
    default:
      return ['a statement failed', 'Check what else uses the file.']
  }
}

function explainAccess(directory: string): readonly [reason: string, advice: string] {
  if (!existsSync(directory)) return [`the directory ${directory} does not exist`, 'Create it first.']
  if (isWritable(directory)) {
    return [
      'this process may not write to it',
      'Pass the path of a file, not of a directory, that this process may read and write.',
    ]
  }
  return [
    `this process may not write to ${directory}, where SQLite keeps two more files`,
    'Make the directory writable, or pass a path in another one.',
  ]
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK)
    return true
  } catch {
    return false
  }
}
