/** The rows of today are those of release 0.2, but for one of its own: processes of both may use a queue at once. */

import { afterAll, expect, inject, it } from 'vitest'
import { pgBossQueue } from '../../../src/queues/pg-boss/index.ts'
import { leaveJobs, withoutChance } from '../../support/left-jobs.ts'
import { needs } from '../../support/needs.ts'
import { createSchema } from '../../support/postgres.ts'

const databaseUrl = inject('databaseUrl')
const schema = databaseUrl === undefined ? undefined : createSchema(databaseUrl)
afterAll(() => schema?.drop())

it('a queue on PostgreSQL is what release 0.2 left after the same calls', needs('PostgreSQL'), async () => {
  const { name, run } = schema as NonNullable<typeof schema>
  const queue = pgBossQueue({
    name: 'orders',
    connectionString: databaseUrl,
    schema: name,
    pollMs: 20,
    timeoutMs: 20_000,
  })
  await leaveJobs(queue, new Date(Date.now() + 3_600_000))
  const jobs =
    await run(`SELECT name, id, data, state, priority, retry_limit, retry_count, expire_seconds, deletion_seconds,
    heartbeat_seconds, output FROM schema.job ORDER BY name, id`)
  const queues = await run(`SELECT name, policy, retry_limit, retry_delay, expire_seconds, retention_seconds,
    deletion_seconds, heartbeat_seconds FROM schema.queue ORDER BY name`)
  await queue.close({ graceMs: 0 })
  await expect(withoutChance({ queues, jobs })).toMatchFileSnapshot('release-0.2.txt')
})
