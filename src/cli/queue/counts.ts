/** `hookline queue … counts`: what waits in each queue, since when, and why there are dead letters. */

import type { Queue } from '../../queues/api.ts'
import { escaped, print, printJson } from '../terminal.ts'
import { ageOf, countReasons, listReasons } from './dead-letters.ts'

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
      const groups = deadLetters === 0 ? [] : await countReasons(queue)
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

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = rows.reduce<number[]>((all, row) => row.map((cell, at) => Math.max(all[at] ?? 0, cell.length)), [])
  for (const row of rows) {
    const cells = row.map((cell, at) => cell.padEnd(widths[at] ?? 0))
    print(cells.join('  ').trimEnd())
  }
}
