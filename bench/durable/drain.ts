/** How fast what waits is done, with handlers that do nothing: against the engine driven bare. */

import { median, printTable, spread, verdict } from '../table.ts'
import { type EngineName, titles } from './place.ts'
import { isThere, onSite } from './site.ts'
import type { ContenderName } from './worker.ts'
import { startWorker } from './worker-process.ts'

const LEAST_RATE = 0.7
/** Of the messages of the command line. */
const SHARE = 0.1
const contenders: readonly ContenderName[] = ['bare', 'queue', 'receiver']

/** Runs the comparison and prints it. */
export async function compareDrains(engines: readonly EngineName[], rounds: number, messages: number): Promise<void> {
  const count = Math.ceil(messages * SHARE)
  console.log('## Drain, messages a second\n')
  console.log(
    `${count} messages of 1024 bytes that wait, 100 at a time, handlers that do nothing, ${rounds} rounds. Ratio: to bare within a ` +
      'round, median (least–greatest).\n',
  )
  const rows: string[][] = []
  for (const engine of engines) {
    if (await isThere(engine)) rows.push(...(await compareEngine(engine, rounds, count)))
    else rows.push([titles[engine], 'left out: no server answers'])
  }
  printTable(['drain', 'bare', 'Hookline', 'ratio', 'target', ''], rows)
}

async function compareEngine(engine: EngineName, rounds: number, count: number): Promise<string[][]> {
  const rates: Record<ContenderName, number[]> = { bare: [], queue: [], receiver: [] }
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const rate = await measure(engine, contender, count)
      rates[contender].push(rate)
      console.error(`round ${round} of ${rounds}: ${engine} ${contender} ${rate.toFixed(0)}/s`)
    }
  }
  return (['queue', 'receiver'] as const).map((contender) => {
    const ratios = rates[contender].map((rate, round) => rate / (rates.bare[round] ?? Number.NaN))
    const cells = [median(rates.bare).toFixed(0), median(rates[contender]).toFixed(0), spread(ratios)]
    const reached = verdict(median(ratios) >= LEAST_RATE)
    return [`${titles[engine]}, ${contender}`, ...cells, `≥ ${LEAST_RATE}`, reached]
  })
}

function measure(engine: EngineName, contender: ContenderName, count: number): Promise<number> {
  return onSite(engine, async (place) => {
    const worker = await startWorker(contender, place)
    try {
      await worker.order({ fill: count })
      return count / (await worker.order({ drain: count }))
    } finally {
      await worker.stop()
    }
  })
}
