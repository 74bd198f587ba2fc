/** Runs a program to its end. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export interface Ran {
  readonly stdout: string
  readonly stderr: string
}

/** @throws An error with what it wrote (as a rejection) when the program fails. */
export async function runProgram(program: string, parameters: readonly string[], directory: string): Promise<Ran> {
  const { NODE_OPTIONS: _ours, ...env } = process.env
  return await promisify(execFile)(program, parameters, { cwd: directory, env })
}
