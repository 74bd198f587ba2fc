/** The worker thread of a file: opens the file and answers the requests of one process. */

import { statSync } from 'node:fs'
import { type MessagePort, parentPort, type Worker, workerData } from 'node:worker_threads'
import { UnusableFile } from '../../sqlite/file.ts'
import { isOwnerLost } from './owners.ts'
import { packReplies, unpackRequests } from './packing.ts'
import { failureOf, type OpenFile, openForRequests } from './requests.ts'
import type { QueueSettings, Reply, RequestMessage } from './rpc.ts'

/** What the thread gets when it starts. */
export interface ThreadSettings {
  readonly isHooklineThread: true
  readonly path: string
  /** The number of this process, see owners.ts. */
  readonly owner: number
}

/** What is used of the thread. */
export type Thread = Pick<Worker, 'on' | 'postMessage' | 'ref' | 'unref'>

/** Starts the worker thread of a file. */
export type StartThread = (settings: ThreadSettings) => Thread

/** Answers the messages of a port. Ends after `end`, and when the file must be opened anew. */
export function serve(port: MessagePort, { path, owner }: ThreadSettings): void {
  let open: { readonly file: OpenFile; readonly identity: string | undefined } | undefined

  const queues: QueueSettings[] = []

  /** What is written to a file that was removed would be lost with the process. */
  function openUnchanged(): OpenFile {
    open ??= { file: openForRequests(path, owner), identity: identityOf(path) }
    if (identityOf(path) === open.identity && !isOwnerLost(path, owner)) return open.file
    throw new UnusableFile(
      'it was removed or replaced while it was in use. Got another file, or none. Call again: the next call opens it anew.',
    )
  }

  function end(): void {
    open?.file.close()
    port.off('message', answer) // The thread ends when nothing listens. Deno's port has no `close`.
  }

  function answer(message: RequestMessage | 'end'): void {
    if (message === 'end') {
      end()
      return
    }
    const requests = unpackRequests(message, queues)
    let replies: readonly Reply[]
    let isLast = false
    try {
      replies = openUnchanged().run(requests)
    } catch (error) {
      replies = requests.map(({ queue }) => failureOf(error, queue.name, path))
      isLast = true
    }
    const reply = packReplies(replies, isLast)
    port.postMessage(reply, typeof reply === 'number' ? [] : [reply.buffer])
    if (isLast) end()
  }

  port.on('message', answer)
}

/** Which file is at a path; undefined when none is. */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

// Not in a test, which serves in its own thread.
if (workerData?.isHooklineThread === true) serve(parentPort as MessagePort, workerData)
