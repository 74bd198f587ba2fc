/** Starts contenders in processes of their own. */

import { fileURLToPath } from 'node:url'
import { type Child, startChild } from './child.ts'
import type { ContenderName } from './contenders.ts'
import { path } from './http/host.ts'
import { signedHeaders, trackMessage } from './message.ts'
import { LOAD_CORE } from './pin.ts'
import type { Order } from './program.ts'
import type { Runner } from './rounds.ts'
import type { Turn } from './turn.ts'

interface StartOptions {
  /** Default: any. */
  readonly core?: number
  /** Whose build of the package it takes. Default: this one's. */
  readonly checkout?: string | undefined
}

const program = fileURLToPath(new URL('program.ts', import.meta.url))

function startProgram<Hello>(
  name: ContenderName,
  args: readonly unknown[],
  { core, checkout }: StartOptions = {},
): Promise<[Child, Hello]> {
  const rest = checkout === undefined ? [] : [checkout]
  return startChild<Hello>(core, ['--expose-gc', program, name, JSON.stringify(args), ...rest])
}

/** Starts a contender that runs its messages by itself. */
export async function startRunner(...of: Parameters<typeof startProgram>): Promise<Runner> {
  const [child] = await startProgram(...of)
  return { turn: (messages) => child.ask({ turn: messages } satisfies Order), stop: child.stop }
}

/** Starts a server and its load. Time and 99th percentile are the load's, the rest is the server's. */
export async function startServer(...of: Parameters<typeof startProgram>): Promise<Runner> {
  const [server, port] = await startProgram<number>(...of)
  await requireVerification(port)
  const [load] = await startProgram('load', [port], { core: LOAD_CORE })
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
