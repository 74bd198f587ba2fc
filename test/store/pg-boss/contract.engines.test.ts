import { randomUUID } from 'node:crypto'
import { describe } from 'vitest'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import { testQueue } from '../../contracts/queue.ts'
import { needs } from '../../support/needs.ts'
import { useVirtualBoss } from './set-up.ts'

describe('pg-boss', needs('PostgreSQL'), () => {
  const server = useVirtualBoss()
  const dedupeWindowMs = 60_000

  function create() {
    const { virtual, schema } = server
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
})
