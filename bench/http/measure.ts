/** Measures the CPU time that each server spends on a request, in rounds: A B C D, A B C D, … */

import { setTimeout as wait } from 'node:timers/promises'
import { signedHeaders, trackMessage } from '../message.ts'
import { quantile } from '../table.ts'
import { type ContenderName, type Framework, frameworks } from './frameworks.ts'
import { startLoad } from './load.ts'
import { startServer, validate } from './process.ts'

/** CPU time a request in microseconds, by round. */
export type Measurements = ReadonlyMap<ContenderName, readonly number[]>

export const BODY_SIZE = 1024
/** By then the compiler has done its work; until then a request costs several times as much. */
const WARM_UP_REQUESTS = 20_000
/** Short, so that a quarter of the windows sees the server undisturbed on a machine that has other things to do. */
const WINDOW_MS = 100

/** Measures every server of every framework in every round. */
export async function measureAll(rounds: number, seconds: number): Promise<ReadonlyMap<Framework, Measurements>> {
  const results = new Map<Framework, Map<ContenderName, number[]>>()
  for (let round = 1; round <= rounds; round++) {
    for (const framework of Object.keys(frameworks) as Framework[]) {
      const { contenders } = await frameworks[framework].load()
      const measured = results.get(framework) ?? new Map<ContenderName, number[]>()
      results.set(framework, measured)
      for (const contender of Object.keys(contenders) as ContenderName[]) {
        const cpu = await measure(framework, contender, seconds)
        measured.set(contender, [...(measured.get(contender) ?? []), cpu])
        console.error(`round ${round} of ${rounds}: ${framework} ${contender} ${cpu.toFixed(1)} µs`)
      }
    }
  }
  return results
}

/** Starts one server alone, warms it up, and takes its CPU time a request while the load is on. */
async function measure(framework: Framework, contender: ContenderName, seconds: number): Promise<number> {
  const body = trackMessage(BODY_SIZE)
  const headers = signedHeaders(body)
  const server = await startServer(framework, contender)
  try {
    await validate(server, contender, headers, body)
    const load = startLoad(server.url, headers, body)
    let before = await server.usage()
    while (before.requests < WARM_UP_REQUESTS) {
      await wait(200)
      before = await server.usage()
    }
    const windows: number[] = []
    for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
      await wait(WINDOW_MS)
      const after = await server.usage()
      windows.push((after.cpu - before.cpu) / (after.requests - before.requests))
      before = after
    }
    await load.stop()
    return quantile(windows, 0.25)
  } finally {
    await server.stop()
  }
}
