/** The command: in this process, or as a user has it, the program that was built in a pipe or on a pseudo-terminal. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished, vi } from 'vitest'
import { listen } from '../../../src/testing/server.ts'
import { run } from '../src/command.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** The program, as it was built. */
export const bin: string = join(root, 'dist/cli.js')

export interface Running {
  readonly cwd?: string
  /** Added to an environment without HOOKLINE_* variables. */
  readonly env?: Readonly<Record<string, string>>
  readonly isTerminal?: boolean
}

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export function jsonLines<T = unknown>(stdout: string): T[] {
  const lines = stdout.split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}

/** A run of the command that has not ended. */
export interface Started {
  readonly child: ChildProcess
  readonly printed: { stdout: string; stderr: string }
  readonly ended: Promise<Ran>
}

/** A new folder that is removed when the test ends. */
export async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 9 }))
  return folder
}

/** Lets a server listen on a free port until the test ends. Resolves to `http://127.0.0.1:<port>`. */
export async function listenHere(server: Server): Promise<string> {
  const { origin, close } = await listen(server, 0)
  onTestFinished(close)
  return origin
}

/** Runs the command until it ends: in this process, but on a terminal or with options of Node in one of its own. */
export async function hookline(
  args: readonly string[],
  options: Running & { readonly input?: string | Uint8Array } = {},
) {
  const { isTerminal = false, env = {} } = options
  return isTerminal || 'NODE_OPTIONS' in env ? runAlone(args, options) : runHere(args, options)
}

/** Runs the command in a process of its own until it ends. */
export async function runAlone(
  args: readonly string[],
  { input, ...running }: Parameters<typeof hookline>[1] = {},
): Promise<Ran> {
  const { child, ended } = await start(args, running)
  child.stdin?.on('error', () => {}) // It may end before it has read everything.
  if (running.isTerminal !== true) child.stdin?.end(input ?? '')
  else if (input !== undefined) child.stdin?.write(input)
  return ended
}

let latest: Promise<unknown> = Promise.resolve()

/** One run after the other: each has the streams, the environment and the folder of the process to itself. */
function runHere(args: readonly string[], options: Parameters<typeof hookline>[1]): Promise<Ran> {
  const ran = latest.then(() => runNow(args, options))
  latest = ran.catch(() => {})
  return ran
}

async function runNow(
  args: readonly string[],
  { input = '', cwd = root, env = {} }: Parameters<typeof hookline>[1] = {},
): Promise<Ran> {
  const printed = { stdout: '', stderr: '' }
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      printed[name] += Buffer.from(chunk as string).toString()
      return true
    }),
  )
  const [variables, folder, stdin] = [process.env, process.cwd(), Object.getOwnPropertyDescriptor(process, 'stdin')]
  const listeners = SIGNALS.map((signal) => process.listeners(signal))
  process.env = { ...inherited(), TERM: 'xterm', ...env }
  process.chdir(cwd)
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(input)]), configurable: true })
  try {
    await run(args)
    return { code: Number(process.exitCode ?? 0), ...printed }
  } finally {
    process.exitCode = undefined
    process.env = variables
    process.chdir(folder)
    if (stdin !== undefined) Object.defineProperty(process, 'stdin', stdin)
    for (const [index, signal] of SIGNALS.entries()) {
      for (const listener of process.listeners(signal)) {
        if (!listeners[index]?.includes(listener)) process.off(signal, listener)
      }
    }
    for (const spy of spies) spy.mockRestore()
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** The environment without what changes what the command prints. */
function inherited(): NodeJS.ProcessEnv {
  const isKept = (name: string): boolean => !/^(HOOKLINE_|NO_COLOR$|FORCE_COLOR$|CI$)/.test(name)
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => isKept(name)))
}

/** Starts the command. It is killed when the test ends. */
export async function start(args: readonly string[], running: Running = {}): Promise<Started> {
  const { cwd, env = {}, isTerminal = false } = running
  const line = [process.execPath, bin, ...args]
  // `script` of util-linux: it gives a process a terminal.
  const [file = '', ...parameters] = isTerminal ? ['script', '-qefc', line.map(quote).join(' '), '/dev/null'] : line
  const child = spawn(file, parameters, {
    cwd: cwd ?? root,
    env: { ...inherited(), TERM: 'xterm', ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const printed = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk) => (printed.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk) => (printed.stderr += chunk))
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, ...printed }))
  })
  return { child, printed, ended }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
