/** Runs statements that wait for the disk, such as checkpoints and copies, on a SQLite file in a separate thread. */

import { Worker } from 'node:worker_threads'
import { connectTo, UnusableFile } from './database.ts'

export interface Aside {
  /** Runs a statement after all earlier ones. Resolves to its first row, or rejects with the error from SQLite. */
  runStatement(sql: string, ...values: readonly string[]): Promise<Readonly<Record<string, unknown>> | undefined>
  close(): Promise<unknown>
}

interface Pending {
  readonly resolve: (row: Readonly<Record<string, unknown>> | undefined) => void
  readonly reject: (error: Error) => void
}

/** The program of the thread. It is a string, because a bundler would not include a separate file. */
const PROGRAM = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { DatabaseSync } = require('node:sqlite')
  const database = new DatabaseSync(workerData, { timeout: 0 })
  database.exec('PRAGMA fullfsync = ON')
  parentPort.on('message', ([sql, values]) => {
    try {
      parentPort.postMessage({ row: database.prepare(sql).all(...values)[0] })
    } catch ({ message, errcode }) {
      parentPort.postMessage({ failure: { message, errcode } })
    }
  })`

/**
 * Starts the thread, which keeps the process alive while statements run. Warnings are turned off in the thread, because some Node.js
 * releases warn that node:sqlite is experimental. If no thread may be started, as under the Node.js permission model, statements run in the
 * thread of the caller.
 */
export function createAside(path: string): Aside {
  let worker: Worker
  try {
    worker = new Worker(PROGRAM, { eval: true, workerData: path, name: 'hookline sqlite', execArgv: ['--no-warnings'] })
  } catch {
    return runHere(path)
  }
  const pending: Pending[] = [] // The thread answers in the order of the statements, so a list is enough.
  worker.on('message', ({ row, failure }) => {
    const { resolve, reject } = pending.shift() as Pending
    if (pending.length === 0) worker.unref()
    if (failure === undefined) resolve(row)
    else reject(Object.assign(new Error(), failure))
  })
  const rejectAll = (error: Error): void => {
    for (const { reject } of pending.splice(0)) reject(error)
  }
  worker
    .on('error', rejectAll)
    .on('exit', () => rejectAll(new UnusableFile('the thread that runs its statements has ended. Create a new queue.')))
  worker.unref()
  return {
    runStatement(sql, ...values) {
      return new Promise((resolve, reject) => {
        worker.ref()
        pending.push({ resolve, reject })
        worker.postMessage([sql, values])
      })
    },
    close: () => worker.terminate(),
  }
}

function runHere(path: string): Aside {
  const database = connectTo(path)
  return {
    async runStatement(sql, ...values) {
      return database.prepare(sql).all(...values)[0]
    },
    close: async () => void (database.isOpen && database.close()),
  }
}
