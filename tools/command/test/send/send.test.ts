/** `hookline send`. */

import { createServer } from 'node:http'
import { join } from 'node:path'
import { createReceiver, verify } from 'hookline'
import { serve } from 'hookline/node'
import { fixtures, type RecordedRequest, startEndpoint } from 'hookline/testing'
import { expect, it } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { createFiles, expectUsage, hookline, jsonLines, like, listenHere, start } from '../command.ts'

const env = { HOOKLINE_SECRET: 'a secret' }
const track = '{"type":"track","userId":"u1","event":"Order Completed"}'

const file = async (name: string, content: string) => join(await createFiles({ [name]: content }), name)
const send = (source: string, to: string, ...args: string[]) => hookline(['send', source, ...args, '--to', to], { env })

it.each(Object.keys(fixtures))('a %s is sent as the destination sends it', async (type) => {
  await using endpoint = await startEndpoint()
  const { code, stdout, stderr } = await send(type, endpoint.url)

  const [{ method, headers, bytes, message }] = endpoint.requests as [RecordedRequest]
  expect([method, message.type]).toEqual(['POST', type])
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'Hookline/1.0' })
  expect(headers).toHaveProperty('content-length')
  expect(verify(bytes, headers['x-signature'], 'a secret')).toBe(true)
  expect(Math.abs(Date.now() - Date.parse(String(message.timestamp)))).toBeLessThan(60_000)
  expect(stdout).toMatch(new RegExp(`^200 {2}\\d+ ms {2}${type}( [0-9a-f-]{36})?\n$`))
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

const exact =
  '{ "type":"track","userId":"u1", "event":"\\u00e9", "properties":{"a":39.0,"b":1e3,"c":90071992547409931} }\r\n'
const sold = '{"type":"track","userId":"u1","event":"Sold","properties":{"total":12}}'
it.each([
  ['is sent by its exact bytes', exact, [], exact],
  ['is written and signed anew with --set', track, ['--set', 'properties.total=12', '--set', 'event=Sold'], sold],
])('the message of a file %s', async (_how, content, args, expected) => {
  await using endpoint = await startEndpoint()
  const { code } = await send(await file('message.json', content), endpoint.url, ...args)
  const [{ bytes, headers }] = endpoint.requests as [RecordedRequest]
  expect([code, bytes.toString()]).toEqual([0, expected])
  expect(verify(bytes, headers['x-signature'], 'a secret')).toBe(true)
})

const COPIED: Readonly<Record<string, string>> = { line: 'messages.NDJSON', file: 'message.json' }
it.each(['track', 'delete', 'line', 'file'])('each of two copies of a %s has a new identity', async (type) => {
  await using endpoint = await startEndpoint()
  const source = COPIED[type] === undefined ? type : await file(COPIED[type], track)
  const { code, stdout, stderr } = await send(source, endpoint.url, '--count', '2')
  expect(new Set([track, ...endpoint.requests.map(({ bytes }) => bytes.toString())]).size).toBe(3)
  if (type === 'delete') expect(Object.keys(endpoint.messages[0] ?? {})).toEqual(['type', 'userId', 'timestamp'])
  expect(stdout.match(/\b200 {2}/g)).toHaveLength(2)
  const summary = like(/^2 sent, all accepted: \d+\/s, .*p50 [\d.]+ ms, p95 [\d.]+ ms, p99 [\d.]+ ms/)
  expect([code, stderr]).toEqual([0, summary])
})

it('lines are sent, and those that are no message are reported', async () => {
  await using endpoint = await startEndpoint()
  const long = `{"type":"track","userId":"u1","event":"${'x'.repeat(5_000_000)}"}`
  const input = `${track}\r\n\nnot a message\n[${track}]\n{"type":"track","userId":"u1"}\n${long}\n ${track} `
  const { code, stdout, stderr } = await hookline(['send', '-', '--to', endpoint.url], { env, input })
  expect(endpoint.requests.map(({ bytes }) => bytes.toString())).toEqual([track, ` ${track} `])
  const outcomes = stdout.split('\n').map((line) => line.split('  ')[0])
  const faulty = [3, 4, 5, 6].map((number) => `line ${number}: no_message`)
  expect(outcomes).toEqual(['line 1: 200', ...faulty, 'line 7: 200', ''])
  expect([code, stderr]).toEqual([1, like(/^6 sent, 4 not accepted: .*\n {2}4 × no_message, first line 3: /)])
})

it.each([
  ['bad-signature', '401', 1],
  ['no-signature', '401', 1],
  ['chunked', '200', 0],
  ['repeated', '200 200', 0],
])('--tamper %s is answered %s by a correct endpoint', async (way, statuses, exitCode) => {
  const receiver = createReceiver({ secret: env.HOOKLINE_SECRET, onError: () => {} }).on('track', () => {})
  const to = await listenHere(createServer(serve(receiver)))
  const { code, stdout } = await send('track', `${to}/`, '--tamper', way)
  expect([code, stdout.match(/^\d{3}/gm)?.join(' ')]).toEqual([exitCode, statuses])
})

