/** A SQLite file that one program writes for itself: recognised before it is changed. */

import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import {
  connectTo,
  inTransaction,
  OPENING_MS,
  openSqlite,
  otherVersion,
  requireSqlite,
  retryWhileBusy,
  UnusableFile,
} from './file.ts'

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
  return openSqlite(path, (opened) => {
    opened.exec(pragmas)
    inTransaction(opened, () => {
      if (isOwn(opened, file)) return
      opened.exec(`${tables}; PRAGMA application_id = ${application}; PRAGMA user_version = ${version}`)
    })
  })
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
export function isOwn(database: DatabaseSync, { application, version, writer, tables }: OwnFile): boolean {
  // One statement: another process may create the tables meanwhile.
  const { found, foundVersion, isEmpty } = database.prepare(IDENTITY).get() as Record<string, unknown>
  if (isEmpty === 1 && found === 0) return false
  if (found !== application) {
    throw new UnusableFile(`it was not written by ${writer}. Got another database. Pass the path of a new file.`)
  }
  if (foundVersion !== version) throw otherVersion(version, foundVersion)
  if (schemaOf(database) === schemaMadeBy(tables)) return true
  throw new UnusableFile(
    `its tables must be those of ${writer}, without a trigger. Got others: another program has changed the file. Delete it, or pass the path of a new file.`,
  )
}

function schemaMadeBy(tables: string): string {
  const { DatabaseSync } = requireSqlite()
  const database = new DatabaseSync(':memory:')
  database.exec(tables)
  const schema = schemaOf(database)
  database.close()
  return schema
}

function schemaOf(database: DatabaseSync): string {
  return JSON.stringify(database.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all())
}

const IDENTITY = `
  SELECT application_id AS found, user_version AS foundVersion, NOT EXISTS (SELECT 1 FROM sqlite_schema) AS isEmpty
  FROM pragma_application_id, pragma_user_version`
