/** Starts a server and its load, each in a process of its own. */

import { signedHeaders, trackMessage } from '../message.ts'
import { LOAD_CORE } from '../pin.ts'
import type { Order } from '../program.ts'
import type { Runner } from '../rounds.ts'
import { startProgram } from '../start.ts'
import type { Turn } from '../turn.ts'
import { path } from './host.ts'

/** Time and 99th percentile are the load's, the rest is the server's. */
export async function startServer(...of: Parameters<typeof startProgram>): Promise<Runner> {
  const [server, port] = await startProgram<number>(...of)
  await requireVerification(port)
  const [load] = await startProgram(new URL('load.ts', import.meta.url), [port], { core: LOAD_CORE })
  let before = Number.NaN
  return {
    async turn(messages) {
      await server.ask({ begin: messages } satisfies Order)
      const { seconds, p99 = Number.NaN } = await load.ask<Turn>({ turn: messages } satisfies Order)
      const turn = await server.ask<Turn>({ end: true } satisfies Order)
      const { handled = Number.NaN } = turn
      if (handled - before !== messages && !Number.isNaN(before))
        throw new Error(`Of ${messages} messages ${handled - before} were handled.`)
      before = handled
      return { ...turn, seconds, p99 }
    },
    async stop() {
      await load.stop()
      await server.stop()
    },
  }
}

/** @throws Error when the server takes a forgery. */
async function requireVerification(port: number): Promise<void> {
  const body = trackMessage(1024)
  const forged = new Uint8Array(Buffer.concat([body, Buffer.from(' ')]))
  const { status } = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: signedHeaders(body),
    body: forged,
  })
  if (status < 400 || status >= 500) throw new Error(`A forgery was answered ${status}.`)
}
