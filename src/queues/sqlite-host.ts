/** The thread's side: opens the queue, takes calls from a port and answers them. */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Call, HostSettings, Reply } from './sqlite-calls.ts'
import { type Request, readRequest, writeResponse } from './sqlite-messages.ts'
import { failureOf, openStore, type SqliteStore } from './sqlite-store.ts'

/** Serves calls until it is told to end; what it opened is closed then. */
export function serveCalls(port: MessagePort, settings: HostSettings): void {
  let store: SqliteStore | undefined

  function run(calls: readonly Call[]): Reply[] {
    try {
      store ??= openStore(settings)
    } catch (error) {
      return calls.map(() => ({ failure: failureOf(error) }))
    }
    return store.run(calls)
  }

  /** What has come meanwhile goes into the same commit. */
  function takeAll(first: Request): Request[] {
    const requests = [first]
    for (;;) {
      const next: { message: Request } | undefined = receiveMessageOnPort(port)
      if (next === undefined) return requests
      requests.push(next.message)
    }
  }

  function serve(first: Request): void {
    const requests = takeAll(first)
    const replies = run(requests.flatMap(readRequest))
    let offset = 0
    for (const { calls } of requests) {
      const response = writeResponse(replies.slice(offset, offset + calls.length))
      port.postMessage(response, [response.buffer])
      offset += calls.length
    }
    if (requests.some(({ isLast }) => isLast)) end()
  }

  function end(): void {
    store?.close()
    port.close()
  }

  port.on('message', serve)
}
