/** A program that runs beside the test, under the same Node. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

export class Program {
  printed = ''
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>

  constructor(path: string, parameters: readonly string[]) {
    this.#child = spawn(process.execPath, [path, ...parameters])
    this.#closed = once(this.#child, 'close')
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => {
        this.printed += chunk
      })
    }
  }

  /** Whether it has ended by itself, and not well. */
  get hasFailed(): boolean {
    return this.#child.exitCode !== null && this.#child.exitCode !== 0
  }

  async end(): Promise<number | null> {
    this.#child.stdin?.end()
    await this.#closed
    return this.#child.exitCode
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }
}
