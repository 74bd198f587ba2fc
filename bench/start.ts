/** Starts contenders in processes of their own. */

import { fileURLToPath } from 'node:url'
import { type Child, startChild } from './child.ts'
import type { Order } from './program.ts'
import type { Runner } from './rounds.ts'

export interface StartOptions {
  /** Default: any. */
  readonly core?: number
  /** Whose build of the package it takes. Default: this one's. */
  readonly checkout?: string | undefined
}

const program = fileURLToPath(new URL('program.ts', import.meta.url))

/** Starts the contender that a file opens with these arguments, and returns the first thing that it says, too. */
export function startProgram<Hello>(
  file: URL,
  args: readonly unknown[],
  { core, checkout }: StartOptions = {},
): Promise<[Child, Hello]> {
  const rest = checkout === undefined ? [] : [checkout]
  return startChild<Hello>(core, ['--expose-gc', program, file.href, JSON.stringify(args), ...rest])
}

/** Starts a contender that runs its messages by itself. */
export async function startRunner(file: URL, args: readonly unknown[], options?: StartOptions): Promise<Runner> {
  const [child] = await startProgram(file, args, options)
  return { turn: (messages) => child.ask({ turn: messages } satisfies Order), stop: child.stop }
}
