/** A SQLite file that one program writes for itself: recognised before it is changed, and for this user alone. */

import { chmodSync, existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { connectTo, inTransaction, OPENING_MS, openSqlite, otherVersion, retryWhileBusy, UnusableFile } from './file.ts'

export interface OwnFile {
  readonly application: number
  readonly version: number
  readonly tables: string
  readonly writer: string
  readonly pragmas: string
}

export function openOwn(path: string, file: OwnFile): DatabaseSync {
  const { application, version, tables, pragmas } = file
  if (existsSync(path)) connectToOwn(path, file).close()
  const database = openSqlite(path, (opened) => {
    opened.exec(pragmas)
    inTransaction(opened, () => {
      if (isOwn(opened, file)) return
      opened.exec(`${tables}; PRAGMA application_id = ${application}; PRAGMA user_version = ${version}`)
    })
  })
  // Before any message is in it. SQLite gives the files beside it the mode of the file.
  for (const each of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(each)) chmodSync(each, 0o600)
  return database
}

export function connectToOwn(path: string, file: OwnFile): DatabaseSync {
  const database = connectTo(path)
  try {
    retryWhileBusy(() => isOwn(database, file), OPENING_MS)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Whether it has the tables; false for an empty database. @throws UnusableFile for any other. */
export function isOwn(database: DatabaseSync, { application, version, writer }: OwnFile): boolean {
  // One statement: another process may create the tables meanwhile.
  const { found, foundVersion, isEmpty } = database.prepare(IDENTITY).get() as Record<string, unknown>
  if (isEmpty === 1 && found === 0) return false
  if (found !== application) {
    throw new UnusableFile(`it was not written by ${writer}. Got another database. Pass the path of a new file.`)
  }
  if (foundVersion === version) return true
  throw otherVersion(version, foundVersion)
}

const IDENTITY = `
  SELECT application_id AS found, user_version AS foundVersion, NOT EXISTS (SELECT 1 FROM sqlite_schema) AS isEmpty
  FROM pragma_application_id, pragma_user_version`
