/** What an operator asks: how much there is, and what is dead. */

import type { Connection } from './pg-boss-connection.ts'
import type { Settings } from './pg-boss-options.ts'
import { type Data, decode, priorityAt, RETRIED_LATER, secondsOf } from './pg-boss-row.ts'
import type { Statements } from './pg-boss-sql.ts'
import type { DeadJob, QueueCounts } from './queue.ts'

/** The answers. */
export interface Dead {
  counts(): Promise<QueueCounts>
  page(after: string | undefined, limit: number): Promise<readonly DeadJob[]>
  redrive(ids: readonly string[] | 'all'): Promise<number>
  drop(ids: readonly string[] | 'all'): Promise<number>
}

/** Makes it. */
export function createDead(connection: Connection, statements: Statements, settings: Settings): Dead {
  const { name, knownForMs, timeoutMs, clock } = settings
  const limitMs = timeoutMs * PATIENCE

  async function ask(statement: string, values: readonly unknown[]): Promise<readonly unknown[]> {
    const { rows } = await connection.call(({ db }) => db.executeSql(statement, [name, ...values]), { limitMs })
    return rows
  }

  return {
    async counts() {
      const [row] = await ask(statements.counts, [])
      const { waiting, active, dead, oldestDueAt } = row as Readonly<Record<keyof QueueCounts, unknown>>
      return {
        waiting: Number(waiting),
        active: Number(active),
        dead: Number(dead),
        oldestDueAt: oldestDueAt === null ? undefined : Math.round(Number(oldestDueAt)),
      }
    },
    async page(after, limit) {
      const rows = await ask(statements.dead, [after ?? null, limit])
      return rows.map((row) => readDead(row as DeadRow))
    },
    async redrive(ids) {
      const at = Math.floor(clock.now() * 1000) + RETRIED_LATER
      const rest = [at, priorityAt(at), secondsOf(knownForMs)]
      const rows = await ask(statements.redrive(ids === 'all'), ids === 'all' ? rest : [ids, ...rest])
      return rows.length
    },
    async drop(ids) {
      const rows = await ask(statements.drop(ids === 'all'), ids === 'all' ? [] : [ids])
      return rows.length
    },
  }
}

/** Somebody waits here who can wait, and it may be about all there is. */
const PATIENCE = 10

interface DeadRow {
  readonly id: string
  readonly data: unknown
  readonly diedAt: number
}

/** What somebody else wrote is nothing. */
function readDead({ id, data, diedAt }: DeadRow): DeadJob {
  const { body, reason, state } = (data ?? {}) as Partial<Data>
  return {
    id,
    body: decode(body) ?? NOTHING,
    reason: Buffer.from(decode(reason) ?? NOTHING).toString(),
    state: decode(state),
    diedAt: Number(diedAt),
  }
}

const NOTHING = new Uint8Array()
