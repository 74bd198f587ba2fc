/** Where a queue of the benchmark is, as text for other processes, and how the package opens it there. */

import type { Queue } from 'hookline/queues'

export const engineNames = ['sqlite', 'bullmq', 'pg-boss'] as const

export type EngineName = (typeof engineNames)[number]

/** What the tables call them. */
export const titles: Readonly<Record<EngineName, string>> = { sqlite: 'SQLite', bullmq: 'BullMQ', 'pg-boss': 'pg-boss' }

/**
 * Reads the name of an engine.
 *
 * @throws TypeError that names the ones there are.
 */
export function readEngine(text: string): EngineName {
  const engine = engineNames.find((name) => name === text)
  if (engine === undefined) throw new TypeError(`--engine: must be one of ${engineNames.join(', ')}.`)
  return engine
}

/** What a process needs to open a queue. */
export interface Place {
  readonly engine: EngineName
  /** The file, or the URL of the server. */
  readonly at: string
  /** Of the queue, and of what keeps it on the server. */
  readonly name: string
}

/** Loads the engine, and that one only. */
export async function openQueue({ engine, at, name }: Place): Promise<Queue> {
  switch (engine) {
    case 'sqlite': {
      const { sqliteQueue } = await import('hookline/queues/sqlite')
      return sqliteQueue({ path: at, name })
    }
    case 'bullmq': {
      const { bullmqQueue } = await import('hookline/queues/bullmq')
      return bullmqQueue({ name, connection: at })
    }
    case 'pg-boss': {
      const { pgBossQueue } = await import('hookline/queues/pg-boss')
      return pgBossQueue({ name, connectionString: at, schema: name })
    }
  }
}
