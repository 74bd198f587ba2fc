import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, inject } from 'vitest'
import { pgBossQueue } from '../../../src/queues/pg-boss/index.ts'
import { testDurableQueue, testQueue } from '../../contracts/queue.ts'
import { needs } from '../../support/needs.ts'
import { createSchema, type Schema, startVirtualBoss, type VirtualBoss } from '../../support/postgres.ts'

const databaseUrl = inject('databaseUrl')

describe('pg-boss', needs('PostgreSQL'), () => {
  let schema: Schema
  let virtual: VirtualBoss

  beforeAll(async () => {
    schema = createSchema(databaseUrl as string)
    virtual = await startVirtualBoss(databaseUrl as string, schema)
  })
  afterAll(async () => {
    await virtual.stop()
    await schema.drop()
  })

  const dedupeWindowMs = 60_000

  function create() {
    const { boss, clock, now } = virtual
    const name = randomUUID()
    const another = () => pgBossQueue({ name, boss, clock, schema: schema.name, dedupeWindowMs, pollMs: 20 })
    return {
      queue: another(),
      another,
      now,
      /** pg-boss deletes what is over when it supervises. */
      async advance(ms: number) {
        await virtual.advance(ms)
        if (ms >= 1000) await boss.supervise(name)
      },
      dedupeWindowMs: dedupeWindowMs + 1, // pg-boss deletes what is older, not as old.
      exactOrder: false,
      refresh: () => virtual.refresh(name),
    }
  }

  testQueue('pg-boss', create)
  testDurableQueue('pg-boss', create)
})
