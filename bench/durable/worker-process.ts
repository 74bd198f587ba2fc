/** Starts programs that fill and empty queues. They may use all cores, as the engine itself and its thread may. */

import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'
import type { Place } from './place.ts'
import type { ContenderName, Order } from './worker.ts'

/** A program that is up. */
export interface Worker {
  /** Has an order carried out. Resolves to how long that took, in seconds. */
  order(order: Order): Promise<number>
  stop(): Promise<void>
}

/** Starts one. */
export async function startWorker(name: ContenderName, place: Place): Promise<Worker> {
  const program = fileURLToPath(new URL('worker.ts', import.meta.url))
  const [child] = await startChild(undefined, [program, name, JSON.stringify(place)])
  return { order: (order) => child.ask(order), stop: child.stop }
}
