/** What a message costs, in and out, with many or few that wait before it. */

import { median, printTable, spread, verdict } from '../table.ts'
import { type EngineName, titles } from './place.ts'
import { createSite, isThere } from './site.ts'
import { startWorker } from './worker-process.ts'

const DEPTHS = [1_000, 100_000, 1_000_000]
const MOST_RATIO = 1.3
/** Of the messages of the command line: those of a slice. */
const SHARE = 0.02

/** Runs the comparison and prints it. */
export async function compareDepths(
  engines: readonly EngineName[],
  rounds: number,
  messages: number,
  most: number,
): Promise<void> {
  const depths = DEPTHS.filter((depth) => depth <= most)
  const count = Math.ceil(messages * SHARE)
  console.log('## What a message costs by how many wait, µs\n')
  console.log(
    `Slices of ${count} messages of 1024 bytes: each pushed alone, 50 at a time, then as many done, 100 at a time; so as many ` +
      `wait afterwards. ${rounds} slices at each depth, in turns. Ratio: to ${DEPTHS[0]} waiting, within a round, median (least–greatest).\n`,
  )
  const rows: string[][] = []
  for (const engine of engines) {
    if (await isThere(engine)) rows.push(...(await compareEngine(engine, rounds, count, depths)))
    else rows.push([titles[engine], 'left out: no server answers'])
  }
  printTable(['queue', 'waiting', 'µs a message', 'ratio', 'target', ''], rows)
}

/** All depths are there at the same time, each in a store of its own, so that they can take turns. */
async function compareEngine(
  engine: EngineName,
  rounds: number,
  count: number,
  depths: readonly number[],
): Promise<string[][]> {
  const costs = depths.map((): number[] => [])
  const sites = depths.map(() => createSite(engine))
  const workers = await Promise.all(sites.map(({ place }) => startWorker('queue', place)))
  try {
    for (const [index, depth] of depths.entries()) {
      await workers[index]?.order({ fill: depth })
      await workers[index]?.order({ pass: count }) // Warms up.
    }
    for (let round = 1; round <= rounds; round++) {
      for (const [index, depth] of depths.entries()) {
        const seconds = (await workers[index]?.order({ pass: count })) ?? Number.NaN
        costs[index]?.push((seconds * 1e6) / count)
        console.error(
          `round ${round} of ${rounds}: ${engine} ${depth} waiting ${((seconds * 1e6) / count).toFixed(0)} µs`,
        )
      }
    }
  } finally {
    for (const worker of workers) await worker.stop()
    for (const site of sites) await site.remove()
  }
  return depths.map((depth, index) => {
    const ratios = (costs[index] ?? []).map((cost, round) => cost / (costs[0]?.[round] ?? Number.NaN))
    const cells = [titles[engine], String(depth), median(costs[index] ?? []).toFixed(0)]
    if (index === 0) return [...cells, '', '–', '']
    return [...cells, spread(ratios), `≤ ${MOST_RATIO}`, verdict(median(ratios) <= MOST_RATIO)]
  })
}
