/** `hookline queue … counts`: what waits in each queue, since when, and why there are dead letters. */

import Table from 'cli-table3'
import type { Queue } from '../../queues/queue.ts'
import { escaped, print, printJson } from '../terminal.ts'
import { ageOf, groupLetters, listReasons } from './letters.ts'

/** Prints a line, or an object, for each queue. */
export async function printCounts(
  names: readonly string[],
  open: (name: string) => Promise<Queue>,
  { json = false }: { readonly json?: boolean },
): Promise<void> {
  const rows = [['QUEUE', 'WAITING', 'ACTIVE', 'OLDEST DUE', 'DEAD LETTERS']]
  for (const name of names) {
    const queue = await open(name)
    try {
      const { waiting, retrying, active, deadLetters, oldestDueAt, asOf } = await queue.counts()
      const groups = deadLetters === 0 ? [] : await groupLetters(queue, 0)
      const ageMs = oldestDueAt && Math.max(0, asOf.getTime() - oldestDueAt.getTime())
      if (json) {
        const reasons = groups.map(({ reason, count }) => ({ reason, count }))
        const oldest = { oldestDueAt: oldestDueAt ?? null, oldestDueAgeMs: ageMs ?? 0 }
        printJson({ queue: name, waiting, retrying: retrying ?? null, active, deadLetters, ...oldest, reasons, asOf })
      }
      const age = ageMs === undefined ? '-' : `${ageOf(ageMs)} ago`
      const why = deadLetters === 0 ? '0' : `${deadLetters}: ${listReasons(groups)}`
      const again = retrying ? ` (${retrying} retrying)` : ''
      rows.push([escaped(name), `${waiting}${again}`, `${active}`, age, why])
    } finally {
      await queue.close({ graceMs: 0 })
    }
  }
  if (!json) printTable(rows)
}

/** Columns without lines, two spaces apart. */
function printTable([head = [], ...rows]: readonly (readonly string[])[]): void {
  const chars = Object.fromEntries(LINES.map((line) => [line, '']))
  const style = { head: [], border: [], 'padding-left': 0, 'padding-right': 2 }
  const table = new Table({ head: [...head], chars, style })
  table.push(...rows.map((row) => [...row]))
  for (const line of table.toString().split('\n')) print(line.trimEnd())
}

const SIDES = ['top', 'bottom', 'left', 'right'] as const
const LINES = [
  ...SIDES,
  ...SIDES.map((side) => `${side}-mid`),
  'mid',
  'mid-mid',
  'middle',
  'top-left',
  'top-right',
  'bottom-left',
  'bottom-right',
]
