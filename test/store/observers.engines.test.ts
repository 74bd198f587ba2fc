import { describe, expect, it, onTestFinished } from 'vitest'
import { listQueues as listBullmq } from '../../src/queues-bullmq.ts'
import { listQueues as listPgBoss } from '../../src/queues-pg-boss.ts'
import { needs } from '../support/needs.ts'
import { until } from '../support/until.ts'
import { testObserver } from './observe-cases.ts'
import { useServers } from './on-servers.ts'

const { connection, prefix, redis, schema, pg, onBullmq, onPgBoss, removeFromRedis } = useServers()

describe('an observer of a queue on BullMQ', needs('Redis'), () => {
  testObserver({
    open: (name, observe) => onBullmq(name, { observe }),
    list: () => listBullmq({ connection, prefix }),
    countsRetries: false,
    settle: (name) =>
      until(async () => {
        const [id] = (await redis?.lrange(`${prefix}:${name}:active`, 0, 0)) ?? []
        return `${await redis?.hget(`${prefix}:${name}:${id}`, 'progress')}`.includes('claims')
      }),
    async read() {
      const all = (await redis?.keys(`${prefix}*`)) ?? []
      const keys = all.filter((key) => !key.endsWith(':marker'))
      // The dump of a key that expires does not contain the time that is left.
      return Promise.all(keys.sort().map(async (key) => [key, `${(await redis?.dumpBuffer(key))?.toString('hex')}`]))
    },
    remove: removeFromRedis,
  })
})

/** The statistics of pg-boss: to count refreshes them. */
const COUNTED = 'monitor_on queued_count ready_count deferred_count active_count total_count ready_history'.split(' ')
const SUPERVISED = 'maintain_on cron_on bam_on flow_on monitor_claimed_on maintain_claimed_on'.split(' ')

describe('an observer of a queue on pg-boss', needs('PostgreSQL'), () => {
  testObserver({
    open: (name, observe) => onPgBoss(name, { observe }),
    list: () => listPgBoss(pg),
    countsRetries: false,
    refresh: async () => schema?.run('UPDATE schema.queue SET monitor_on = NULL'),
    async read() {
      const left = [...COUNTED, ...SUPERVISED].map((column) => ` - '${column}'`).join('')
      const find = 'SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 ORDER BY 1'
      const tables = (await schema?.run(find, [schema.name])) ?? []
      return Promise.all(
        tables.map(async ({ name }) => [
          name,
          await schema?.run(`SELECT row_to_json(t)::jsonb${left} FROM schema.${name} AS t ORDER BY t::text`),
        ]),
      )
    },
  })

  it('is refused where another pg-boss created the schema, which stays as it is', async () => {
    const queue = onPgBoss('orders')
    await queue.counts()
    await queue.close({ graceMs: 0 })
    const [version] = (await schema?.run('SELECT version FROM schema.version')) ?? []
    await schema?.run('UPDATE schema.version SET version = version - 1')
    onTestFinished(async () => void (await schema?.run('UPDATE schema.version SET version = version + 1')))
    const observer = onPgBoss('orders', { observe: true })
    await expect(observer.counts()).rejects.toMatchObject({ code: 'queue_unavailable' })
    expect(await schema?.run('SELECT version + 1 AS version FROM schema.version')).toEqual([version])
  })
})
