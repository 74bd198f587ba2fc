import { describe } from 'vitest'
import { needs } from '../support/needs.ts'
import { testEncryption } from './encrypted-cases.ts'
import { useServers } from './on-servers.ts'

const { prefix, redis, schema, onBullmq, onPgBoss, removeFromRedis } = useServers()

/** Reads a value of any type of Redis. */
async function readKey(key: string): Promise<unknown> {
  const type = await redis?.type(key)
  if (type === 'hash') return redis?.hgetallBuffer(key)
  if (type === 'stream') return redis?.xrange(key, '-', '+')
  if (type === 'list') return redis?.lrange(key, '0', '-1')
  if (type === 'zset') return redis?.zrange(key, '0', '-1')
  return type === 'set' ? redis?.smembers(key) : redis?.get(key)
}

/** Writes Buffers as their text, wherever they are. */
function textOf(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString()
  if (typeof value !== 'object' || value === null) return `${value}`
  return Object.entries(value)
    .map(([name, each]) => `${name} ${textOf(each)}`)
    .join('\n')
}

describe('an encrypted queue on BullMQ', needs('Redis'), () => {
  testEncryption({
    open: onBullmq,
    read: async (name) => {
      const keys = ((await redis?.keys(`${prefix}*`)) ?? []).filter((key) => key.includes(name))
      return textOf(await Promise.all(keys.map(readKey)))
    },
    remove: removeFromRedis,
    rewritesLog: false,
  })
})

describe('an encrypted queue on pg-boss', needs('PostgreSQL'), () => {
  testEncryption({
    open: onPgBoss,
    async read(name) {
      const tables = ['job', 'hookline_retry', 'hookline_dead', 'hookline_log']
      const column = (table: string): string => (table === 'job' ? 'name' : 'queue')
      const rows = await Promise.all(
        tables.map((table) =>
          schema?.run(`SELECT t::text FROM schema.${table} AS t WHERE ${column(table)} LIKE $1`, [`${name}%`]),
        ),
      )
      return JSON.stringify(rows)
    },
    inbox: { transactional: true },
    rewritesLog: true,
  })
})
