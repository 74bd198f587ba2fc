/** How soon another process learns of a job: it is pushed here, and handled in a process that has nothing else to do. */

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Contender } from '../contenders.ts'
import { startRunner } from '../start.ts'
import { printTable, quantile } from '../table.ts'
import { type EngineName, openQueue, type Place, titles } from './place.ts'
import { isThere, onSite } from './site.ts'

const PUSHES = 200
/** Between two pushes, and of it at most as much again by chance: so that none meets a poll always at the same moment. */
const PAUSE_MS = 30
const IDLE_MS = 5_000

/** The handling process. A turn of no messages is idle. */
export async function open(place: Place): Promise<Contender> {
  const queue = await openQueue(place)
  let waits: number[] = []
  let most = 0
  let over = Promise.withResolvers<void>()
  queue.work(
    async ({ body }) => {
      waits.push(Number(process.hrtime.bigint() - Buffer.from(body).readBigInt64LE()) / 1e6)
      if (waits.length === most) over.resolve()
      return { complete: true }
    },
    { concurrency: 10 },
  )
  return {
    async run(messages) {
      waits = []
      most = messages
      over = Promise.withResolvers()
      await (messages === 0 ? delay(IDLE_MS) : over.promise)
    },
    figures: () => ({ median: quantile(waits, 0.5), p99: quantile(waits, 0.99) }),
  }
}

export async function measureWakes(engines: readonly EngineName[]): Promise<void> {
  const rows: string[][] = []
  for (const engine of engines) {
    if (await isThere(engine)) rows.push([titles[engine], ...(await onSite(engine, measureWake))])
  }
  console.log('## From before a push to its handler in another process, and that process when idle\n')
  printTable(['', 'median, ms', '99th, ms', 'idle, % of a core'], rows)
}

async function measureWake(place: Place): Promise<string[]> {
  const queue = await openQueue(place)
  const runner = await startRunner('wake', [place])
  async function pushes(count: number) {
    const turn = runner.turn(count)
    for (let pushed = 0; pushed < count; pushed++) {
      await delay(PAUSE_MS * (1 + Math.random()))
      const body = Buffer.alloc(1024)
      body.writeBigInt64LE(process.hrtime.bigint())
      await queue.push([{ id: randomUUID(), body }])
    }
    return turn
  }
  await pushes(20)
  const { median = Number.NaN, p99 = Number.NaN } = await pushes(PUSHES)
  const { cpu, seconds } = await runner.turn(0)
  await runner.stop()
  await queue.close({ graceMs: 0 })
  return [median.toFixed(1), p99.toFixed(1), ((100 * cpu) / 1e6 / seconds).toFixed(2)]
}
