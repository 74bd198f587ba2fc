/** Statements on a SQLite file that wait for the disk, such as checkpoints and copies: a thread of their own runs them. */

import { Worker } from 'node:worker_threads'
import { connectTo } from './database.ts'

export interface Aside {
  /** Runs one statement, and then the next. Resolves to its first row; rejects with the error of SQLite. */
  run(sql: string, ...values: readonly string[]): Promise<Readonly<Record<string, unknown>> | undefined>
  close(): Promise<unknown>
}

interface Asked {
  readonly resolve: (row: Readonly<Record<string, unknown>> | undefined) => void
  readonly reject: (error: Error) => void
}

/** A text, and no file: a bundler has nothing to find. */
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

/** Where no thread may be started, as under Node's permission model, statements run in the thread of the caller. */
export function createAside(path: string): Aside {
  let worker: Worker
  try {
    worker = new Worker(PROGRAM, { eval: true, workerData: path, name: 'hookline sqlite', execArgv: ['--no-warnings'] })
  } catch {
    return createHere(path)
  }
  const asked: Asked[] = []
  worker.on('message', ({ row, failure }) => {
    const { resolve, reject } = asked.shift() as Asked
    if (asked.length === 0) worker.unref()
    if (failure === undefined) resolve(row)
    else reject(Object.assign(new Error(), failure))
  })
  const fail = (error: Error): void => {
    for (const { reject } of asked.splice(0)) reject(error)
  }
  worker.on('error', fail).on('exit', () => fail(new Error('The thread has ended.')))
  worker.unref()
  return {
    run(sql, ...values) {
      return new Promise((resolve, reject) => {
        worker.ref()
        asked.push({ resolve, reject })
        worker.postMessage([sql, values])
      })
    },
    close: () => worker.terminate(),
  }
}

function createHere(path: string): Aside {
  const database = connectTo(path)
  return {
    async run(sql, ...values) {
      return database.prepare(sql).all(...values)[0]
    },
    close: async () => void (database.isOpen && database.close()),
  }
}
