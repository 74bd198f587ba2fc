/** The thread's side: opens the queue, takes calls from a port and answers them. */

import { statSync } from 'node:fs'
import type { MessagePort } from 'node:worker_threads'
import type { Call, HostSettings, Reply } from './sqlite-calls.ts'
import { type Request, readRequest, writeResponse } from './sqlite-messages.ts'
import { failureOf, openStore, type SqliteStore } from './sqlite-store.ts'

/** Serves calls until it is told to end; what it opened is closed then. */
export function serveCalls(port: MessagePort, settings: HostSettings): void {
  let store: SqliteStore | undefined
  let file: string | undefined

  function run(calls: readonly Call[]): Reply[] {
    try {
      return open().run(calls)
    } catch (error) {
      return calls.map(() => ({ failure: failureOf(error) }))
    }
  }

  /** What is written into a file that was removed is gone with the process: that is refused, and the next call opens anew. */
  function open(): SqliteStore {
    if (store === undefined) {
      store = openStore(settings)
      file = identityOf(settings.path)
    }
    if (identityOf(settings.path) === file) return store
    store.close()
    store = undefined
    throw new Error(`${settings.path} was removed or replaced while it was in use`)
  }

  function serve(request: Request): void {
    const response = writeResponse(run(readRequest(request)))
    port.postMessage(response, [response.buffer])
    if (request.isLast) end()
  }

  function end(): void {
    store?.close()
    port.close()
  }

  port.on('message', serve)
}

/** Which file is there: undefined when none is. */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}
