/** `hookline send`, as a process. */

import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createReceiver, verify } from 'hookline'
import { serve } from 'hookline/node'
import { type RecordedRequest, type Script, startEndpoint } from 'hookline/testing'
import { expect, it, onTestFinished } from 'vitest'
import { needs } from '../../../../test/support/needs.ts'
import { until } from '../../../../test/support/until.ts'
import { bin, createFolder, hookline, listenHere, start } from '../command.ts'

const env = { HOOKLINE_SECRET: 'a secret' }
const track = '{"type":"track","userId":"u1","event":"Order Completed"}'

async function listen(script?: Script) {
  const endpoint = await startEndpoint(script === undefined ? {} : { script })
  onTestFinished(() => endpoint.close())
  return endpoint
}

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(await createFolder(), name)
  await writeFile(path, content)
  return path
}

/** A correct receiver that takes each message once. */
async function receive() {
  const receiver = createReceiver({ secret: env.HOOKLINE_SECRET, onError: () => {} })
  return `${await listenHere(createServer(serve(receiver)))}/`
}

it.each(['page', 'screen', 'identify', 'track', 'alias', 'group', 'delete'])('sends a %s', async (type) => {
  const endpoint = await listen()
  const { code, stdout, stderr } = await hookline(['send', type, '--to', endpoint.url], { env })

  const [{ method, headers, bytes, message }] = (await endpoint.received(1)) as [RecordedRequest]
  expect(message.type).toBe(type)
  expect(method).toBe('POST')
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'Hookline/1.0' })
  expect(headers).toHaveProperty('content-length')
  expect(verify(bytes, headers['x-signature'], 'a secret')).toBe(true)
  expect(Math.abs(Date.now() - Date.parse(String(message.timestamp)))).toBeLessThan(60_000)
  expect(stdout).toMatch(new RegExp(`^200 {2}\\d+ ms {2}${type}( [0-9a-f-]{36})?\n$`))
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

it('sends the exact bytes of a file', async () => {
  const endpoint = await listen()
  const body =
    '{ "type":"track","userId":"u1", "event":"\\u00e9", "properties":{"a":39.0,"b":1e3,"c":9007199254740993} }\r\n'
  const { code } = await hookline(['send', await file('message.json', body), '--to', endpoint.url], { env })

  expect(endpoint.requests.map(({ bytes }) => bytes.toString())).toEqual([body])
  expect(code).toBe(0)
})

it('writes a message anew that --set changes', async () => {
  const endpoint = await listen()
  const path = await file(
    'message.json',
    '{ "type": "track", "userId": "u1", "event": "x", "properties": { "a": 39.0 } }',
  )
  const args = ['--set', 'properties.total=12', '--set', 'event=Order Refunded', '--to', endpoint.url]
  await hookline(['send', path, ...args], { env })

  const [{ bytes, headers }] = endpoint.requests as [RecordedRequest]
  expect(bytes.toString()).toBe(
    '{"type":"track","userId":"u1","event":"Order Refunded","properties":{"a":39,"total":12}}',
  )
  expect(verify(bytes, headers['x-signature'], 'a secret')).toBe(true)
})

it.each(['track', 'delete'])('gives each of many copies of a %s an identity of its own', async (type) => {
  const endpoint = await listen()
  const { code, stdout, stderr } = await hookline(['send', type, '--count', '50', '--to', endpoint.url], { env })

  expect(new Set(endpoint.requests.map(({ bytes }) => bytes.toString())).size).toBe(50)
  if (type === 'delete') expect(Object.keys(endpoint.messages[0] ?? {})).toEqual(['type', 'userId', 'timestamp'])
  expect(stdout.match(/^200 {2}/gm)).toHaveLength(50)
  expect(stderr).toMatch(
    /^50 sent, all taken: \d+\/s, latency p50 [\d.]+ ms, p95 [\d.]+ ms, p99 [\d.]+ ms, longest [\d.]+ ms\n$/,
  )
  expect(code).toBe(0)
})

it('sends lines, reports those that are no message, and goes on', async () => {
  const endpoint = await listen()
  const long = `{"type":"track","userId":"u1","event":"${'x'.repeat(5_000_000)}"}`
  const input = `${track}\r\n\nnot a message\n[${track}]\n{"type":"track","userId":"u1"}\n${long}\n ${track} `
  const { code, stdout, stderr } = await hookline(['send', '-', '--to', endpoint.url], { env, input })

  expect(endpoint.requests.map(({ bytes }) => bytes.toString())).toEqual([track, ` ${track} `])
  expect(stdout.split('\n').map((line) => line.replace(/\d+ ms/, 'n ms'))).toEqual([
    'line 1: 200  n ms  track',
    expect.stringMatching(/^line 3: no_message {2}The body must be valid JSON\./),
    expect.stringMatching(/^line 4: no_message {2}The body must be one JSON object, not a list\./),
    expect.stringMatching(/^line 5: no_message {2}`event` must be/),
    'line 6: no_message  A line must have at most 5000000 bytes. This one has more.',
    'line 7: 200  n ms  track',
    '',
  ])
  expect(stderr).toMatch(/^6 sent, 4 not taken: .*\n {2}4 × no_message, first line 3: The body must be valid JSON\./)
  expect(code).toBe(1)
})

