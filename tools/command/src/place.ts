/** Opens the queues at a location, and lists their names. Loads only the engine that the location requires. */

import { existsSync } from 'node:fs'
import module from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { HooklineError } from 'hookline'
import type { Queue } from 'hookline/queues'
import { UsageError } from './terminal.ts'

export interface PlaceOptions {
  readonly prefix?: string
  readonly schema?: string
}

export interface Place {
  /** The location without user, password and query, so that it can be printed. */
  readonly shown: string
  list(): Promise<readonly string[]>
  readonly openQueue: (name: string) => Promise<Queue>
}

/** The timeout for a response from a server, in milliseconds. pg-boss connects twice, so it may take twice as long. */
const TIMEOUT_MS = 2_500
/** The options of every queue. Background errors are ignored, because the calls of the command fail with the same errors. */
const OPTIONS = { timeoutMs: TIMEOUT_MS, onError: () => {} }

/** The names of the command and its argument, for the texts of errors. */
export interface Asker {
  readonly command: string
  readonly argument: string
}

const QUEUE: Asker = { command: 'queue', argument: 'LOCATION' }

/** @throws UsageError for a URL that is incomplete, or that is not for Redis or PostgreSQL. The error never quotes the URL. */
export function createPlace(location: string, { prefix, schema }: PlaceOptions, asker: Asker = QUEUE): Place {
  const { argument } = asker
  const [, scheme = ''] = /^([a-z][a-z\d+.-]+):/i.exec(location) ?? []
  const isRedis = /^rediss?$/i.test(scheme)
  if (!isRedis && !/^postgres(ql)?$/i.test(scheme)) {
    if (scheme === '' || existsSync(location)) return createFile(resolve(location))
    throw new UsageError(
      `${argument} must be the path of a SQLite file, or a URL that begins with redis://, rediss:// or postgres://.`,
    )
  }
  const url = URL.parse(location)
  if (url === null || !location.slice(scheme.length).startsWith('://') || url.hostname === '') {
    throw new UsageError(
      `${argument} must be a full URL. Write it as ${scheme}://user:password@host:port${isRedis ? '' : '/database'}.`,
    )
  }
  const shown = `${url.protocol}//${url.host}${/^\/[\w-]+$/.test(url.pathname) ? url.pathname : ''}`
  if (isRedis) {
    const options = { connection: location, ...OPTIONS, ...(prefix !== undefined && { prefix }) }
    const load = loaderOf(asker, () => import('hookline/queues/bullmq'), 'bullmq', 'ioredis')
    return {
      shown,
      list: async () => (await load()).listQueues(options),
      openQueue: async (name) => (await load()).bullmqQueue({ name, ...options, observe: true }),
    }
  }
  const options = { connectionString: location, ...OPTIONS, ...(schema !== undefined && { schema }) }
  const load = loaderOf(asker, () => import('hookline/queues/pg-boss'), 'pg-boss')
  return {
    shown,
    list: async () => (await load()).listQueues(options),
    openQueue: async (name) => (await load()).pgBossQueue({ name, ...options, observe: true }),
  }
}

function createFile(path: string): Place {
  const { onError } = OPTIONS
  return {
    shown: path,
    list: async () => (await import('hookline/queues/sqlite')).listQueues({ path, timeoutMs: TIMEOUT_MS }),
    openQueue: async (name) =>
      (await import('hookline/queues/sqlite')).sqliteQueue({ path, name, observe: true, onError }),
  }
}

/**
 * Rewords an error from an engine for users of the command. Replaces the user name that PostgreSQL quotes, the placeholder for the name of
 * the queue, and the names of options that only the library has.
 */
export function rewordError({ message }: HooklineError, { shown }: Place, { argument } = QUEUE): UsageError {
  return new UsageError(
    message
      .replace(/\b(for user|role) "[^"]*"/, `$1 of ${argument}`)
      .replace(/^(Queue any|An observer)(?= cannot use)/, 'The command')
      .replace(/^(Queue any|An observer)\b/, shown)
      .replace('`connection`', argument)
      .replace('path of a new file.', 'file of a sqliteQueue.'),
  )
}

/** Returns a function that loads an engine. Its packages may be installed in the working directory or alongside `hookline`. */
function loaderOf<T>({ command, argument }: Asker, load: () => Promise<T>, ...packages: readonly string[]) {
  const parentURL = pathToFileURL(join(process.cwd(), 'package.json')).href
  const isTheirs = /\/node_modules\/(bullmq|ioredis|pg-boss)\// // Imports within the packages resolve as usual.
  module.registerHooks?.({
    resolve(specifier, context, next) {
      if (!packages.includes(specifier) || isTheirs.test(context.parentURL ?? '')) return next(specifier, context)
      try {
        return next(specifier, { ...context, parentURL })
      } catch {
        return next(specifier, context)
      }
    },
  })
  return async (): Promise<T> => {
    try {
      return await load()
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND'
      if (!isMissing && !(error instanceof SyntaxError)) throw error
      const names = packages.join(' and ')
      const needed = isMissing ? `${names} to be installed` : `a newer version of ${names} than is installed here`
      const line = packages.map((name) => `-p ${name}`).join(' ')
      throw new UsageError(`This ${argument} needs ${needed}. Run npx -p hookline ${line} hookline ${command} …`)
    }
  }
}
