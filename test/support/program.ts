/** A program that a test starts, and kills when the test ends. */

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/**
 * Starts it with the Node of the test; what it printed so far is in the lines.
 *
 * @param under The command that runs it, with its arguments. Default: none.
 */
export function startProgram(program: URL, parameters: readonly string[], under: readonly string[] = []) {
  const [file = '', ...args] = [...under, process.execPath, fileURLToPath(program), ...parameters]
  const child: ChildProcess = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  let rest = ''
  child.stdout?.on('data', (chunk) => {
    const parts = `${rest}${chunk}`.split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
  })
  return { child, lines }
}
