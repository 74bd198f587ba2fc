/** Where sending is measured: an endpoint on one core, the programs that send to it on another. */

import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../child.ts'
import { keepAwake, LOAD_CORE, SERVER_CORE } from '../http/pin.ts'
import type { ContenderName, Recording } from './contender.ts'
import type { CountQuestion, Counts } from './endpoint.ts'
import type { Effort, Order } from './worker.ts'
import { startWorker } from './worker-process.ts'

/** A program that sends. */
export interface Worker {
  /**
   * Sends so many messages.
   *
   * @throws Error when the endpoint did not get exactly as many.
   */
  send(times: number): Promise<Effort>
  /** Makes so many calls of a client, and sends them; throws as `send` does. */
  record(times: number): Promise<Recording>
  /** Bytes in use after garbage collection. */
  heap(): Promise<number>
}

/** What can be done on it. */
export interface Stage {
  /** Starts a program and shows that what it sends is right. */
  start(name: ContenderName, ...args: readonly string[]): Promise<Worker>
  /** What came to the endpoint. */
  counts(): Promise<Counts>
}

/** How many messages show that a program sends what it should. */
const TRIAL = 100

/** Sets it up, and takes it down when `play` is over. */
export async function onStage<Result>(play: (stage: Stage) => Promise<Result>): Promise<Result> {
  const program = fileURLToPath(new URL('endpoint.ts', import.meta.url))
  const [endpoint, port] = await startChild<number>(SERVER_CORE, [program])
  const letSleep = [keepAwake(SERVER_CORE), keepAwake(LOAD_CORE)]
  const started: Child[] = [endpoint]

  const counts = (isChecking = false): Promise<Counts> => endpoint.ask({ isChecking } satisfies CountQuestion)

  async function start(name: ContenderName, ...args: readonly string[]): Promise<Worker> {
    const child = await startWorker(name, `http://127.0.0.1:${port}/messages`, ...args)
    started.push(child)
    const order = <Answer>(what: Order): Promise<Answer> => child.ask(what)

    async function counted<Answer>(times: number, what: Order): Promise<Answer> {
      const before = await counts()
      const answer = await order<Answer>(what)
      const arrived = (await counts()).messages - before.messages
      if (arrived !== times) throw new Error(`${name} sent ${times} messages, and ${arrived} arrived.`)
      return answer
    }

    await validate(name, () => order({ send: TRIAL }))
    return {
      send: (times) => counted(times, { send: times }),
      record: (times) => counted(times, { record: times }),
      heap: () => order({ heap: true }),
    }
  }

  /** @throws Error when a message, its signature or its write key is wrong. */
  async function validate(name: ContenderName, send: () => Promise<unknown>): Promise<void> {
    const before = await counts(true)
    await send()
    const after = await counts()
    const requests = after.requests - before.requests
    const proven = Math.max(after.signed - before.signed, after.authorized - before.authorized)
    if (after.messages - before.messages === TRIAL && requests > 0 && proven === requests) return
    throw new Error(`${name} sent ${TRIAL} messages; this is what came: ${JSON.stringify({ before, after })}`)
  }

  try {
    return await play({ start, counts: () => counts() })
  } finally {
    for (const child of started) await child.stop()
    for (const end of letSleep) end()
  }
}
