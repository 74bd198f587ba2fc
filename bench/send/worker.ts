/** A program of its own that runs one contender, when it is told to, and says what that took. */

import { type ContenderName, contenders, type OpenContender } from './contender.ts'

/** What a worker can be told. */
export type Order =
  | { readonly send: number }
  | { readonly record: number }
  /** For the bytes in use after garbage collection: the heap, and the buffers outside it. */
  | { readonly heap: true }

/** What sending took. */
export interface Effort {
  readonly seconds: number
  /** User and system time of the process, in seconds. */
  readonly cpu: number
}

const [name, url, ...args] = process.argv.slice(2) as [ContenderName, string, ...string[]]
const { open }: { open: OpenContender } = await contenders[name]()
const contender = await open(url, ...args)

process.on('message', async (order: Order) => process.send?.(await obey(order)))
process.on('disconnect', () => process.exit())
process.send?.('ready')

async function obey(order: Order): Promise<unknown> {
  if ('send' in order) return send(order.send)
  if ('record' in order) return contender.record?.(order.record)
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function send(times: number): Promise<Effort> {
  const before = process.cpuUsage()
  const start = performance.now()
  await contender.send(times)
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(before)
  return { seconds, cpu: (user + system) / 1e6 }
}
