/** Every example of the help, and every block of the guides and the skill that runs the command. */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { delimiter, join } from 'node:path'
import { createReceiver, sign } from 'hookline'
import { serve } from 'hookline/node'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { listen } from '../../../src/testing/server.ts'
import { extractBlocks, kindOf, programsOf } from '../../../test/docs/blocks.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { createStore } from '../src/request-store.ts'
import { bin, createFolder } from './command.ts'
import { handle } from './inbox.ts'
import { keptRequest } from './kept-request.ts'

const root = new URL('../../../', import.meta.url)

const ORDER = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const WHOLE = { type: 'object', properties: { properties: ORDER } }
const PLAN = { rules: [{ key: 'Order Completed', type: 'TRACK', version: 1, jsonSchema: WHOLE }] }

const SECRET = 'the secret of the examples'

/** A run that takes longer is killed, and has no exit code. */
const LIMIT_MS = 25_000

const LISTENS = /\bhookline (listen\b|demo\b(?!.*--once)|queue\b.*--ui\b)/

/** The files that examples name, `hookline` and `npx hookline` for the PATH, and a correct endpoint in the place of localhost:3000. */
const folder = await createFolder(afterAll)
const [template, programs] = [join(folder, 'template'), join(folder, 'bin')]
await Promise.all([mkdir(template), mkdir(programs)])
await Promise.all([writeFiles(template), writePrograms(programs)])
const methods = ['POST', 'PUT'] as const
const receiver = createReceiver({ secret: SECRET, methods, batches: true, custom: true, onError: () => {} })
const { origin, close } = await listen(createServer(serve(receiver, { path: '/webhooks' })), 0, 'localhost')
afterAll(close)
let runs = 0

const examples = findCommands([]).map((path) => ({ name: path.join(' '), examples: findExamples(path) }))
const guides = readdirSync(new URL('docs/', root), { encoding: 'utf8' }).map((name) => `docs/${name}`)
const pages = ['README.md', 'skills/hookline/SKILL.md', ...guides]
const blocks = pages
  .filter((name) => name.endsWith('.md'))
  .flatMap((name) => extractBlocks(name, readFileSync(new URL(name, root), 'utf8')))
  .filter((block) => kindOf(block) === 'command')

describe.each(examples)('hookline $name --help', ({ examples }) => {
  it('has two examples, which keep the secret out of the list of processes', () => {
    expect(examples.length).toBeGreaterThan(1)
    expect(examples.filter((line) => / --secret[ =]/.test(line))).toEqual([])
  })

  it.each(examples)('%s', needs('POSIX'), (line) => expectToRun(line))
})

describe('the guides', () => {
  for (const block of blocks) it(block.place, needs('POSIX', ...programsOf(block)), () => expectToRun(block.code))
})

it('the file that the guide of types shows is what the command writes', needs('POSIX'), async () => {
  const page = 'docs/typed-events.md'
  const guide = extractBlocks(page, readFileSync(new URL(page, root), 'utf8'))
  const { stdout } = await runLines('npx hookline types .hookline/listen.sqlite')
  expect(guide.find(({ file }) => file === 'events.ts')?.code).toBe(stdout)
})

async function expectToRun(lines: string): Promise<void> {
  const { stdout, stderr, codes } = await runLines(lines)
  // The one that sends a wrong signature ends with 1, as the text beside it says.
  const expected = [...lines.matchAll(/\bhookline .*/g)].map(([run]) =>
    run.includes('--tamper bad-signature') ? 1 : 0,
  )
  expect({ codes, stdout, stderr }).toMatchObject({ codes: expected })
  expect(stdout + stderr).not.toMatch(/^ +at .+:\d+/m)
}

function findCommands(path: readonly string[]): string[][] {
  const [, list = ''] = /^Commands:\n((?: .*\n)+)/m.exec(help(path)) ?? []
  const names = [...list.matchAll(/^ {2}([\w-]+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help')
  return names.flatMap((name) => [[...path, name], ...findCommands([...path, name])])
}

function findExamples(path: readonly string[]): string[] {
  const [, list = ''] = /^Examples:\n((?: .*\n?)+)/m.exec(help(path)) ?? []
  return [...list.matchAll(/^ {2}(\S.*)$/gm)].map(([, line = '']) => line)
}

function help(path: readonly string[]): string {
  return execFileSync(process.execPath, [bin, ...path, '--help'], { encoding: 'utf8' })
}

/** Runs lines of a shell as a user types them, in a fresh copy of the folder. What listens gets a Ctrl-C once it has printed that it does. */
async function runLines(lines: string) {
  runs += 1
  const [cwd, codes] = [join(folder, `run-${runs}`), join(folder, `codes-${runs}`)]
  await cp(template, cwd, { recursive: true })
  const env = {
    ...process.env,
    HOOKLINE_SECRET: SECRET,
    SIGNATURE: sign(await readFile(join(template, 'body.json')), SECRET),
    CODES: codes,
    PORT: '0', // That of the demo is taken.
    PATH: [programs, process.env.PATH].join(delimiter),
  }
  // The port that an example names, or the default, may be taken on the machine of the test.
  const withFreePorts = lines.replace(/(\bhookline listen)\b(?:(.*) --port[= ]\d+)?/g, '$1 --port 0$2')
  const text = `trap : INT\n${withFreePorts.replaceAll('localhost:3000', new URL(origin).host)}`
  // A process group of its own, as a terminal gives it: Ctrl-C goes to all of it.
  const child = spawn('sh', ['-c', text], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const printed = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk) => (printed.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk) => (printed.stderr += chunk))
  let isOver = false
  const closed = once(child, 'close').then(() => (isOver = true))
  const hanging = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), LIMIT_MS)
  if (LISTENS.test(lines)) {
    await until(() => isOver || /listen|Ctrl-C to stop|Ctrl.C (here )?ends/i.test(printed.stdout + printed.stderr))
    if (!isOver) process.kill(-(child.pid as number), 'SIGINT')
  }
  await closed
  clearTimeout(hanging)
  const ended = await readFile(codes, 'utf8').catch(() => '')
  return { ...printed, codes: ended.split('\n').filter(Boolean).map(Number) }
}

async function writeFiles(folder: string): Promise<void> {
  const messages = Object.values(fixtures).map((message) => `${JSON.stringify(message)}\n`)
  await writeFile(join(folder, 'body.json'), JSON.stringify(fixtures.track))
  await writeFile(join(folder, 'message.json'), JSON.stringify(fixtures.identify, null, 2))
  await writeFile(join(folder, 'messages.ndjson'), messages)
  const texts = { 'order.json': '{"order": 7}', 'secret.txt': `${SECRET}\n`, 'plan.json': JSON.stringify(PLAN) }
  for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), text)

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
  await handle(queue, [fixtures.track, { ...fixtures.track, event: 1 }])
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
