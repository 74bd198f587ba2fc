/** The file of handled messages: opened, with its tables. */

import type { DatabaseSync } from 'node:sqlite'
import { inTransaction, openSqlite, UnusableFile } from '../../sqlite/file.ts'

/** The version of the table. Release 0.1 wrote none beside the same table. A file of any other version is refused. */
const VERSION = 1

const TABLES = `
  CREATE TABLE IF NOT EXISTS hookline_dedupe (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT, -- Of a claim; NULL when the message was handled.
    until INTEGER NOT NULL, -- When the claim or the dedupe window ends, in milliseconds since the epoch.
    for_ms INTEGER NOT NULL, -- How long it lasts from its beginning.
    PRIMARY KEY (name, key)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS hookline_dedupe_until ON hookline_dedupe (until);
  CREATE TABLE hookline_dedupe_schema (version INTEGER NOT NULL) STRICT;
  INSERT INTO hookline_dedupe_schema VALUES (${VERSION})`

/**
 * Opens the file, creating it if it does not exist.
 *
 * @throws Error of SQLite, or one that says why the file cannot be used.
 */
export function openFile(path: string, timeoutMs: number): DatabaseSync {
  // Not FULL: a power cut loses the last claims and confirms, and their messages are handled again.
  const database = openSqlite(path, (opened) => {
    opened.exec('PRAGMA synchronous = NORMAL')
    inTransaction(opened, () => prepareTables(opened))
  })
  database.exec(`PRAGMA busy_timeout = ${timeoutMs}`)
  return database
}

function prepareTables(database: DatabaseSync): void {
  const table = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'hookline_dedupe_schema'").get()
  if (table === undefined) {
    database.exec(TABLES)
    return
  }
  const version = database.prepare('SELECT version FROM hookline_dedupe_schema').get()?.version ?? 'none'
  if (version === VERSION) return
  throw new UnusableFile(
    `this Hookline knows version ${VERSION} of its table. Got version ${version}. Use the Hookline that wrote it, or pass the path of a new file.`,
  )
}
