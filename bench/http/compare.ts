/** The comparison with the peers, as one table. */

import { median, printTable, spread, verdict } from '../table.ts'
import { type Framework, frameworks, type Peer, type Target } from './frameworks.ts'
import { generator } from './load.ts'
import { BODY_SIZE, type Measurements, measureAll } from './measure.ts'
import { isPinned, keepAwake, LOAD_CORE } from './pin.ts'

/** Runs the comparison and prints it. */
export async function compareServers(rounds: number, seconds: number): Promise<void> {
  const letSleep = keepAwake(LOAD_CORE)
  const results = await measureAll(rounds, seconds).finally(letSleep)
  console.log('## CPU time a request\n')
  console.log(
    `A track message of ${BODY_SIZE} bytes, 50 connections, ${generator}, ${rounds} rounds of ${seconds} s; server and load ` +
      `${isPinned ? 'on a core each' : 'NOT pinned'}. µs: median. Ratio: Hookline to peer within a round, median (least–greatest).\n`,
  )
  printTable(
    ['server', 'peer', 'peer µs', 'Hookline µs', 'ratio', 'target', ''],
    [...results].flatMap(([framework, measured]) => rowsOf(framework, measured)),
  )
}

function rowsOf(framework: Framework, measured: Measurements): string[][] {
  const { title, targets } = frameworks[framework]
  const ours = measured.get('hookline') ?? []
  return (Object.entries(targets) as [Peer, Target][]).map(([peer, target]) => {
    const theirs = measured.get(peer) ?? []
    const ratios = ours.map((cpu, round) => cpu / (theirs[round] ?? Number.NaN))
    const ratio = median(ratios)
    const [aim, isReached] =
      'atMost' in target ? [`≤ ${target.atMost}`, ratio <= target.atMost] : [`< ${target.below}`, ratio < target.below]
    return [title, peer, median(theirs).toFixed(1), median(ours).toFixed(1), spread(ratios), aim, verdict(isReached)]
  })
}
