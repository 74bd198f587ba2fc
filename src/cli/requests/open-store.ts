/** Opens the file in which `hookline listen` keeps requests. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { cannotUse } from '../../sqlite/advice.ts'
import { UnusableFile } from '../../sqlite/file.ts'
import { connectToOwn, isOwn, type OwnFile, openOwn } from '../../sqlite/own-file.ts'
import { UsageError } from '../terminal.ts'
import { type Store, useStore } from './store.ts'

/** In the working directory, so that each project has its own. */
const DEFAULT_STORE: string = join('.hookline', 'listen.sqlite')

const FILE: OwnFile = {
  application: 0x686b_6c6e, // "hkln"
  version: 1,
  tables: `
  CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT,
    bytes INTEGER NOT NULL, -- Of the summary and both bodies.
    summary TEXT NOT NULL, -- A KeptSummary as JSON.
    body BLOB NOT NULL,
    answer_body BLOB NOT NULL
  ) STRICT;
  CREATE INDEX requests_bytes ON requests (seq, bytes)`,
  writer: '`hookline listen`',
  pragmas: 'PRAGMA synchronous = NORMAL',
}

/**
 * Opens the store for `listen`, creating it if it does not exist: for this user alone.
 *
 * @throws UsageError for a file that cannot be used.
 */
export function createStore(path: string): Store {
  return attempt(path, () => {
    if (path === DEFAULT_STORE) createFolder(dirname(path))
    return useStore(openOwn(path, FILE))
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
    const database = connectToOwn(path, FILE)
    if (isOwn(database, FILE)) return namedIn(path, useStore(database))
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
