/** The endpoint on its core, and the contenders that send to it from the other. */

import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'
import { LOAD_CORE, SERVER_CORE } from '../pin.ts'
import type { Runner } from '../rounds.ts'
import { startRunner } from '../start.ts'
import type { CountQuestion, Counts } from './endpoint.ts'

/** An endpoint that is up. */
export interface Endpoint {
  /** Starts a contender, and shows that each of its first messages is right. Of every turn all messages must arrive. */
  start(file: URL, args: readonly unknown[], checkout?: string): Promise<Runner>
}

/** How many messages show that a program sends what it should. */
const TRIAL = 100

/** Lets `use` have an endpoint, and stops it. */
export async function withEndpoint(use: (endpoint: Endpoint) => Promise<void>): Promise<void> {
  const program = fileURLToPath(new URL('endpoint.ts', import.meta.url))
  const [endpoint, port] = await startChild<number>(SERVER_CORE, [program])
  const counts = (isChecking: boolean): Promise<Counts> => endpoint.ask({ isChecking } satisfies CountQuestion)

  async function start(file: URL, args: readonly unknown[], checkout?: string): Promise<Runner> {
    const url = `http://127.0.0.1:${port}/messages`
    const { turn, stop } = await startRunner(file, [url, ...args], { core: LOAD_CORE, checkout })

    async function counted(messages: number, isTrial = false) {
      const before = await counts(isTrial)
      const answer = await turn(messages)
      const after = await counts(false)
      const [requests, proven] = [after.requests - before.requests, after.proven - before.proven]
      if (after.messages - before.messages === messages && (!isTrial || (requests > 0 && proven === requests)))
        return answer
      throw new Error(`${file} sent ${messages} messages; this is what came: ${JSON.stringify({ before, after })}`)
    }

    await counted(TRIAL, true)
    return { turn: (messages) => counted(messages), stop }
  }

  try {
    await use({ start })
  } finally {
    await endpoint.stop()
  }
}
