/** Creates the errors for a SQLite file that cannot be used. */

import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { HooklineError } from '../../protocol/error.ts'
import { BUSY, CORRUPT, resultOf, UnusableFile } from './database.ts'

// SQLite result codes.
const READONLY = 8
const IOERR = 10
const FULL = 13
const CANTOPEN = 14
const NOTADB = 26

export function unavailable(subject: string, path: string, cause: unknown): HooklineError {
  if (cause instanceof HooklineError) return cause
  const { message }: Partial<Error> = cause ?? {}
  const [reason, advice] = explain(path, resultOf(cause))
  const text = cause instanceof UnusableFile ? message : `${reason} (SQLite: ${message}). ${advice}`
  return new HooklineError('queue_unavailable', `${subject} cannot use ${path}: ${text}`, { cause })
}

function explain(path: string, code: number | undefined): readonly [reason: string, advice: string] {
  switch (code) {
    case BUSY:
      return ['another process keeps it locked', 'End that process, or give each process its own file.']
    case NOTADB:
      return ['it is not a SQLite database', 'Pass the path of a new file.']
    case CORRUPT:
      return ['it is damaged', 'Move it away, together with its -wal and -shm files, and restore a backup.']
    case CANTOPEN:
    case READONLY:
      if (!existsSync(dirname(path))) return [`the folder ${dirname(path)} does not exist`, 'Create the folder first.']
      return [
        'this process may not write to the file or to its folder, where SQLite keeps two more files',
        'Pass the path of a file, not of a folder. The process must be allowed to write to the file and its folder.',
      ]
    case FULL:
    case IOERR:
      return ['the disk is full or failed', 'Free some space, or check the disk.']
    default:
      return ['a statement failed', 'Check what else uses the file.']
  }
}
