/** How many bytes an engine holds for a queue. */

import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import pg from 'pg'
import type { Place } from '../queues/place.ts'

/** SQLite: the pages of the file that are in use. Redis: its memory for the keys of the queue. PostgreSQL: the tables of the schema and their indexes. */
export async function storedBytes({ engine, at, name }: Place): Promise<number> {
  switch (engine) {
    case 'sqlite':
      return sqliteBytes(at)
    case 'bullmq':
      return redisBytes(at, name)
    case 'pg-boss':
      return postgresBytes(at, name)
  }
}

function sqliteBytes(path: string): number {
  const file = new DatabaseSync(path, { readOnly: true })
  const read = (pragma: string): number => Number(Object.values(file.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
  const bytes = (read('page_count') - read('freelist_count')) * read('page_size')
  file.close()
  return bytes
}

async function redisBytes(url: string, name: string): Promise<number> {
  const redis = new Redis(url)
  let sum = 0
  for await (const keys of redis.scanStream({ match: `bull:${name}:*`, count: 1_000 }) as AsyncIterable<string[]>) {
    const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key)))
    for (const size of sizes) sum += size ?? 0
  }
  redis.disconnect()
  return sum
}

async function postgresBytes(url: string, schema: string): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const statement =
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 AS bytes FROM pg_class WHERE relkind = 'r' AND relnamespace = $1::regnamespace"
  const { rows } = await client.query(statement, [schema])
  await client.end()
  return Number(rows[0]?.bytes)
}
