/** A thread that keeps the file. */

import { Worker } from 'node:worker_threads'
import type { Answer, Command } from './sqlite-commands.ts'
import type { KeeperOptions } from './sqlite-keeper.ts'
import type { Bearer, BearerEvents } from './sqlite-line.ts'

/** Starts it. It keeps the process alive while it has something to do. */
export function startThread(file: URL, options: KeeperOptions, { answered, died }: BearerEvents): Bearer {
  const thread = new Worker(file, { workerData: options, execArgv: [] })
  let isEnding = false
  let failure: unknown

  thread.on('message', (answers: readonly Answer[]) => {
    thread.unref()
    answered(answers)
  })
  thread.on('error', (error) => {
    failure = error
  })
  const exit = new Promise<void>((resolve) => {
    thread.on('exit', (code) => {
      resolve()
      if (!isEnding) died(failure ?? new Error(`The thread of a queue ended with ${code}.`))
    })
  })

  return {
    send(commands) {
      thread.ref()
      const packed = pack(commands)
      thread.postMessage(packed.commands, [packed.bytes])
    },
    async end() {
      isEnding = true
      thread.ref()
      thread.postMessage('close')
      await exit
    },
  }
}

/**
 * All bodies in one piece of memory, which is handed over. A body is often a view of a larger piece, and would take all of it
 * along.
 */
function pack(commands: readonly Command[]): { readonly commands: readonly Command[]; readonly bytes: ArrayBuffer } {
  let size = 0
  for (const command of commands) {
    if (command.kind === 'push') for (const { body } of command.jobs) size += body.byteLength
  }
  const bytes = new ArrayBuffer(size)
  let offset = 0
  const place = (body: Uint8Array): Uint8Array => {
    const copy = new Uint8Array(bytes, offset, body.byteLength)
    copy.set(body)
    offset += body.byteLength
    return copy
  }
  const packed = commands.map((command) =>
    command.kind === 'push'
      ? { ...command, jobs: command.jobs.map((job) => ({ ...job, body: place(job.body) })) }
      : command,
  )
  return { commands: packed, bytes }
}
