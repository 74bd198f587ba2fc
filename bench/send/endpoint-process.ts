/** The endpoint on its core, and the contenders that send to it from the other. */

import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'
import type { ContenderName } from '../contenders.ts'
import { LOAD_CORE, SERVER_CORE } from '../pin.ts'
import type { Runner } from '../rounds.ts'
import { startRunner } from '../start.ts'
import type { CountQuestion, Counts } from './endpoint.ts'

/** An endpoint that is up. */
export interface Endpoint {
  /** Starts a contender, and shows that each of its first messages is right. Of every turn all messages must arrive. */
  start(name: ContenderName, checkout?: string, ...args: readonly unknown[]): Promise<Runner>
  stop(): Promise<void>
}

/** How many messages show that a program sends what it should. */
const TRIAL = 100

export async function startEndpoint(): Promise<Endpoint> {
  const program = fileURLToPath(new URL('endpoint.ts', import.meta.url))
  const [endpoint, port] = await startChild<number>(SERVER_CORE, [program])
  const counts = (isChecking: boolean): Promise<Counts> => endpoint.ask({ isChecking } satisfies CountQuestion)

  return {
    async start(name, checkout, ...args) {
      const { turn, stop } = await startRunner(name, [`http://127.0.0.1:${port}/messages`, ...args], {
        core: LOAD_CORE,
        checkout,
      })

      async function counted(messages: number, isTrial = false) {
        const before = await counts(isTrial)
        const answer = await turn(messages)
        const after = await counts(false)
        const requests = after.requests - before.requests
        const proven = Math.max(after.signed - before.signed, after.authorized - before.authorized)
        if (after.messages - before.messages === messages && (!isTrial || (requests > 0 && proven === requests)))
          return answer
        throw new Error(`${name} sent ${messages} messages; this is what came: ${JSON.stringify({ before, after })}`)
      }

      await counted(TRIAL, true)
      return { turn: (messages) => counted(messages), stop }
    },
    stop: endpoint.stop,
  }
}
