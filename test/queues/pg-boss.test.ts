import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, inject } from 'vitest'
import { pgBossQueue } from '../../src/queues/pg-boss.ts'
import { testDurableQueue } from '../contracts/durable-queue.ts'
import { testQueue } from '../contracts/queue.ts'
import { createSchema, startVirtualBoss, type VirtualBoss } from '../support/postgres.ts'

const databaseUrl = inject('databaseUrl')

describe.skipIf(databaseUrl === undefined)('pg-boss', () => {
  const schema = createSchema(databaseUrl as string)
  let virtual: VirtualBoss

  beforeAll(async () => {
    virtual = await startVirtualBoss(databaseUrl as string, schema)
  })
  afterAll(async () => {
    await virtual.stop()
    await schema.drop()
  })

  const knownForMs = 60_000

  function create(pollMs: number) {
    const { boss, clock, now, advance } = virtual
    const name = randomUUID()
    const another = () => pgBossQueue({ name, boss, clock, schema: schema.name, knownForMs, pollMs })
    return { queue: another(), another, now, advance, outlivesProcess: true, knownForMs }
  }

  testQueue('pg-boss', () => create(60 * 60_000))
  testDurableQueue('pg-boss', () => create(20))
})
