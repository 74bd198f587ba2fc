/** A script in a process of its own: what it printed, when it printed it, how it ended. */

import { spawn } from 'node:child_process'

export interface Child {
  readonly pid: number | undefined
  readonly output: string
  readonly stdout: string
  /** Resolves to its exit code, once all output is there. */
  readonly exit: Promise<number | null>
  /** Resolves when the output matches; rejects with the output when the script ends first. */
  printed(pattern: RegExp): Promise<RegExpExecArray>
  kill(signal: NodeJS.Signals): void
}

interface ChildOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  /** Whether `kill` reaches what the program started, too, as Ctrl-C in a terminal does. Default false. */
  readonly group?: boolean
}

export function startNode(args: readonly string[], options?: ChildOptions): Child {
  return startProgram(process.execPath, args, options)
}

export function startProgram(program: string, args: readonly string[], options: ChildOptions = {}): Child {
  const { env, cwd, group = false } = options
  const child = spawn(program, args, {
    cwd,
    // The runner's own settings would follow into the child, and colours into its output.
    env: { ...process.env, NODE_OPTIONS: '', NODE_ENV: '', NO_COLOR: '1', FORCE_COLOR: undefined, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: group,
  })
  let output = ''
  let stdout = ''
  const listeners = new Set<() => void>()
  const hear = (chunk: Buffer): void => {
    output += chunk
    for (const listener of listeners) listener()
  }
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk
    hear(chunk)
  })
  child.stderr.on('data', hear)
  const exit = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })

  return {
    pid: child.pid,
    get output() {
      return output
    },
    get stdout() {
      return stdout
    },
    exit,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(output)
          if (match !== null) resolve(match)
        }
        listeners.add(look)
        look()
        exit.then((code) => reject(new Error(`Ended with ${code} before it printed ${pattern}:\n${output}`)), reject)
      }),
    kill(signal) {
      if (!group) return void child.kill(signal)
      try {
        process.kill(-(child.pid as number), signal)
      } catch {} // All of it has ended.
    },
  }
}
