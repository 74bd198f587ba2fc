/** The thread of a queue in SQLite: waiting for the disk holds up nobody else in the process. */

import { parentPort, workerData } from 'node:worker_threads'
import type { Command } from './sqlite-commands.ts'
import { type KeeperOptions, openKeeper } from './sqlite-keeper.ts'

const port = parentPort as NonNullable<typeof parentPort>
const keeper = openKeeper(workerData as KeeperOptions)

port.on('message', (commands: readonly Command[] | 'close') => {
  if (commands === 'close') {
    keeper.close()
    port.close()
  } else {
    port.postMessage(keeper.carryOut(commands))
  }
})
