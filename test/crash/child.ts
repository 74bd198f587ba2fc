/** A program in a process of its own, which answers questions and can be killed. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { QueueCounts } from '../../src/store/health.ts'

export interface Child {
  /** Resolves to the first message of the program, when it is ready. Rejects when it ends before. */
  readonly ready: Promise<string>
  /** Asks the program; one question at a time. Rejects when it ends before it answers. */
  ask<Answer>(question: string): Promise<Answer>
  kill(): void
  close(): Promise<number | null>
  /** Resolves when it has ended, to its exit code; null when it was killed. */
  readonly ended: Promise<number | null>
}

export function startChild(program: string, settings: object): Child {
  const path = fileURLToPath(new URL(`programs/${program}.ts`, import.meta.url))
  const child = fork(path, [JSON.stringify(settings)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
  const errors: string[] = []
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    process.stderr.write(text)
    errors.push(text)
  })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const gone = () =>
    ended.then((code) => Promise.reject(new Error(`The process has ended with ${code}. ${errors.join('')}`)))
  const receive = <Message>() => nextMessage<Message>(child, gone())
  const ready = receive<string>()
  ready.catch(() => {}) // A child that is killed early is not waited for.
  return {
    ready,
    ask(question) {
      child.send(question)
      return receive()
    },
    kill: () => void child.kill('SIGKILL'),
    close() {
      if (child.connected) child.send('close')
      return ended
    },
    ended,
  }
}

async function nextMessage<Message>(child: ChildProcess, gone: Promise<never>): Promise<Message> {
  const stop = new AbortController()
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal: stop.signal }), gone])) as [Message]
    return message
  } finally {
    stop.abort()
  }
}

/** Waits until no job waits or runs in the queue of a child, by counts from after the call. Returns the counts. */
export async function emptied(child: Child): Promise<QueueCounts> {
  const since = Date.now()
  for (;;) {
    const counts = await child.ask<QueueCounts>('counts')
    // As JSON, the time is text. The statistics of pg-boss may be seconds old.
    if (counts.waiting + counts.active === 0 && new Date(counts.asOf).getTime() >= since) return counts
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS))
  }
}

/** Not so often that the questions are the load. */
const ASK_AGAIN_MS = 50
