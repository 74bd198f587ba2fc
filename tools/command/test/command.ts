/** The command: in this process with streams of its own, or the program that was built. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { listen } from '../../../src/testing/server.ts'
import { until } from '../../../test/support/until.ts'
import { runCommand } from '../src/command.ts'

export const root: string = fileURLToPath(new URL('../../..', import.meta.url))

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

export interface Started {
  readonly printed: { stdout: string; stderr: string }
  readonly ended: Promise<Ran>
  readonly stdin: Writable
  interrupt(): void
}

export function jsonLines<T = unknown>(stdout: string): T[] {
  const lines = stdout.split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}

export function like(pattern: RegExp): string {
  return expect.stringMatching(pattern)
}

/** Expects wrong usage: exit code 2, no data, and an error with these names and values, without a stack. */
export function expectUsage({ code, stdout, stderr }: Ran, ...names: readonly string[]): void {
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(/^error: .+\n/) })
  expect(stderr).not.toMatch(/^ +at /m)
  for (const name of names) expect(stderr).toContain(name)
}

/** A new folder that is removed when the test ends; given `afterAll`, when those of the file do. */
export async function createFolder(onEnd: (remove: () => Promise<void>) => void = onTestFinished): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-'))
  onEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 9 }))
  return folder
}

/** The URL that `hookline listen` takes webhooks at, once it listens. */
export async function urlOf({ printed }: Pick<Started, 'printed'>): Promise<string> {
  await until(() => printed.stderr.includes('Press Ctrl-C to stop.'))
  const [, origin = ''] = /Listening on (\S+),/.exec(printed.stderr) ?? []
  return `${origin}/webhooks`
}

/** Lets a server listen on a free port until the test ends. Resolves to `http://127.0.0.1:<port>`. */
export async function listenHere(server: Server): Promise<string> {
  const { origin, close } = await listen(server, 0)
  onTestFinished(close)
  return origin
}

/** A new folder with these files, each a text or JSON. It is removed when the test ends. */
export async function createFiles(files: Readonly<Record<string, string | object>>): Promise<string> {
  const folder = await createFolder()
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(folder, dirname(name)), { recursive: true })
    await writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return folder
}

export async function hookline(
  args: readonly string[],
  { input, ...running }: Running & { readonly input?: string | Uint8Array } = {},
): Promise<Ran> {
  const { stdin, ended } = await begin(args, running)
  if (running.isTerminal && input !== undefined) stdin.write(input)
  else stdin.end(input)
  return ended
}

/** Starts the command in this process. The next one starts when this one has ended: at the latest with the test. */
export async function start(args: readonly string[], running: Running = {}): Promise<Started> {
  const started = await begin(args, running)
  onTestFinished(async () => {
    started.interrupt()
    await started.ended.catch(() => {})
  })
  return started
}

let latest: Promise<unknown> = Promise.resolve()

/** One run after the other: each has the streams, the environment and the folder of the process to itself. */
async function begin(args: readonly string[], { cwd = root, env = {}, isTerminal = false }: Running): Promise<Started> {
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const earlier = latest
  latest = promise
  await earlier

  const printed = { stdout: '', stderr: '' }
  const stdin = Object.assign(new PassThrough(), { isTTY: isTerminal })
  const restored = [
    replace('stdin', stdin),
    replace('stdout', createOutput('stdout')),
    replace('stderr', createOutput('stderr')),
    replace('env', { ...inherited(), TERM: 'xterm', ...env }),
  ]
  const folder = process.cwd()
  process.chdir(cwd)
  const others = SIGNALS.flatMap((signal) => process.listeners(signal))
  const listeners = () => process.listeners('SIGINT').filter((listener) => !others.includes(listener))
  const ended = runCommand(args)
    .then(() => ({ code: Number(process.exitCode ?? 0), ...printed }))
    .finally(() => {
      process.exitCode = undefined
      process.chdir(folder)
      for (const restore of restored) restore()
      for (const listener of listeners()) for (const signal of SIGNALS) process.off(signal, listener)
      release()
    })
  return { printed, ended, stdin, interrupt: () => listeners().forEach((listener) => void listener('SIGINT')) }

  function createOutput(name: keyof typeof printed) {
    const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
      printed[name] += chunk
      done()
    }
    return Object.assign(new Writable({ write }), { isTTY: isTerminal, getColorDepth: () => 1 })
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

function replace(name: 'stdin' | 'stdout' | 'stderr' | 'env', value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(process, name) as PropertyDescriptor
  Object.defineProperty(process, name, { value, configurable: true, enumerable: true, writable: true })
  return () => void Object.defineProperty(process, name, before)
}

/** The environment without what changes what the command prints. */
function inherited(): NodeJS.ProcessEnv {
  const isKept = (name: string): boolean => !/^(HOOKLINE_|NO_COLOR$|FORCE_COLOR$|CI$)/.test(name)
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => isKept(name)))
}

/** Starts the program in a process of its own. It is killed when the test ends. */
export function spawnHookline(
  args: readonly string[],
  { cwd = root, env = {} }: Omit<Running, 'isTerminal'> = {},
): Started & { readonly child: ChildProcess } {
  const child = spawn(process.execPath, [bin, ...args], { cwd, env: { ...inherited(), ...env } })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdin.on('error', () => {}) // It may end before it has read everything.
  const printed = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk) => (printed.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk) => (printed.stderr += chunk))
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, ...printed }))
  })
  return { child, printed, ended, stdin: child.stdin, interrupt: () => void child.kill('SIGINT') }
}
