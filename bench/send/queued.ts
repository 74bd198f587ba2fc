/** A destination on its memory queue, against the bare loop; and whether its memory stays what it is. */

import { printTable, verdict } from '../table.ts'
import { MESSAGE_SIZE } from './message.ts'
import { CONCURRENCY } from './parallel.ts'
import { onStage } from './stage.ts'
import { busyOf, cpuOf, medianPair, rateCells, share, takeTurns } from './turns.ts'

const AT_LEAST = 0.65
const SLICES_A_ROUND = 5
/** Memory is flat when at the end it is not above this many times what it was after a fifth of the messages. */
const FLAT = 1.1
const LOOKS = [0.2, 0.6, 1]

/** Prints messages a second of both, and the bytes in use. */
export async function compareDestination(rounds: number, messages: number): Promise<void> {
  const slice = share(messages, 1 / SLICES_A_ROUND)
  const heaps: number[] = []
  const turns = await onStage(async ({ start }) => {
    const [bare, destination] = [await start('bare'), await start('destination')]
    return takeTurns([bare, destination], rounds * SLICES_A_ROUND, slice, async () => {
      heaps.push(await destination.heap())
    })
  })
  console.log('## A destination on its memory queue, messages a second\n')
  console.log(
    `Through the queue to one URL, ${CONCURRENCY} at a time, signed, ${MESSAGE_SIZE} bytes, ${rounds * SLICES_A_ROUND} slices of ${slice} messages. ` +
      'Ratio: Hookline to bare, slice by slice, median (least–greatest).\n',
  )
  printTable(
    ['', 'bare', 'Hookline', 'ratio', 'target', '', 'CPU µs a message', 'core busy'],
    [['destination', ...rateCells(turns, AT_LEAST), medianPair(cpuOf(turns)), busyOf(turns)]],
  )
  console.log('Bytes in use of its process after garbage collection, MB, at a share of the messages:\n')
  printTable(
    ['of', '20 %', '60 %', '100 %', 'last to first', 'target', ''],
    [
      heapRow(`the first ${slice * SLICES_A_ROUND}`, heaps.slice(0, SLICES_A_ROUND)),
      heapRow(`all ${slice * SLICES_A_ROUND * rounds}`, heaps),
    ],
  )
}

function heapRow(title: string, heaps: readonly number[]): string[] {
  const looks = LOOKS.map((part) => heaps[Math.ceil(part * heaps.length) - 1] ?? Number.NaN)
  const growth = (looks.at(-1) as number) / (looks[0] as number)
  const cells = looks.map((bytes) => (bytes / 1e6).toFixed(1))
  return [title, ...cells, growth.toFixed(2), `≤ ${FLAT}`, verdict(growth <= FLAT)]
}
