/** A destination on its memory queue, against the bare loop; and whether its memory stays what it is. */

import { printTable, verdict } from '../table.ts'
import { MESSAGE_SIZE } from './message.ts'
import { CONCURRENCY } from './parallel.ts'
import { onStage, type Worker } from './stage.ts'
import { busyOf, cpuOf, medianPair, rateCells, share, takeTurns } from './turns.ts'

const AT_LEAST = 0.65
const SLICES_A_ROUND = 5
/** Memory is flat when at the end it is not above this many times what it was after a fifth of the messages. */
const FLAT = 1.1
const LOOKS = [0.2, 0.6, 1]

/** Prints messages a second of both, and the bytes in use. */
export async function compareDestination(rounds: number, messages: number): Promise<void> {
  const slice = share(messages, 1 / SLICES_A_ROUND)
  const slices = rounds * SLICES_A_ROUND
  const turns = await onStage(async ({ start }) =>
    takeTurns([await start('bare'), await start('destination')], slices, slice),
  )
  const heaps = await onStage(async ({ start }) => lookAtHeap(await start('destination'), slices, slice))
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

/** In a process of its own: the bare loop's collects no garbage between its slices either. */
async function lookAtHeap(destination: Worker, slices: number, slice: number): Promise<number[]> {
  const heaps: number[] = []
  await destination.send(slice) // Warms it up.
  for (let i = 0; i < slices; i++) {
    await destination.send(slice)
    heaps.push(await destination.heap())
  }
  return heaps
}

function heapRow(title: string, heaps: readonly number[]): string[] {
  const looks = LOOKS.map((part) => heaps[Math.ceil(part * heaps.length) - 1] ?? Number.NaN)
  const growth = (looks.at(-1) as number) / (looks[0] as number)
  const cells = looks.map((bytes) => (bytes / 1e6).toFixed(1))
  return [title, ...cells, growth.toFixed(2), `≤ ${FLAT}`, verdict(growth <= FLAT)]
}
