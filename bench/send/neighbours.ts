/** Whether destinations go on as before while the endpoint of another one never answers. */

import { printTable } from '../table.ts'
import { onStage } from './stage.ts'
import { cpuOf, medianPair, rateCells, share, type Turns, takeTurns } from './turns.ts'

const LIVING = [1, 10, 100]
const AT_LEAST = 0.9

/** Prints the messages a second of 1, 10 and 100 destinations, without and with a dead one beside them. */
export async function compareNeighbours(rounds: number, messages: number): Promise<void> {
  const slice = share(messages, 0.2)
  const rows: string[][] = []
  for (const living of LIVING) {
    const turns = await measure(living, rounds, slice)
    rows.push([String(living), ...rateCells(turns, AT_LEAST), medianPair(cpuOf(turns))])
  }
  console.log('## Destinations beside a dead one, messages a second\n')
  console.log(
    `Of the living together, ${rounds} slices of ${slice} messages; the endpoint of the dead one takes its posts and never ` +
      'answers. Ratio: slice by slice, median (least–greatest).\n',
  )
  printTable(['living', 'alone', 'beside a dead one', 'ratio', 'target', '', 'CPU µs a message'], rows)
}

function measure(living: number, rounds: number, slice: number): Promise<Turns> {
  return onStage(async ({ start, counts }) => {
    const workers = [
      await start('destinations', String(living)),
      await start('destinations', String(living), 'dead'),
    ] as const
    const before = await counts()
    const turns = await takeTurns(workers, rounds, slice)
    const after = await counts()
    if (before.hanging === 0 || after.hanging === before.hanging) throw new Error('The dead destination did not post.')
    return turns
  })
}
