/** The place of a queue of the crash tests, as JSON for other processes, and how to open it there. */

import type { Queue } from '../../src/store/queue-types.ts'

export type EngineName = 'sqlite' | 'bullmq' | 'pg-boss'

export interface Place {
  readonly engine: EngineName
  readonly at: string
  readonly name: string
  /** A short lease, for engines with leases, and short polls. Default: what the engine does by default. */
  readonly leaseMs?: number
}

export const secret = 'a shared secret'

const POLL_MS = 50
/** A machine under load may stop the server for seconds; a program ends when a call fails. */
const TIMEOUT_MS = 30_000

/** Loads one engine only. */
export async function openQueue({ engine, at, name, leaseMs }: Place): Promise<Queue> {
  const polls = leaseMs === undefined ? {} : { pollMs: POLL_MS }
  switch (engine) {
    case 'sqlite': {
      const { sqliteQueue } = await import('../../src/queues-sqlite.ts')
      return sqliteQueue({ path: at, name, ...polls })
    }
    case 'bullmq': {
      const { bullmqQueue } = await import('../../src/queues-bullmq.ts')
      return bullmqQueue({ name, connection: at, timeoutMs: TIMEOUT_MS, ...(leaseMs !== undefined && { leaseMs }) })
    }
    case 'pg-boss': {
      const { pgBossQueue } = await import('../../src/queues-pg-boss.ts')
      const lease = leaseMs === undefined ? {} : { leaseMs: Math.max(leaseMs, 10_000) } // pg-boss takes no shorter one.
      return pgBossQueue({ name, connectionString: at, schema: name, timeoutMs: TIMEOUT_MS, ...lease, ...polls })
    }
  }
}
