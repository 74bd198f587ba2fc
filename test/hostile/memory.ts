/** How much memory a process holds. Started with `--expose-gc`. */

import { setTimeout as wait } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'

const workers = new Set<Worker>()
process.on('worker', (worker) => {
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
})

/** So much less after one more collection counts as nothing. */
const SETTLED_MB = 0.1

/**
 * What nothing can free, in MB: the heap, and buffers outside of it, of this thread and of its workers. One collection is not
 * enough: buffers are freed on another thread, and handles of connections a turn later, with what they hold at the next collection.
 * What Node keeps for later use (pages of the heap, the free lists of malloc) is not counted.
 */
export async function liveMemory(): Promise<number> {
  let live = Number.POSITIVE_INFINITY
  for (;;) {
    global.gc?.()
    await wait(100)
    const { heapUsed, external } = process.memoryUsage()
    const now = (heapUsed + external) / 1e6
    if (now > live - SETTLED_MB) return now + (await ofWorkers())
    live = now
  }
}

async function ofWorkers(): Promise<number> {
  let bytes = 0
  for (const worker of workers) {
    // It collects garbage in that thread. One that is not read to its end crashes Node at the end of the process.
    for await (const _ of await worker.getHeapSnapshot());
    const { used_heap_size, external_memory } = await worker.getHeapStatistics()
    bytes += used_heap_size + external_memory
  }
  return bytes / 1e6
}
