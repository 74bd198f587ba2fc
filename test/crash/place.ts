/** The place of a queue of the crash tests, as JSON for other processes, and how to open it there. */

import type { Queue } from '../../src/queues/queue.ts'

/** The engines. A queue in memory loses its jobs: it proves that these tests notice a loss. */
export type EngineName = 'memory' | 'sqlite' | 'bullmq' | 'pg-boss'

/** What a process needs to open a queue. */
export interface Place {
  readonly engine: EngineName
  /** The file, or the URL of the server. */
  readonly at: string
  /** The name of the queue, and of its schema on the server. */
  readonly name: string
  /** A short lease, for engines with leases, and short polls. Default: what the engine does by default. */
  readonly leaseMs?: number
}

const POLL_MS = 50
/** A machine under load may stop the server for seconds; a program ends when a call fails. */
const TIMEOUT_MS = 30_000

/** Loads one engine only. */
export async function openQueue({ engine, at, name, leaseMs }: Place): Promise<Queue> {
  const polls = leaseMs === undefined ? {} : { pollMs: POLL_MS }
  switch (engine) {
    case 'memory': {
      const { memoryQueue } = await import('../../src/queues/memory/index.ts')
      return memoryQueue({ name })
    }
    case 'sqlite': {
      const { sqliteQueue } = await import('../../src/queues/sqlite/index.ts')
      return sqliteQueue({ path: at, name, ...polls })
    }
    case 'bullmq': {
      const { bullmqQueue } = await import('../../src/queues/bullmq/index.ts')
      return bullmqQueue({ name, connection: at, timeoutMs: TIMEOUT_MS, ...(leaseMs !== undefined && { leaseMs }) })
    }
    case 'pg-boss': {
      const { pgBossQueue } = await import('../../src/queues/pg-boss/index.ts')
      const lease = leaseMs === undefined ? {} : { leaseMs: Math.max(leaseMs, 10_000) } // pg-boss takes no shorter one.
      return pgBossQueue({ name, connectionString: at, schema: name, timeoutMs: TIMEOUT_MS, ...lease, ...polls })
    }
  }
}
