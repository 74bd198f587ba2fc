/** The file of handled messages: opened, with its table. */

import type { DatabaseSync } from 'node:sqlite'
import { openSqlite } from '../protocol/sqlite-file.ts'

const TABLE = `
  CREATE TABLE IF NOT EXISTS hookline_dedupe (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT, -- Whose claim it is; NULL when the message was handled.
    until INTEGER NOT NULL, -- When the claim or the memory of it ends, in milliseconds since the epoch.
    for_ms INTEGER NOT NULL, -- How long that was to be.
    PRIMARY KEY (name, key)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS hookline_dedupe_until ON hookline_dedupe (until)`

/**
 * Opens the file, which it makes when there is none.
 *
 * @throws Error of SQLite, or one that says why the file will not do.
 */
export function openFile(path: string, busyTimeoutMs: number): DatabaseSync {
  // Not FULL: a power cut takes the last claims and confirms with it, and their messages are handled again.
  return openSqlite(path, busyTimeoutMs, (database) => database.exec(`PRAGMA synchronous = NORMAL; ${TABLE}`)).database
}
