/** Opens queues in new files, each at the very moment at which other threads open it. Posts the errors. */

import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'

const { gate, threads, rounds, directory } = workerData as {
  gate: Int32Array
  threads: number
  rounds: number
  directory: string
}

const errors: string[] = []
for (let round = 1; round <= rounds; round += 1) {
  Atomics.add(gate, 0, 1)
  while (Atomics.load(gate, 0) < threads * round);
  try {
    await sqliteQueue({ path: join(directory, `${round}.db`) }).close({ graceMs: 0 })
  } catch (error) {
    errors.push(String(error))
  }
}
parentPort?.postMessage(errors)