it('sends the lines of a file so often, and changed', async () => {
  const endpoint = await listen()
  const path = await file('messages.ndjson', `${track}\n${track.replace('u1', 'u2')}\n`)
  const args = ['send', path, '--count', '2', '--set', 'properties.total=1', '--to', endpoint.url]
  const { code } = await hookline(args, { env })

  expect(endpoint.messages.map(({ userId }) => userId)).toEqual(['u1', 'u1', 'u2', 'u2'])
  expect(endpoint.messages).toMatchObject(Array(4).fill({ properties: { total: 1 } }))
  expect(new Set(endpoint.messages.map((message) => 'messageId' in message && message.messageId)).size).toBe(4)
  expect(code).toBe(0)
})

it.each([
  ['bad-signature', '401', 1],
  ['wrong-secret', '401', 1],
  ['no-signature', '401', 1],
  ['truncated', '401', 1],
  ['reserialised', '401', 1],
  ['chunked', '200', 0],
  ['repeated', '200 200', 0],
])('--tamper %s is answered %s by a correct endpoint', async (way, statuses, exitCode) => {
  const to = await receive()
  const { code, stdout } = await hookline(['send', 'track', '--tamper', way, '--to', to], { env })
  expect(stdout.match(/^\d{3}/gm)?.join(' ')).toBe(statuses)
  expect(code).toBe(exitCode)
})

it('--tamper chunked sends no length, no-signature no signature and needs no secret', async () => {
  const endpoint = await listen()
  await hookline(['send', 'track', '--tamper', 'chunked', '--to', endpoint.url], { env })
  await hookline(['send', 'track', '--tamper', 'no-signature', '--to', endpoint.url])
  expect(endpoint.requests[0]?.headers).toMatchObject({ 'transfer-encoding': 'chunked' })
  expect(endpoint.requests[1]?.headers).not.toHaveProperty('x-signature')
})

it('adds headers, and shows no value of one that is refused', async () => {
  const endpoint = await listen()
  const send = (header: string) => hookline(['send', 'track', '--header', header, '--to', endpoint.url], { env })
  await send('Authorization: Bearer a:b')
  expect(endpoint.requests[0]?.headers).toMatchObject({ authorization: 'Bearer a:b' })
  for (const header of ['X-Signature: hidden', 'hidden', 'X Y: hidden', 'X: hidden\nZ: 1']) {
    const { code, stderr } = await send(header)
    expect(code).toBe(2)
    expect(stderr).toMatch(/^error: .*(The command sets X-Signature itself|It must be a name|must be Latin-1 text)/s)
    expect(stderr).not.toContain('hidden')
  }
  expect(endpoint.requests).toHaveLength(1)
})

it('sends at a rate', async () => {
  const endpoint = await listen()
  await hookline(['send', 'track', '--count', '11', '--rate', '20', '--concurrency', '5', '--to', endpoint.url], {
    env,
  })
  const times = endpoint.requests.map(({ at }) => at.getTime())
  expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(350) // Ten intervals of 50 ms, less what may be made up for.
})

it('has so many attempts under way at a time', async () => {
  let release = () => {}
  const all = new Promise<void>((resolve) => (release = resolve))
  const endpoint = await listen([() => all.then(() => 200)])
  const { ended } = await start(['send', 'track', '--count', '6', '--concurrency', '3', '--to', endpoint.url], { env })
  await endpoint.received(3)
  release()
  expect((await ended).code).toBe(0)
  expect(endpoint.connections).toBe(3)
})

