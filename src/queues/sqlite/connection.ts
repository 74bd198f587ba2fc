/** The connection of this process to a file: one worker thread for all its queues, started again when it ends. */

import { existsSync } from 'node:fs'
import { HooklineError } from '../../message/error.ts'
import { realPathOf, UnusableFile } from '../../sqlite/file.ts'
import { systemClock } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import { lockOwner, type OwnerLock } from './owners.ts'
import { enterFile } from './tables.ts'
import {
  type DueMessage,
  packRequests,
  type Reply,
  type ReplyMessage,
  type Request,
  unavailable,
  unpackReplies,
} from './thread-messages.ts'
import type { StartThread, Thread } from './worker-thread.ts'

export interface Connection {
  send(request: Request): Promise<unknown>
  /** Sends a request; when it fails, again with the next one. For what nothing else makes up for. Never rejects. */
  sendUntilDone(request: Request): Promise<void>
  nextClaim(): number
  /** Calls `listener` soon after another process has pushed into the queue. Returns what stops that. */
  onDue(name: string, listener: () => void): () => void
  readonly path: string
  close(): Promise<void>
}

interface Sent {
  readonly request: Request
  readonly resolve: (value: unknown) => void
  readonly reject: (error: HooklineError) => void
}

interface Running {
  readonly thread: Thread
  unanswered: readonly Sent[]
  error: unknown
}

const connections = new Map<string, ReturnType<typeof createConnection> & { queues: number }>()

export function connect(path: string, name: string, startThread: StartThread): Connection {
  if (!existsSync(path) || !connections.has(realPathOf(path))) {
    enterFile(path, { name }) // So that one that cannot be used is refused at once.
  }
  const realPath = realPathOf(path)
  const entry = connections.get(realPath) ?? { queues: 0, ...createConnection(realPath, startThread) }
  connections.set(realPath, entry)
  entry.queues += 1
  const { send, sendUntilDone, nextClaim, onDue, end } = entry
  async function close(): Promise<void> {
    entry.queues -= 1
    if (entry.queues > 0) return
    connections.delete(realPath)
    await end()
  }
  return { send, sendUntilDone, nextClaim, onDue, path: realPath, close }
}

function createConnection(path: string, startThread: StartThread) {
  const ended = Promise.withResolvers<void>()
  let lock: OwnerLock | undefined // Of this thread, so that claims outlive a worker thread that dies.
  let running: Running | undefined
  let waiting: Sent[] = []
  const again: Request[] = [] // Failed, to be sent again.
  let isScheduled = false
  let isEnding = false
  let isLeft = false // Ending takes long.
  let claims = 0
  const listeners = new Set<{ readonly name: string; readonly listener: () => void }>()

  function start(): Running {
    if (!lock?.isHeld()) {
      lock?.release()
      lock = undefined // Also when the next one cannot be taken.
      lock = lockOwner(path)
    }
    const thread = startThread({ isHooklineThread: true, path, owner: lock.owner })
    const mine: Running = { thread, unanswered: [], error: undefined }
    thread.on('message', (message: ReplyMessage | DueMessage) => {
      if (!('due' in message)) receive(mine, message)
      else for (const { name, listener } of listeners) if (message.due.includes(name)) listener()
    })
    thread.on('error', (error) => {
      mine.error = error
    })
    thread.on('exit', () => forget(mine))
    thread.unref()
    return mine
  }

  function receive(mine: Running, message: ReplyMessage): void {
    const answered = mine.unanswered
    mine.unanswered = []
    if (message.isLast) {
      running = undefined
      undoClaims(answered)
    }
    for (const [index, reply] of unpackReplies(message).entries()) settle(answered[index] as Sent, reply)
    mine.thread.unref()
    schedule() // Not at once: what the answers lead to goes into the same message.
  }

  /** After the end of a thread. Whether it carried out what it did not answer is unknown. */
  function forget(mine: Running): void {
    if (running === mine) running = undefined
    const { unanswered, error: cause } = mine
    const found = cause instanceof Error ? `'${cause.message}'` : 'no error'
    const message = `its worker thread ended. Got ${found}. Call again: the next call starts another thread.`
    undoClaims(unanswered)
    for (const { request, reject } of unanswered) reject(failed(request, new UnusableFile(message, { cause })))
    flush()
  }

  /** Undoes claims that the thread may have made without an answer that says so. */
  function undoClaims(sent: readonly Sent[]): void {
    for (const { request } of sent) {
      if (request.kind === 'claim') again.push({ kind: 'undoClaim', queue: request.queue, claim: request.claim })
    }
  }

  /** Sends all that waits. One message at a time: what comes while the thread is busy goes into the next. */
  function flush(): void {
    isScheduled = false
    if (running !== undefined && running.unanswered.length > 0) return
    if (waiting.length === 0) {
      if (isEnding) endThread()
      return
    }
    for (const request of again.splice(0)) void sendUntilDone(request)
    const sent = [...waiting.filter((each) => !isClaim(each)), ...waiting.filter(isClaim)] // They find what the others store.
    waiting = []
    try {
      running ??= start()
    } catch (error) {
      for (const { request, reject } of sent) reject(failed(request, error))
      flush()
      return
    }
    running.unanswered = sent
    const message = packRequests(sent.map(({ request }) => request))
    hold(running.thread)
    running.thread.postMessage(message, [message.buffer])
  }

  function hold(thread: Thread): void {
    if (!isLeft) thread.ref()
  }

  function endThread(): void {
    if (running !== undefined) {
      hold(running.thread)
      running.thread.postMessage('end')
      return
    }
    lock?.release()
    lock = undefined // A thread that failed ends later.
    ended.resolve()
  }

  function failed({ queue }: Request, cause: unknown): HooklineError {
    return unavailable(`Queue ${queue.name}`, path, cause)
  }

  function send(request: Request): Promise<unknown> {
    return new Promise((resolve, reject) => {
      waiting.push({ request, resolve, reject })
      schedule()
    })
  }

  function schedule(): void {
    if (!isScheduled) setImmediate(flush)
    isScheduled = true
  }

  async function sendUntilDone(request: Request): Promise<void> {
    await send(request).catch(() => again.push(request))
  }

  /** What takes long goes on, and does not keep the process alive. */
  async function end(): Promise<void> {
    isEnding = true
    if (!isScheduled) flush()
    if ((await within(ended.promise, END_MS, systemClock)) !== TIMED_OUT) return
    isLeft = true
    running?.thread.unref()
  }

  function onDue(name: string, listener: () => void): () => void {
    const added = { name, listener }
    listeners.add(added)
    return () => void listeners.delete(added)
  }

  return { send, sendUntilDone, nextClaim: () => ++claims, onDue, end }
}

const END_MS = 200

const isClaim = ({ request }: Sent): boolean => request.kind === 'claim'

function settle({ resolve, reject }: Sent, reply: Reply): void {
  if ('value' in reply) resolve(reply.value)
  else reject(new HooklineError(reply.failure.code, reply.failure.message))
}
