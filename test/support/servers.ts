/**
 * The Redis and PostgreSQL that tests run against: those of `REDIS_URL` and `DATABASE_URL`, else those on this machine's
 * default ports. A global set-up: it looks once, and provides the addresses to the tests.
 */

import { connect } from 'node:net'
import pg from 'pg'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Undefined: there is none, and what needs it is left out. */
    redisUrl: string | undefined
    databaseUrl: string | undefined
  }
}

const REDIS_URL = process.env.REDIS_URL || 'redis://127.0.0.1:6379'
const DATABASE_URL = process.env.DATABASE_URL || 'postgres://postgres@127.0.0.1:5432/postgres'
const PATIENCE_MS = 3_000

export default async function setup(project: TestProject): Promise<void> {
  const [hasRedis, hasDatabase] = await Promise.all([answersRedis(REDIS_URL), answersDatabase(DATABASE_URL)])
  project.provide('redisUrl', hasRedis ? REDIS_URL : undefined)
  project.provide('databaseUrl', hasDatabase ? withoutWaiting(DATABASE_URL) : undefined)
}

/** Commits do not wait for the disk: this server is not to lose its power. */
function withoutWaiting(url: string): string {
  const changed = new URL(url)
  const { searchParams } = changed
  searchParams.set('options', `${searchParams.get('options') ?? ''} -c synchronous_commit=off`)
  return changed.href
}

function answersRedis(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port || 6379), timeout: PATIENCE_MS })
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('connect', () => socket.write('PING\r\n'))
    socket.on('data', (data) => end(/^(\+PONG|-NOAUTH)/.test(data.toString())))
    socket.on('error', () => end(false))
    socket.on('timeout', () => end(false))
  })
}

async function answersDatabase(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: PATIENCE_MS })
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}
