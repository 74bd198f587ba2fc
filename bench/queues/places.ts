/** New places on each engine, and how they are removed. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { EngineName, Place } from './place.ts'

const REDIS_URL = process.env.REDIS_URL || 'redis://127.0.0.1:6379'
export const DATABASE_URL: string = process.env.DATABASE_URL || 'postgres://postgres@127.0.0.1:5432/postgres'

/** Makes a new place. `parent` is where the folder of a file is made. With rows, PostgreSQL has a schema of its name on any engine. */
export type NewPlace = (engine: EngineName, parent?: string, hasRows?: boolean) => Place

/** Lets `use` make places, and removes them. */
export async function withPlaces<Result>(use: (newPlace: NewPlace) => Promise<Result>): Promise<Result> {
  const removers: (() => Promise<void>)[] = []
  try {
    return await use((engine, parent = tmpdir(), hasRows = false) => {
      const folder = mkdtempSync(join(parent, 'hookline-bench-'))
      const name = `bench_${folder.slice(-6).toLowerCase()}`
      removers.push(async () => {
        if (engine === 'bullmq') await removeFromRedis(name)
        if (engine === 'pg-boss' || hasRows) await query(`DROP SCHEMA IF EXISTS ${pg.escapeIdentifier(name)} CASCADE`)
        rmSync(folder, { recursive: true, force: true })
      })
      const at = { sqlite: join(folder, 'queue.sqlite'), bullmq: REDIS_URL, 'pg-boss': DATABASE_URL }[engine]
      return { engine, at, name }
    })
  } finally {
    for (const remove of removers) await remove()
  }
}

/** Whether its server, where it needs one, is there. */
export async function isThere(engine: EngineName): Promise<boolean> {
  try {
    if (engine === 'bullmq') await pingRedis()
    if (engine === 'pg-boss') await query('SELECT 1')
    return true
  } catch {
    return false
  }
}

async function pingRedis(): Promise<void> {
  const redis = new Redis(REDIS_URL, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {}) // connect() says it.
  await redis.connect()
  redis.disconnect()
}

async function removeFromRedis(name: string): Promise<void> {
  const redis = new Redis(REDIS_URL)
  // BullMQ's own way leaves the ids of the dedupe window.
  for await (const keys of redis.scanStream({ match: `bull:${name}:*`, count: 10_000 })) {
    if (keys.length > 0) await redis.unlink(...keys)
  }
  redis.disconnect()
}

async function query(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: DATABASE_URL })
  await client.connect()
  await client.query(statement)
  await client.end()
}
