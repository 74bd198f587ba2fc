/** Where a queue of the crash tests is, as text for other processes, and how to open it there. */

import type { Queue } from '../../src/queues/queue.ts'

/** The engines; what is in memory is lost with its process, and shows that a loss is seen. */
export type EngineName = 'memory' | 'sqlite' | 'bullmq' | 'pg-boss'

/** What a process needs to open a queue. */
export interface Place {
  readonly engine: EngineName
  /** The file, or the URL of the server. */
  readonly at: string
  /** Of the queue, and of what keeps it on the server. */
  readonly name: string
  readonly leaseMs: number
}

/** Often, so that what another process put in is not waited for. */
const POLL_MS = 50

/** Loads the engine, and that one only. */
export async function openQueue({ engine, at, name, leaseMs }: Place): Promise<Queue> {
  switch (engine) {
    case 'memory': {
      const { memoryQueue } = await import('../../src/queues/memory.ts')
      return memoryQueue({ name })
    }
    case 'sqlite': {
      const { sqliteQueue } = await import('../../src/queues/sqlite.ts')
      return sqliteQueue({ path: at, name, leaseMs, pollMs: POLL_MS })
    }
    case 'bullmq': {
      const { bullmqQueue } = await import('../../src/queues/bullmq.ts')
      return bullmqQueue({ name, connection: at, leaseMs })
    }
    case 'pg-boss': {
      const { pgBossQueue } = await import('../../src/queues/pg-boss.ts')
      return pgBossQueue({ name, connectionString: at, schema: name, leaseMs, pollMs: POLL_MS })
    }
  }
}
