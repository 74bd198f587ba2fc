/** Starts the endpoints of this folder, which are not ours, and checks them. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { Result } from '../../../src/cli/cases.ts'
import { until } from '../../support/until.ts'
import { hookline } from '../command.ts'

export const SECRET = 'the secret of the test'

const folder = fileURLToPath(new URL('./', import.meta.url))

const PROGRAMS = {
  python: ['python3', 'server.py'],
  ruby: ['ruby', 'server.rb'],
  node: [process.execPath, 'server.mjs'],
} as const

/** Starts an endpoint: right, or with the one fault that is named. Its URL. */
export async function startOther(language: keyof typeof PROGRAMS | 'php', fault = ''): Promise<string> {
  const port = language === 'php' ? await startPhp(fault) : await startProgram(PROGRAMS[language], fault)
  return `http://127.0.0.1:${port}/webhooks`
}

async function startProgram([program, file]: readonly [string, string], fault: string): Promise<number> {
  const child = run(program, [file], fault)
  const [port] = await once(child.stdout, 'data')
  return Number(port)
}

/** The server of PHP cannot choose a port. */
async function startPhp(fault: string): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  run('php', ['-S', `127.0.0.1:${port}`, 'index.php'], fault)
  await until(() => answers(port))
  return port
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('close', () => socket.destroy()).end()
  })
}

function run(program: string, args: readonly string[], fault: string) {
  const env = { ...process.env, SECRET, FAULT: fault }
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Checks an endpoint with the command. */
export async function check(url: string, ...args: string[]) {
  const ran = await hookline(['check', url, '--json', ...args], { env: { HOOKLINE_SECRET: SECRET } })
  const lines = ran.stdout.split('\n').filter((line) => line !== '')
  const results = lines.map((line): Result => JSON.parse(line))
  return { ...ran, results, bad: results.filter(({ result }) => result !== 'pass') }
}
