/**
 * Runs lines of a shell as a user types them: in a folder with the files that examples name, with `hookline` and `npx hookline`
 * on the PATH, and a correct endpoint in the place of localhost:3000.
 */

import { spawn } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createReceiver, sign } from 'hookline'
import { serve } from 'hookline/node'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { fixtures, signedRequest } from 'hookline/testing'
import { until } from '../../../test/support/until.ts'
import { createStore } from '../src/request-store.ts'
import { bin } from './command.ts'
import { keptRequest } from './kept-request.ts'

const ORDER = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const WHOLE = { type: 'object', properties: { properties: ORDER } }
const PLAN = { rules: [{ key: 'Order Completed', type: 'TRACK', version: 1, jsonSchema: WHOLE }] }

export interface Shell {
  /** Runs lines in a fresh copy of the folder. What listens gets a Ctrl-C once it has printed that it does. */
  run(lines: string): Promise<{ readonly stdout: string; readonly stderr: string; readonly codes: readonly number[] }>
  close(): Promise<void>
}

const SECRET = 'the secret of the examples'

/** What runs longer is killed: a run that notes no exit code. */
const LIMIT_MS = 25_000

const LISTENS = /\bhookline (listen\b|demo\b(?!.*--once)|queue\b.*--ui\b)/

export async function prepareShell(): Promise<Shell> {
  const folder = await mkdtemp(join(tmpdir(), 'hookline-shell-'))
  const [template, programs] = [join(folder, 'template'), join(folder, 'bin')]
  await Promise.all([mkdir(template), mkdir(programs)])
  await Promise.all([writeFiles(template), writePrograms(programs)])
  const server = await startEndpoint()
  const { port } = server.address() as AddressInfo
  let runs = 0

  return {
    async run(lines) {
      runs += 1
      const [cwd, codes] = [join(folder, `run-${runs}`), join(folder, `codes-${runs}`)]
      await cp(template, cwd, { recursive: true })
      const env = {
        HOOKLINE_SECRET: SECRET,
        SIGNATURE: sign(await readFile(join(template, 'body.json')), SECRET),
        CODES: codes,
        PORT: '0', // That of the demo is taken.
        PATH: [programs, process.env.PATH].join(delimiter),
      }
      const text = withFreePorts(lines.replaceAll('localhost:3000', `localhost:${port}`))
      const printed = await runLines(text, cwd, env, LISTENS.test(lines))
      const ended = await readFile(codes, 'utf8').catch(() => '')
      return { ...printed, codes: ended.split('\n').filter(Boolean).map(Number) }
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await rm(folder, { recursive: true, maxRetries: 9 })
    },
  }
}

async function writeFiles(folder: string): Promise<void> {
  const messages = Object.values(fixtures).map((message) => `${JSON.stringify(message)}\n`)
  await writeFile(join(folder, 'body.json'), JSON.stringify(fixtures.track))
  await writeFile(join(folder, 'message.json'), JSON.stringify(fixtures.identify, null, 2))
  await writeFile(join(folder, 'messages.ndjson'), messages)
  await writeFile(join(folder, 'order.json'), '{"order": 7}')
  await writeFile(join(folder, 'secret.txt'), `${SECRET}\n`)
  await writeFile(join(folder, 'plan.json'), JSON.stringify(PLAN))

  // Twenty attempts of one message: of so many, types are required.
  await mkdir(join(folder, '.hookline'))
  const kept = createStore(join(folder, '.hookline/listen.sqlite'))
  const { headers, bytes: body } = signedRequest(fixtures.track, SECRET)
  const attempt = { headers: Object.entries(headers).flat(), body, message: fixtures.track }
  for (let count = 1; count <= 17; count += 1) kept.append(keptRequest(`${count}`.padStart(12, '0'), attempt))
  for (const id of ['1a2b00000001', '1a2b00000002', '3c4d00000003']) kept.append(keptRequest(id, attempt))
  kept.close()

  // One message that was handled, and one dead letter.
  const queue = sqliteQueue({ path: join(folder, 'inbox.sqlite'), name: 'inbox' })
  const inbox = { queue, history: { maxAgeMs: 24 * 60 * 60_000 } }
  const receiver = createReceiver({ secret: SECRET, inbox, onError: () => {} })
  receiver.on('track', () => {}, { name: 'crm' }).start()
  for (const message of [fixtures.track, { ...fixtures.track, event: 1 }]) {
    const { bytes, headers } = signedRequest(message as typeof fixtures.track, SECRET)
    await receiver.receive(bytes, headers)
  }
  await queue.drain()
  await receiver.close()
}

/** `hookline` notes how it ended, and leaves Ctrl-C to the command that it runs. `npx` knows nothing else. */
async function writePrograms(folder: string): Promise<void> {
  const command = `trap : INT\n"${process.execPath}" "${bin}" "$@"\ncode=$?\necho $code >>"$CODES"\nexit $code`
  const programs = {
    hookline: command,
    npx: '[ "$1" = hookline ] || { echo "npx: $1 is not the command" >&2; exit 2; }\nshift\nexec hookline "$@"',
    npm: 'case "$2" in hookline@*) ;; *) echo "Only init installs something here." >&2; exit 2 ;; esac',
  }
  for (const [name, lines] of Object.entries(programs)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${lines}\n`)
    await chmod(join(folder, name), 0o755)
  }
}

async function startEndpoint(): Promise<Server> {
  const methods = ['POST', 'PUT'] as const
  const receiver = createReceiver({ secret: SECRET, methods, batches: true, custom: true, onError: () => {} })
  const server = createServer(serve(receiver, { path: '/webhooks' }))
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  return server
}

/** The port that an example names, or the default, may be taken on the machine of the test. */
function withFreePorts(lines: string): string {
  return lines.replace(
    /(\bhookline listen)\b(.*)/g,
    (_line, command, rest) => `${command} --port 0${rest.replace(/ --port[= ]\d+/, '')}`,
  )
}

async function runLines(
  lines: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
  listens: boolean,
): Promise<{ stdout: string; stderr: string }> {
  // A process group of its own, as a terminal gives it: Ctrl-C goes to all of it.
  const child = spawn('sh', ['-c', `trap : INT\n${lines}`], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const printed = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk) => (printed.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk) => (printed.stderr += chunk))
  let isOver = false
  const closed = new Promise<void>((resolve) => child.on('close', () => resolve()))
  void closed.then(() => (isOver = true))
  const hanging = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), LIMIT_MS)
  if (listens) {
    await until(() => isOver || /listen|Ctrl-C to stop|Ctrl.C (here )?ends/i.test(printed.stdout + printed.stderr))
    if (!isOver) process.kill(-(child.pid as number), 'SIGINT')
  }
  await closed
  clearTimeout(hanging)
  return printed
}
