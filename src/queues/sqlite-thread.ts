/** The thread that has the file, as the queue sees it: calls go there in batches, and it is started again when it dies. */

import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Call, HostSettings, Reply } from './sqlite-calls.ts'
import { type Response, readResponse, writeRequest } from './sqlite-messages.ts'

/** What runs calls elsewhere. */
export type Host = Pick<Worker, 'on' | 'postMessage' | 'ref' | 'unref'>

/** The thread. */
export interface Thread {
  /** Rejects with the thread's end, when it dies before it has answered. */
  call(call: Call): Promise<Reply>
  /** Resolves when it has ended: after what was asked, which it still does. Calls after that start another for themselves. */
  end(): Promise<void>
}

interface Waiting {
  readonly call: Call
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: unknown) => void
}

interface Running {
  readonly host: Host
  /** Of each request that it has not answered, the calls. */
  readonly requests: Waiting[][]
  readonly ended: Promise<void>
}

/**
 * Makes it; it starts with the first call.
 *
 * @param onDeath Sees why a thread died that was not told to end.
 */
export function createThread(start: () => Host, onDeath: (error: unknown) => void): Thread {
  let running: Running | undefined
  let waiting: Waiting[] = []
  let isSending = false
  let isEnding = false

  function run(): Running {
    const host = start()
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const mine: Running = { host, requests: [], ended }
    let reason: unknown
    host.on('message', (response: Response) => settle(mine, response))
    host.on('error', (error) => {
      reason = error
    })
    host.on('exit', () => {
      if (running === mine) running = undefined
      resolve()
      const lost = mine.requests.splice(0).flat()
      if (isEnding && lost.length === 0 && reason === undefined) return
      const error = reason ?? new Error('its thread ended')
      for (const { reject } of lost) reject(error)
      onDeath(error)
    })
    host.unref()
    return mine
  }

  function settle(mine: Running, response: Response): void {
    const calls = mine.requests.shift() as Waiting[]
    readResponse(response).forEach((reply, index) => void calls[index]?.resolve(reply))
    // One that was told to end holds the process until it has: whoever waits for the end would never hear of it.
    if (mine.requests.length === 0 && running === mine) mine.host.unref()
    if (waiting.length > 0) send()
    else if (isEnding && running === mine) finish(mine)
  }

  /** One request at a time: what comes while the disk is busy with it goes into the next. */
  function send(): void {
    isSending = false
    if (waiting.length === 0 || (running !== undefined && running.requests.length > 0)) return
    running ??= run()
    post(running, false)
  }

  function post(to: Running, isLast: boolean): void {
    const calls = waiting
    waiting = []
    to.requests.push(calls)
    to.host.ref()
    const request = writeRequest(
      calls.map(({ call }) => call),
      isLast,
    )
    to.host.postMessage(request, [request.buffer])
  }

  /** It lets go of the file, and ends. */
  function finish(last: Running): void {
    running = undefined
    post(last, true)
  }

  return {
    call(call) {
      return new Promise((resolve, reject) => {
        waiting.push({ call, resolve, reject })
        if (isSending) return
        isSending = true
        setImmediate(send)
      })
    },
    async end() {
      isEnding = true
      const last = running
      if (last === undefined) return
      if (last.requests.length === 0 && !isSending) finish(last)
      await last.ended
    },
  }
}

/** Starts a thread of this process. */
export function startWorker(settings: HostSettings): Worker {
  return new Worker(PROGRAM, {
    workerData: settings,
    name: `hookline queue ${settings.name}`,
    execArgv: [],
    stdin: false,
  })
}

/** @throws Error when the program of the thread is not where this file is: somebody bundled them apart. */
export function requireProgram(): void {
  if (existsSync(PROGRAM)) return
  throw new Error(`${PROGRAM.pathname} is not there. A bundler must leave hookline out: mark it as external.`)
}

/** Beside this file, as it is: built, or from the sources. */
const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './sqlite-worker.ts' : './sqlite-worker.js', import.meta.url)