it('--tamper chunked sends no length; no-signature sends none, and needs no secret; --header adds one', async () => {
  await using endpoint = await startEndpoint()
  const added = ['--header', 'X-Team: growth', '--header', 'Authorization: Bearer a:b']
  await send('track', endpoint.url, '--tamper', 'chunked', ...added)
  await hookline(['send', 'track', '--tamper', 'no-signature', '--to', endpoint.url])
  const headers = { 'transfer-encoding': 'chunked', authorization: 'Bearer a:b', 'x-team': 'growth' }
  expect(endpoint.requests[0]?.headers).toMatchObject(headers)
  expect(endpoint.requests[1]?.headers).not.toHaveProperty('x-signature')
})

const HEADERS = ['X-Signature: hidden', 'hidden', 'X Y: hidden', 'X: hidden\nZ: 1']
it.each(HEADERS)('--header %j is refused, and its value is not shown', async (header) => {
  const ran = await send('track', 'http://127.0.0.1:9/', '--header', header)
  expectUsage(ran, '--header')
  expect(ran.stderr).not.toContain('hidden')
})

it('--concurrency is how many attempts are under way at a time', async () => {
  let release = () => {}
  const all = new Promise<void>((resolve) => (release = resolve))
  await using endpoint = await startEndpoint({ script: [() => all.then(() => 200)] })
  const { ended } = await start(['send', 'track', '--count', '6', '--concurrency', '3', '--to', endpoint.url], { env })
  await endpoint.received(3)
  release()
  expect((await ended).code).toBe(0)
  expect(endpoint.connections).toBe(3)
})

it.each(['', ' \n\n'])('%j holds no message, and is refused: what should have written it has failed', async (input) => {
  expectUsage(await hookline(['send', '-', '--to', 'http://127.0.0.1:1/'], { env, input }), 'SOURCE')
})

it('Ctrl-C ends it with the summary so far', async () => {
  await using endpoint = await startEndpoint({ script: [200, 200, 'hang'] })
  const started = await start(['send', '-', '--concurrency', '2', '--to', endpoint.url], { env })
  const { stdin, printed, ended, interrupt } = started
  stdin.write(`${track}\n${track}\n${track}\n`) // It stays open.
  await endpoint.received(3)
  await until(() => printed.stdout.match(/: 200/g)?.length === 2)
  interrupt()
  expect(await ended).toMatchObject({ code: 1, stderr: like(/^Interrupted.* 1\.\n2 sent, all accepted: /) })
})

it('an answer is printed as what no terminal obeys, also with --json', async () => {
  const answer = '\u001b[2J\u009b1m\u202e\u{e0001}'
  await using endpoint = await startEndpoint({ script: [{ status: 300, body: answer }] })
  const lines = await send('track', endpoint.url)
  const { stdout } = await send('track', endpoint.url, '--json')
  expect(lines.stdout + lines.stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
  expect(stdout).not.toMatch(/[^\n\x20-\x7e]/)
  const own = { type: 'track', messageId: expect.any(String), durationMs: expect.any(Number) }
  expect(jsonLines(stdout)).toEqual([{ ...own, ok: false, status: 300, answer }])
})

it('on a terminal, the first message has a line, and all have a bar', async () => {
  await using endpoint = await startEndpoint({ script: [200, 500] })
  const args = ['send', 'track', '--count', '3', '--to', endpoint.url]
  const { code, stdout, stderr } = await hookline(args, { env: { ...env, FORCE_COLOR: '1' }, isTerminal: true })
  const lines = [stdout, stderr].map((text) => text.replaceAll('\u001b[', '<'))
  const bar = /^.*<\?25l.*\[-{20}\] 0 % {2}2 sent, .*\[={20}\] 100 % {2}3 sent, .*<\?25h.*<2K3 sent, .*\n {2}2 × 500\n$/
  expect([code, ...lines]).toEqual([1, like(/^<32m200<39m .*\n$/), like(bar)])
})

it('an address that does not respond fails, and its query is never shown', async () => {
  const { code, stdout, stderr } = await send('track', 'http://127.0.0.1:1/?token=hidden')
  expect([code, stdout, stderr]).toEqual([1, like(/^refused {2}\d+ ms {2}track /), ''])
  expect(stdout).not.toContain('hidden')
})

it('nothing is sent to another machine without a yes: of the arguments, or on a terminal', async () => {
  const args = ['send', 'track', '--count', '3', '--to', 'http://192.0.2.1/webhooks?token=hidden']
  const piped = await hookline(args, { env })
  const asked = await hookline(args, { env, isTerminal: true, input: 'n\n' })
  expectUsage(piped, '3 messages', '192.0.2.1', '--yes')
  expect(asked).toMatchObject({ code: 2, stdout: '', stderr: like(/192\.0\.2\.1\? \[y\/N\]/) })
  expect(piped.stderr + asked.stderr).not.toContain('hidden')
})
