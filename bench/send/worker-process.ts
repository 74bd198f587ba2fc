/** Starts a program that sends, on the core of the load. */

import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../child.ts'
import { LOAD_CORE } from '../http/pin.ts'
import type { ContenderName } from './contender.ts'

/** What it takes as questions are the orders of worker.ts. */
export async function startWorker(name: ContenderName, url: string, ...args: readonly string[]): Promise<Child> {
  const program = fileURLToPath(new URL('worker.ts', import.meta.url))
  const [child] = await startChild(LOAD_CORE, ['--expose-gc', program, name, url, ...args])
  return child
}
