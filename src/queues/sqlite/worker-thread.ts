/** The worker thread of a file: opens the file and answers the requests of one process; or writes a backup. */

import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { type MessagePort, parentPort, type Worker, workerData } from 'node:worker_threads'
import { UnusableFile } from '../../sqlite/file.ts'
import { watchLocks } from '../../sqlite/watch.ts'
import { sideFileOf } from './owners.ts'
import {
  type DueMessage,
  failureOf,
  packReplies,
  type Reply,
  type Request,
  type RequestMessage,
  unavailable,
  unpackRequests,
} from './thread-messages.ts'
import { alone, type OpenFile, openForRequests } from './thread-requests.ts'

export interface ThreadSettings {
  readonly isHooklineThread: true
  readonly path: string
  readonly owner: number
}

export interface BackupSettings {
  readonly isHooklineThread: true
  readonly name: string
  readonly path: string
  readonly backupTo: string
}

export type Thread = Pick<Worker, 'on' | 'postMessage' | 'ref' | 'unref'>

export type StartThread = (settings: ThreadSettings) => Thread

/** Answers the messages of a port, and says which queues have jobs that another process pushed. Ends after `end`, and when the file must be opened anew. */
export function serve(port: MessagePort, { path, owner }: ThreadSettings): void {
  const sideFile = sideFileOf(path, owner)
  const isLockGone = watchLocks(sideFile)
  let file: OpenFile | undefined

  function run(requests: readonly Request[]): Reply[] {
    file ??= openForRequests(path, owner, (due) => port.postMessage({ due } satisfies DueMessage))
    if (existsSync(sideFile) && !isLockGone()) return file.run(requests)
    throw new UnusableFile(
      `the lock on ${basename(sideFile)}, which tells other processes that this one lives, is gone: the file was removed, or this process copied or opened it. Got no lock. Call again: the next call takes it again. Jobs that another process has taken meanwhile are handled twice.`,
    )
  }

  function close(): void {
    file?.close()
    file = undefined
  }

  function end(): void {
    close()
    port.off('message', answer) // The thread ends when nothing listens. Deno's port has no `close`.
  }

  function answer(message: RequestMessage | 'end'): void {
    if (message === 'end') {
      end()
      return
    }
    const requests = unpackRequests(message)
    let replies: readonly Reply[]
    let isLast = false
    try {
      replies = run(requests)
    } catch (error) {
      replies = requests.map(({ queue }) => failureOf(error, queue, path))
      isLast = true
      close() // Before another thread opens the file: in one process they would share the index of the log.
    }
    const reply = packReplies(replies, isLast)
    port.postMessage(reply, [reply.buffer])
    if (isLast) end()
  }

  port.on('message', answer)
}

function writeBackup(port: MessagePort, { name, path, backupTo }: BackupSettings): void {
  try {
    alone(path, (database) => database.prepare('VACUUM INTO ?').run(backupTo))
  } catch (error) {
    port.postMessage(unavailable(`Queue ${name}`, path, error).message)
  }
}

// Not in a test, which serves in its own thread.
if (workerData?.isHooklineThread === true) {
  const start = workerData.backupTo === undefined ? serve : writeBackup
  start(parentPort as MessagePort, workerData)
}
