/** Opens the file in which `hookline listen` keeps requests. */

import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { cannotUse } from '../../sqlite/advice.ts'
import { connectTo, inTransaction, OPENING_MS, openSqlite, retryWhileBusy, UnusableFile } from '../../sqlite/file.ts'
import { UsageError } from '../terminal.ts'
import { type Store, useStore } from './store.ts'

/** In the working directory, so that each project has its own. */
const DEFAULT_STORE: string = join('.hookline', 'listen.sqlite')

/** "hkln": what tells such a file from every other database. */
const APPLICATION = 0x686b_6c6e
/** The version of the table. A file of any other version is refused. */
const VERSION = 1

const TABLE = `
  CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT,
    bytes INTEGER NOT NULL, -- Of the summary and both bodies.
    summary TEXT NOT NULL, -- A KeptSummary as JSON.
    body BLOB NOT NULL,
    answer_body BLOB NOT NULL
  ) STRICT;
  CREATE INDEX requests_bytes ON requests (seq, bytes);
  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${VERSION}`

/**
 * Opens the store for `listen`, creating it if it does not exist: for this user alone.
 *
 * @throws UsageError for a file that cannot be used.
 */
export function createStore(path: string): Store {
  return attempt(path, () => {
    if (path === DEFAULT_STORE) createFolder(dirname(path))
    if (existsSync(path)) connectToOurs(path).close()
    const database = openSqlite(path, (opened) => {
      opened.exec('PRAGMA synchronous = NORMAL')
      inTransaction(opened, () => isOurs(opened) || opened.exec(TABLE))
    })
    // Before any message is in it. SQLite gives the files beside it the mode of the file.
    for (const each of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(each)) chmodSync(each, 0o600)
    return useStore(database)
  })
}

/**
 * Opens a store that exists.
 *
 * @throws UsageError when it does not, and for a file that cannot be used.
 */
export function openStore(path: string): Store {
  if (!existsSync(path)) {
    throw new UsageError(
      `No requests are kept in ${path}: it does not exist. Run \`hookline listen\` first, or pass --store FILE.`,
    )
  }
  return attempt(path, () => {
    const database = connectToOurs(path)
    if (isOurs(database)) return namedIn(path, useStore(database))
    database.close()
    throw new UnusableFile('it is empty. Got no table. Run `hookline listen` first, or pass --store FILE.')
  })
}

/** Errors of what is read name the file. */
function namedIn(path: string, store: Store): Store {
  return {
    ...store,
    list: (most, type) => attempt(path, () => store.list(most, type)),
    find: (reference) => attempt(path, () => store.find(reference)),
  }
}

/** How a kept request is named, for the help. */
export const REFERENCE = 'an id, the beginning of one, last, or last~1 for the one before it'

/** Adds `--store`. */
export function addStoreOption(command: Command): Command {
  return command.option('--store <file>', 'where `hookline listen` keeps requests', DEFAULT_STORE)
}

function createFolder(folder: string): void {
  if (existsSync(folder)) return
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(folder, '.gitignore'), '*\n') // Messages hold personal data.
}

function connectToOurs(path: string): DatabaseSync {
  const database = connectTo(path)
  try {
    retryWhileBusy(() => isOurs(database), OPENING_MS)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Whether it has the table; false for an empty database. @throws UnusableFile for any other. */
function isOurs(database: DatabaseSync): boolean {
  const application = database.prepare('PRAGMA application_id').get()?.application_id
  const version = database.prepare('PRAGMA user_version').get()?.user_version
  const isEmpty = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined
  if (isEmpty && application === 0) return false
  if (application !== APPLICATION) {
    throw new UnusableFile(
      'it was not written by `hookline listen`. Got another database. Pass the path of a new file.',
    )
  }
  if (version === VERSION) return true
  throw new UnusableFile(
    `this Hookline knows version ${VERSION} of its table. Got version ${version}. Use the Hookline that wrote it, or pass the path of a new file.`,
  )
}

function attempt<T>(path: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const isOfFiles = typeof code === 'string' && code !== 'ERR_SQLITE_ERROR'
    throw new UsageError(isOfFiles ? `--store: ${path} cannot be used: ${message}.` : cannotUse('--store', path, error))
  }
}
