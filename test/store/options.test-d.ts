import { expectTypeOf, it } from 'vitest'
import type { BullmqQueueOptions } from '../../src/queues-bullmq.ts'
import type { PgBossQueueOptions } from '../../src/queues-pg-boss.ts'

it('options take the address from a variable of the environment, as it is', () => {
  expectTypeOf<{ name: string; connection: string | undefined }>().toExtend<BullmqQueueOptions>()
  expectTypeOf<{ name: string; connectionString: string | undefined }>().toExtend<PgBossQueueOptions>()
})

it('options do not let the address be forgotten', () => {
  expectTypeOf<{ name: string }>().not.toExtend<BullmqQueueOptions>()
})
