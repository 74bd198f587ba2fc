/** `sender.send()` to one URL, against a bare loop that sends the same requests. */

import { printTable } from '../table.ts'
import { MESSAGE_SIZE } from './message.ts'
import { CONCURRENCY } from './parallel.ts'
import { onStage } from './stage.ts'
import { busyOf, cpuOf, medianPair, rateCells, share, takeTurns } from './turns.ts'

const AT_LEAST = 0.8
const SLICES_A_ROUND = 2

/** Prints messages a second of both. */
export async function compareSender(rounds: number, messages: number): Promise<void> {
  const slice = share(messages, 0.1)
  const turns = await onStage(async ({ start }) => {
    const workers = [await start('bare'), await start('sender')] as const
    return takeTurns(workers, rounds * SLICES_A_ROUND, slice)
  })
  console.log('## sender.send(), messages a second\n')
  console.log(
    `One URL, ${CONCURRENCY} at a time, signed, ${MESSAGE_SIZE} bytes, ${rounds * SLICES_A_ROUND} slices of ${slice} messages each. ` +
      'Ratio: Hookline to bare, slice by slice, median (least–greatest).\n',
  )
  printTable(
    ['', 'bare', 'Hookline', 'ratio', 'target', '', 'CPU µs a message', 'core busy'],
    [['sender', ...rateCells(turns, AT_LEAST), medianPair(cpuOf(turns)), busyOf(turns)]],
  )
}
