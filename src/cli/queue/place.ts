/** Where queues are: opens them as observers, by the engine that the location asks for, and lists their names. */

import { existsSync } from 'node:fs'
import module from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Queue } from '../../queues/queue.ts'
import { UsageError } from '../terminal.ts'

/** What a location leaves open. */
export interface PlaceOptions {
  readonly prefix?: string
  readonly schema?: string
}

/** A file or a server. */
export interface Place {
  /** As it may be printed: without user, password and query. */
  readonly shown: string
  list(): Promise<readonly string[]>
  /** Opens a queue as an observer. */
  readonly open: (name: string) => Promise<Queue>
}

/** How long a server may take to answer, in milliseconds. pg-boss connects twice. */
const TIMEOUT_MS = 2_500
/** The engines report what goes on in the background; the command sees it in its own calls. */
const onError = (): void => {}
const SERVER = { timeoutMs: TIMEOUT_MS, onError }

/** @throws UsageError for a URL of something else. It is never quoted. */
export function createPlace(location: string, { prefix, schema }: PlaceOptions): Place {
  const [, scheme = ''] = /^([a-z][a-z\d+.-]+):/i.exec(location) ?? []
  const engine = ENGINES[scheme.toLowerCase()]
  if (engine === undefined && scheme !== '' && !existsSync(location)) {
    throw new UsageError(
      'LOCATION must be a SQLite file, redis://…, rediss://… or postgres://…. Got another kind of URL.',
    )
  }
  if (engine === undefined) return createFile(resolve(location))
  const url = URL.parse(location)
  if (url === null || !location.slice(scheme.length).startsWith('://') || url.hostname === '') {
    throw new UsageError(
      `LOCATION must be a full URL. Got one that is none. Write it as ${scheme}://user:password@host:port.`,
    )
  }
  const shown = `${url.protocol}//${url.host}`
  return engine === 'redis' ? createRedis(location, shown, prefix) : createPostgres(location, shown, schema)
}

const ENGINES: Readonly<Record<string, 'redis' | 'postgres'>> = {
  redis: 'redis',
  rediss: 'redis',
  postgres: 'postgres',
  postgresql: 'postgres',
}

function createFile(path: string): Place {
  return {
    shown: path,
    list: async () => (await import('../../queues/sqlite/store.ts')).listQueues(path, TIMEOUT_MS),
    open: async (name) =>
      (await import('../../queues/sqlite/index.ts')).sqliteQueue({ path, name, observe: true, onError }),
  }
}

function createRedis(connection: string, shown: string, prefix: string | undefined): Place {
  const options = { connection, ...SERVER, ...(prefix !== undefined && { prefix }) }
  const load = <T>(make: () => Promise<T>): Promise<T> => loadWith(['bullmq', 'ioredis'], make)
  return {
    shown,
    list: async () => (await load(() => import('../../queues/bullmq/server.ts'))).listQueues(options),
    open: async (name) =>
      (await load(() => import('../../queues/bullmq/index.ts'))).bullmqQueue({ name, ...options, observe: true }),
  }
}

function createPostgres(connectionString: string, shown: string, schema: string | undefined): Place {
  const options = { connectionString, ...SERVER, ...(schema !== undefined && { schema }) }
  const load = <T>(make: () => Promise<T>): Promise<T> => loadWith(['pg-boss'], make)
  return {
    shown,
    list: async () => (await load(() => import('../../queues/pg-boss/prepare.ts'))).listQueues(options),
    open: async (name) =>
      (await load(() => import('../../queues/pg-boss/index.ts'))).pgBossQueue({ name, ...options, observe: true }),
  }
}

/** Loads an engine whose packages are in the working directory, or else beside this package. */
async function loadWith<T>(packages: readonly string[], load: () => Promise<T>): Promise<T> {
  resolveHere(packages)
  try {
    return await load()
  } catch (error) {
    const [names, line] = [packages.join(' and '), packages.map((name) => `-p ${name}`).join(' ')]
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_MODULE_NOT_FOUND') {
      throw new UsageError(
        `This LOCATION needs ${names}, not installed here. Run npx -p hookline ${line} hookline queue …`,
      )
    }
    if (!(error instanceof SyntaxError)) throw error
    throw new UsageError(
      `This LOCATION needs a newer ${names} than what is installed here. Run npx -p hookline ${line} hookline queue …`,
    )
  }
}

/** What the packages themselves import stays theirs. */
function resolveHere(packages: readonly string[]): void {
  const parentURL = pathToFileURL(join(process.cwd(), 'package.json')).href
  const isTheirs = /\/node_modules\/(bullmq|ioredis|pg-boss)\//
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
}
