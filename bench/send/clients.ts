/** The client against Segment's: what a call costs, and what it takes until many are delivered. */

import { median, printTable, spread, verdict } from '../table.ts'
import type { Recording } from './contender.ts'
import { BATCH } from './message.ts'
import { onStage, type Worker } from './stage.ts'
import { busyOf, cpuOf, rateCells, ratiosOf, share, takeTurns } from './turns.ts'

const CALL = { atMost: 0.25, calls: 250, slicesARound: 20, warmUp: 40 }
/** A slice is no more than a client of Hookline keeps by default. */
const THROUGHPUT = { atLeast: 5, slicesARound: 2, mostCalls: 10_000 }
const CPU = { atMost: 0.3 }

/** Prints both comparisons. */
export async function compareClients(rounds: number, messages: number): Promise<void> {
  const [theirs, ours] = await onStage(async ({ start }) =>
    recordInTurns([await start('segment', 'record'), await start('client', 'record')], rounds),
  )
  console.log('## client.track(), ns a call\n')
  console.log(
    `${theirs.length} slices of ${CALL.calls} calls each, none of them sent before the slice is over; ratio: Hookline to ` +
      '@segment/analytics-node, slice by slice, median (least–greatest).\n',
  )
  printTable(
    ['', 'Segment', 'Hookline', 'ratio', 'target', ''],
    [
      nanosRow('the caller waits', theirs, ours, ({ waited }) => waited),
      nanosRow('CPU, until it could be sent', theirs, ours, ({ cpu }) => cpu),
    ],
  )

  const slice = Math.min(share(messages, 0.1), THROUGHPUT.mostCalls)
  const turns = await onStage(async ({ start }) =>
    takeTurns([await start('segment'), await start('client')], rounds * THROUGHPUT.slicesARound, slice),
  )
  console.log('## Calls until all are delivered\n')
  console.log(`Batches of ${BATCH}, ${rounds * THROUGHPUT.slicesARound} slices of ${slice} calls each and a flush.\n`)
  const [theirCpu, ourCpu] = cpuOf(turns)
  const ratios = ratiosOf(ourCpu, theirCpu)
  const reached = verdict(median(ratios) <= CPU.atMost)
  printTable(
    ['', 'Segment', 'Hookline', 'ratio', 'target', '', 'core busy'],
    [
      ['messages/s', ...rateCells(turns, THROUGHPUT.atLeast), busyOf(turns)],
      ['CPU µs a message', micros(theirCpu), micros(ourCpu), spread(ratios), `≤ ${CPU.atMost}`, reached, ''],
    ],
  )
}

async function recordInTurns(
  [them, us]: readonly [Worker, Worker],
  rounds: number,
): Promise<[Recording[], Recording[]]> {
  const recordings: [Recording[], Recording[]] = [[], []]
  for (let slice = -CALL.warmUp; slice < rounds * CALL.slicesARound; slice++) {
    const [one, other] = [await them.record(CALL.calls), await us.record(CALL.calls)]
    if (slice < 0) continue
    recordings[0].push(one)
    recordings[1].push(other)
  }
  return recordings
}

function nanosRow(
  title: string,
  theirs: readonly Recording[],
  ours: readonly Recording[],
  pick: (recording: Recording) => number,
): string[] {
  const [theirNanos, ourNanos] = [theirs.map(pick), ours.map(pick)]
  const ratios = ratiosOf(ourNanos, theirNanos)
  const reached = verdict(median(ratios) <= CALL.atMost)
  return [
    title,
    median(theirNanos).toFixed(0),
    median(ourNanos).toFixed(0),
    spread(ratios),
    `≤ ${CALL.atMost}`,
    reached,
  ]
}

function micros(values: readonly number[]): string {
  return median(values).toFixed(1)
}