it('shows a progress bar on a terminal in place of the lines after the first', needs('util-linux'), async () => {
  const endpoint = await listen([200, 500, { status: 401, body: 'no\u001b[31m' }, 401])
  const args = ['send', 'track', '--count', '4', '--to', endpoint.url]
  const { code, stdout } = await hookline(args, { env, isTerminal: true })

  expect(stdout).toMatch(/\[=+-*\] \d+ % {2}\d sent, /)
  expect(stdout.match(/track [0-9a-f-]{36}/g)).toHaveLength(1)
  expect(stdout).toMatch(
    /4 sent, 3 not taken: .*latency p50.*\r\n {2}2 × 401, first no\\u\{1b\}\[31m\r\n {2}1 × 500\r\n$/,
  )
  expect(code).toBe(1)
})

it.each(['', ' \n\n'])('refuses %j, which holds no message: what should have written it has failed', async (input) => {
  const { code, stderr } = await hookline(['send', '-', '--to', 'http://127.0.0.1:1/'], { env, input })
  expect(stderr).toBe('error: SOURCE must hold a message on each line. Got no line.\n')
  expect(code).toBe(2)
})

it('ends on Ctrl-C with the summary so far', needs('POSIX'), async () => {
  const endpoint = await listen([200, 200, 'hang'])
  const { child, printed, ended } = await start(['send', '-', '--concurrency', '2', '--to', endpoint.url], { env })
  child.stdin?.write(`${track}\n${track}\n${track}\n`) // It stays open.
  await endpoint.received(3)
  await until(() => printed.stdout.match(/: 200/g)?.length === 2)
  child.kill('SIGINT')
  const { code, stderr } = await ended
  expect(stderr).toMatch(/^Interrupted. Attempts that were under way, and may have been taken: 1.\n2 sent, all taken: /)
  expect(code).toBe(1)
})

it('prints JSON that no terminal obeys', async () => {
  const endpoint = await listen([{ status: 400, body: '\u001b[2J\u009b1m\u202e\u{e0001}' }])
  const { stdout } = await hookline(['send', 'track', '--json', '--to', endpoint.url], { env })
  expect(stdout).not.toMatch(/[^\n\x20-\x7e]/)
  expect(JSON.parse(stdout)).toMatchObject({
    type: 'track',
    ok: false,
    status: 400,
    answer: '\u001b[2J\u009b1m\u202e\u{e0001}',
  })
})

it('fails for an address that does not respond, and never shows its query', async () => {
  const endpoint = await startEndpoint()
  await endpoint.close()
  const { code, stdout, stderr } = await hookline(['send', 'track', '--to', `${endpoint.url}?token=hidden`], { env })
  expect(stdout).toMatch(/^refused {2}\d+ ms {2}track .* The server must accept connections\./)
  expect(stdout + stderr).not.toContain('hidden')
  expect(code).toBe(1)
})

const elsewhere = ['send', 'track', '--count', '3', '--to', 'http://192.0.2.1/webhooks?token=hidden']

it('sends nothing to another machine without a yes', async () => {
  const { code, stderr } = await hookline(elsewhere, { env })
  expect(stderr).toBe('error: Send 3 messages to 192.0.2.1? There is no terminal to ask on. Pass --yes to go on.\n')
  expect(code).toBe(2)
})

it('asks on a terminal before it sends to another machine', needs('util-linux'), async () => {
  const asked = await hookline(elsewhere, { env, isTerminal: true, input: 'n\n' })
  expect(asked.stdout).toMatch(/Send 3 messages to 192.0.2.1\? \[y\/N\].*Nothing was sent\./s)
  expect(asked.code).toBe(2)
})

it('asks for a name under localhost that is of another machine', async () => {
  const resolver = `import dns from 'node:dns/promises'
    import { syncBuiltinESMExports } from 'node:module'
    dns.lookup = async () => [{ address: '192.0.2.1', family: 4 }]
    syncBuiltinESMExports()`
  const options = `--import=data:text/javascript,${encodeURIComponent(resolver)}`
  const args = ['send', 'track', '--to', 'http://app.localhost:9/']
  const { code, stderr } = await hookline(args, { env: { ...env, NODE_OPTIONS: options } })
  expect(stderr).toMatch(/^error: Send 1 message to app\.localhost:9\? /)
  expect(code).toBe(2)
})

it('says that stdout cannot be written', needs('Linux'), async () => {
  const ran = promisify(execFile)('sh', ['-c', `"$0" "$1" send --help > /dev/full`, process.execPath, bin])
  await expect(ran).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^error: stdout cannot be written: .*ENOSPC.*\.\n$/),
  })
})

it.each([
  [['trakc'], 'SOURCE: trakc cannot be read: it does not exist. Did you mean track?'],
  [['missing.json'], 'SOURCE: missing.json cannot be read: it does not exist.'],
  [['src'], 'SOURCE: src cannot be read: it is a directory.'],
  [['README.md'], 'The file holds no message: The body must be valid JSON.'],
  [['package.json'], 'The file holds no message: `type` must be one of'],
  [['track', '--set', 'event.name=1'], '--set event.name: event is a string and holds no fields.'],
  [['track', '--set', 'event'], "error: option '--set <field=value>' argument 'event' is invalid. It must be a field"],
  [['track', '--tamper', 'all'], 'It must be one of bad-signature'],
  [
    ['track', '--to', 'localhost'],
    'The URL must begin with http:// or https://. Got localhost. Pass http://localhost.',
  ],
])('says what is wrong with %j', async (args, sentence) => {
  const { code, stdout, stderr } = await hookline(['send', '--to', 'http://127.0.0.1:9/', ...args], { env })
  expect(stderr).toContain(sentence)
  expect(stderr).not.toMatch(/^ +at /m)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
})

it('needs a secret', async () => {
  const { code, stderr } = await hookline(['send', 'track', '--to', 'http://127.0.0.1:9/'])
  expect(stderr).toMatch(/^error: A secret is required\./)
  expect(code).toBe(2)
})

it('waits for nothing but what it sends', async () => {
  const endpoint = await listen()
  const { child, printed, ended } = await start(['send', '-', '--to', endpoint.url], { env })
  child.stdin?.write(`${track}\n`)
  await until(() => printed.stdout.includes('line 1: 200'))
  child.stdin?.end()
  expect(await ended).toMatchObject({ code: 0, stderr: '' })
})
