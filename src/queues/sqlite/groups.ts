/** Groups: of the jobs of one, the first in its line may be claimed, and the others wait behind it. */

import { digestOf } from '../groups.ts'
import { type OpenTables, PHASE } from './tables.ts'
import type { Group } from './thread-messages.ts'

export function groupOf(name: string | undefined): Group {
  return name === undefined ? null : Number.parseInt(digestOf(name), 16)
}

export function createGroups({ database }: Pick<OpenTables, 'database'>) {
  const first = database.prepare(`
    SELECT seq, phase FROM hookline_queue_jobs WHERE queue = ? AND line = ? ORDER BY place LIMIT 1`)
  const setDue = database.prepare(`UPDATE hookline_queue_jobs SET phase = ${PHASE.due} WHERE seq = ?`)

  return {
    /** The phase of a job that is due now and joins the line. */
    phaseIn: (queue: number, group: Group): number =>
      group === null || first.get(queue, group) === undefined ? PHASE.due : PHASE.behind,
    /** After the first one may have left the line. */
    advance(queue: number, group: Group): void {
      if (group === null) return
      const next = first.get(queue, group)
      if (next?.phase === PHASE.behind) setDue.run(next.seq as number)
    },
  }
}
