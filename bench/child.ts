/** A program of the benchmark in a process of its own, as the one that started it sees it. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { spawnOn } from './pin.ts'

/** A program that is up. */
export interface Child {
  readonly pid: number
  /** Asks it, and waits for its answer. One question at a time. */
  ask<Answer>(question: unknown): Promise<Answer>
  stop(): Promise<void>
}

/** Starts a program of node on a core, or on any, and waits for the first thing it says. */
export async function startChild<Hello>(core: number | undefined, args: readonly string[]): Promise<[Child, Hello]> {
  const child = spawnOn(core, process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const hello = await heard<Hello>(child)
  return [
    {
      pid: child.pid ?? 0,
      ask: (question) => {
        child.send(question as object)
        return heard(child)
      },
      async stop() {
        if (!child.connected) return // It has ended by itself.
        const exited = once(child, 'exit')
        child.disconnect()
        await exited
      },
    },
    hello,
  ]
}

async function heard<Message>(child: ChildProcess): Promise<Message> {
  if (!child.connected) throw new Error(ENDED)
  const stop = new AbortController()
  const { signal } = stop
  try {
    const ended = once(child, 'exit', { signal }).then(() => Promise.reject(new Error(ENDED)))
    const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [Message]
    return message
  } finally {
    stop.abort()
  }
}

const ENDED = 'A program of the benchmark has ended.'
