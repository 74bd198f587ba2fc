/** The command as a user has it: the `bin` of the packed tarball, as a process, in a pipe or on a pseudo-terminal. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const cache = join(root, '.cache/command')

/** How to run the command. */
export interface Running {
  readonly cwd?: string
  /** Added to an environment without HOOKLINE_* variables. */
  readonly env?: Readonly<Record<string, string>>
  /** On a pseudo-terminal: stdout and stderr are one. */
  readonly isTerminal?: boolean
}

/** What a run of the command printed, and its exit code. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Reads what `--json` printed: an object a line. */
export function jsonLines<T = unknown>(stdout: string): T[] {
  const lines = stdout.split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}

/** A run of the command that has not ended. */
export interface Started {
  readonly child: ChildProcess
  /** What it has printed so far. */
  readonly printed: { stdout: string; stderr: string }
  readonly ended: Promise<Ran>
}

/** A new folder that is removed when the test ends. */
export async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Runs the command until it ends. */
export async function hookline(
  args: readonly string[],
  { input, ...running }: Running & { readonly input?: string | Uint8Array } = {},
): Promise<Ran> {
  const { child, ended } = await start(args, running)
  child.stdin?.on('error', () => {}) // It may end before it has read everything.
  if (running.isTerminal !== true) child.stdin?.end(input ?? '')
  else if (input !== undefined) child.stdin?.write(input)
  return ended
}

/** Starts the command. It is killed when the test ends. */
export async function start(args: readonly string[], running: Running = {}): Promise<Started> {
  const { cwd, env = {}, isTerminal = false } = running
  const bin = await findBin()
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(HOOKLINE_|NO_COLOR$|FORCE_COLOR$|CI$)/.test(name),
  )
  const line = [process.execPath, bin, ...args]
  // `script` of util-linux: it gives a process a terminal.
  const [file = '', ...parameters] = isTerminal ? ['script', '-qefc', line.map(quote).join(' '), '/dev/null'] : line
  const child = spawn(file, parameters, {
    cwd: cwd ?? root,
    env: { ...Object.fromEntries(inherited), TERM: 'xterm', ...env },
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

/** The `bin` among the files of the tarball, copied once for each build. It finds its dependencies in the folders above. */
export async function findBin(): Promise<string> {
  const built = await Promise.all((await readdir(join(root, 'dist'))).map((name) => stat(join(root, 'dist', name))))
  const folder = join(cache, String(Math.max(...built.map(({ mtimeMs }) => Math.floor(mtimeMs)))))
  const bin = join(folder, 'node_modules/hookline/dist/cli.js')
  if (await stat(bin).catch(() => undefined)) return bin

  await mkdir(cache, { recursive: true })
  const fresh = await mkdtemp(join(cache, 'new-'))
  const modules = join(fresh, 'node_modules')
  const packed = promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root })
  const [{ files }] = JSON.parse((await packed).stdout) as [{ files: { path: string }[] }]
  for (const { path } of files) await cp(join(root, path), join(modules, 'hookline', path))
  // Another worker may have been faster.
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true, force: true }))
  return bin
}
