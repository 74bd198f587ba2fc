/** The runtimes, and how a program is run on each. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { installNode } from '../../package/node.ts'

export interface Runtime {
  readonly name: string
  command(): Promise<readonly string[]>
  readonly servers: readonly ('node' | 'fetch')[]
}

export const RUNTIMES: readonly Runtime[] = [
  ...['22', '24', '26'].map(
    (version): Runtime => ({
      name: `Node ${version}`,
      command: async () => [await installNode(version)],
      servers: ['node'],
    }),
  ),
  { name: 'Bun 1.4', command: async () => [binary('bun')], servers: ['node', 'fetch'] },
  {
    name: 'Deno 2.9',
    // The flag, like the variable below, takes nothing from a sender: it verifies all the same.
    command: async () => [binary('deno'), 'run', ...PERMISSIONS, '--unsafely-ignore-certificate-errors'],
    servers: ['node', 'fetch'],
  },
]

const PERMISSIONS = ['--allow-net', '--allow-read', '--allow-write', '--allow-env', '--allow-sys']

function binary(name: string): string {
  return fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url))
}

/** What became of a program: its outcomes, its exit code, its errors, and how long it lived after its last line. */
export interface Ended {
  readonly outcomes: Readonly<Record<string, unknown>>
  readonly code: number | null
  /** What it wrote to stderr, without the warnings that are expected. */
  readonly errors: string
  readonly lingeredMs: number
}

export function startProgram(command: readonly string[], directory: string, parameters: readonly string[]) {
  const [file = '', ...args] = [...command, ...parameters]
  const { NODE_OPTIONS: _options, ...rest } = process.env
  const env = { ...rest, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }
  const child = spawn(file, args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const killer = setTimeout(() => child.kill('SIGKILL'), MAX_MS)
  const outcomes: Record<string, unknown> = {}
  const waiting = new Set<() => void>()
  let errors = ''
  let printedAt = performance.now()
  let line = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  child.stdout.on('data', (chunk) => {
    const lines = `${line}${chunk}`.split('\n')
    line = lines.pop() ?? ''
    for (const each of lines) {
      const { step, outcome } = JSON.parse(each)
      outcomes[step] = outcome
    }
    printedAt = performance.now()
    for (const check of waiting) check()
  })
  const ended = once(child, 'close').then(([code]): Ended => {
    clearTimeout(killer)
    const lingeredMs = performance.now() - printedAt
    return { outcomes, code, lingeredMs, errors: stripVTControlCharacters(errors).replace(WARNINGS, '') }
  })
  return {
    child,
    ended,
    /** Resolves to the outcome of a step when the program has printed it; rejects when it ends before. */
    outcomeOf(step: string): Promise<unknown> {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      const check = (): void => {
        if (step in outcomes) resolve(outcomes[step])
      }
      waiting.add(check)
      check()
      ended.then(() => reject(new Error(`${parameters.join(' ')} ended before ${step}: ${errors}`)))
      return promise
    },
  }
}

const MAX_MS = 120_000

/** Certificates are not verified where Hookline does not do it; the Redis of the tests may keep no file. */
const WARNINGS =
  /^.*(TLS certificate validation is disabled|NODE_TLS_REJECT_UNAUTHORIZED|HOOKLINE_REDIS_PERSISTENCE|--trace-warnings).*\n/gm
