/** `hookline list`, `show` and `replay`. */

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sign } from '../../../src/protocol/signature.ts'
import { startEndpoint } from '../../../src/testing/scripted-endpoint.ts'
import { needs } from '../../../test/support/needs.ts'
import { createStore, MAX_BYTES, MAX_REQUESTS, openStore } from '../src/request-store.ts'
import { type KeptRequest, readFields } from '../src/requests/kept-request.ts'
import { bin, hookline, start } from './command.ts'
import { keptRequest } from './kept-request.ts'

const secret = 'a secret'
let folder: string
let store: string

const BODY =
  '{"type":"track","event":"Order \\u001b[31m\u202ex","properties":{"total":39.0,"n":9007199254740993,"n":1e3,"a b":[{},[]]}}'

it('shows the id that a message has', () => {
  const fieldsOf = (message: object) => readFields(Buffer.from(JSON.stringify({ type: 'page', ...message })))
  expect(fieldsOf({ userId: '', anonymousId: 'a-1' })).toEqual({ type: 'page', user: 'a-1' })
  expect(fieldsOf({ userId: 815, timestamp: 1_768_469_400 })).toEqual({ type: 'page', user: '815' })
})

/** A store of these requests, in a folder that is removed when the tests end. */
async function storeOf(...requests: readonly KeptRequest[]): Promise<string> {
  const path = join(await mkdtemp(join(folder, 'store-')), 'listen.sqlite')
  const kept = createStore(path)
  for (const request of requests) kept.append(request)
  kept.close()
  return path
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hookline-requests-'))
  const lines = ['Content-Type: application/json', 'Authorization: Basic t0ken', 'via: 1', 'Via: 2']
  const signed = [...lines.flatMap((line) => line.split(': ')), 'X-Signature', sign(BODY, secret)]
  store = await storeOf(
    keptRequest('aaaa00000001', {
      body: Buffer.from(BODY),
      headers: signed,
      target: '/webhooks?token=t0ken',
      message: { type: 'track', name: 'Order \u001b[31m\u202ex' },
    }),
    keptRequest('aaaa00000002', {
      body: Buffer.from(BODY.replace('39.0', '39')),
      headers: [...signed, 'Cookie', 't0ken'],
      verification: 'mismatched',
      reason: 'Got \u001b[2J.',
      message: { type: 'track' },
    }),
    keptRequest('bbbb00000003', { body: Buffer.from([0xff, 0x00, 0x0a, 0x1b, 0x5b]), method: 'PUT' }),
    keptRequest('cccc00000004', {
      isComplete: false,
      size: 9_000_000,
      body: Buffer.from('{'),
      message: { type: 'page' },
    }),
  )
  return () => rm(folder, { recursive: true, maxRetries: 9 })
})

const run = (...args: string[]) => hookline([...args, '--store', store])

describe('hookline list', () => {
  it('prints the newest last', async () => {
    const { code, stdout } = await run('list')
    expect(code).toBe(0)
    const date = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d'
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(
        new RegExp(
          `^${date}  aaaa0000  POST /webhooks\\?…  track +Order \\\\u\\{1b\\}\\[31m\\\\u\\{202e\\}x .* 200 .* verified$`,
        ),
      ),
      expect.stringMatching(/ aaaa0000 .* not verified: Got \\u\{1b\}\[2J\.$/),
      expect.stringMatching(/ bbbb0000 {2}PUT \/webhooks .* 5 B /),
      expect.stringMatching(/ cccc0000 .* 9000000 B /),
      '',
    ])
  })

  it('takes only some, and prints JSON without what could log someone in', async () => {
    const { stdout } = await run('list', '--type', 'track', '--limit', '1', '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      id: 'aaaa00000002',
      receivedAt: '2026-01-15T09:30:00.000Z',
      type: 'track',
      verification: 'mismatched',
      headers: expect.arrayContaining([
        ['Cookie', '(hidden)'],
        ['Via', '2'],
      ]),
      answer: { status: 200, by: 'listen' },
    })
    expect((await run('list', '--json')).stdout).not.toMatch(/t0ken|\u202e/)
    const { code, stderr } = await run('list', '--type', 'trak')
    expect([code, stderr]).toEqual([2, expect.stringContaining('Did you mean track?')])
  })

  it('says that nothing is kept yet', async () => {
    const { code, stderr } = await hookline(['list'], { cwd: folder })
    expect([code, stderr]).toEqual([
      2,
      'error: No requests are kept in .hookline/listen.sqlite: it does not exist. Run `hookline listen` first, or pass --store FILE.\n',
    ])
  })
})

describe('hookline show', () => {
  it('prints the body pretty, each number and string as it is written', async () => {
    const { code, stdout } = await run('show', 'aaaa00000001')
    expect(code).toBe(0)
    expect(stdout).toContain('request    POST /webhooks?…\nanswer     200 after 2 ms.\nsignature  verified\n')
    expect(stdout).toContain('  Authorization: (hidden)\n  via: 1\n  Via: 2\n')
    expect(stdout).toMatch(
      /"total": 39\.0,\n {4}"n": 9007199254740993,\n {4}"n": 1e3,\n {4}"a b": \[\n {6}\{\},\n {6}\[\]\n {4}\]\n {2}\}\n\}\n$/,
    )
    expect(stdout).toContain('"Order \\u001b[31m\\u{202e}x"')
    expect(stdout).not.toContain('t0ken')
  })

  it('explains the signature with the secret', async () => {
    const without = await run('show', 'last~2')
    expect(without.stdout).toContain('signature  not verified: Got \\u{1b}[2J. Pass the secret to have it explained.\n')
    const explained = await run('show', 'last~2', '--secret', secret)
    expect(explained.stdout).toMatch(
      /^signature {2}The signature does not match, and nothing that was tried explains it\./m,
    )
    expect((await run('show', 'last~3', '--secret', ` ${secret} `)).stdout).toMatch(
      /^signature {2}The secret must be the one that signed\. Got a secret with white space around it/m,
    )
    expect((await run('show', 'last', '--secret', secret)).stdout).toContain(
      'body, 9000000 bytes of which 1 are kept\n{\n',
    )
  })

  it('writes the exact bytes', async () => {
    const args = ['show', 'bb', '--raw', '--store', store]
    const { stdout: raw } = await promisify(execFile)(process.execPath, [bin, ...args], {
      encoding: 'buffer',
    })
    expect(raw).toEqual(Buffer.from([0xff, 0x00, 0x0a, 0x1b, 0x5b]))
  })

  it('writes no bytes to a terminal', needs('util-linux'), async () => {
    const { code, stdout } = await hookline(['show', 'bb', '--raw', '--store', store], { isTerminal: true })
    expect([code, stdout]).toEqual([
      2,
      expect.stringMatching(/^error: --raw writes what strangers sent, .* Write to a file or a pipe\.\r\n$/),
    ])
  })

  it('says that a body is not UTF-8', async () => {
    const { stdout } = await run('show', 'bbbb')
    expect(stdout).toMatch(
      /\nbody, 5 bytes, which are not UTF-8: --raw writes them as they are\n\ufffd\\u\{0\}\n\\u\{1b\}\[\n$/,
    )
  })

  it.each([
    ['aaaa', 'several ids begin with that'],
    ['ffff', 'no such request is kept'],
    ['last~9', 'no such request is kept'],
    ['lost', 'an id has hexadecimal digits'],
  ])('refuses %s', async (reference, reason) => {
    const { code, stderr } = await run('show', reference)
    expect([code, stderr]).toEqual([
      2,
      `error: '${reference}' must name one kept request: ${reason}. See \`hookline list\`.\n`,
    ])
  })
})

describe('hookline replay', () => {
  it('sends the identical bytes and headers again', async () => {
    await using endpoint = await startEndpoint()
    const { code, stdout } = await run('replay', 'aaaa00000001', 'bbbb', '--to', endpoint.url)
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^aaaa0000 {2}200 after \d+ ms\nbbbb0000 {2}200 after \d+ ms\n$/),
    ])
    const [first, second] = endpoint.requests
    expect(first).toMatchObject({
      method: 'POST',
      path: '/webhooks',
      headers: { 'x-signature': sign(BODY, secret), authorization: 'Basic t0ken', via: '1, 2' },
    })
    expect(first?.bytes.toString()).toBe(BODY)
    expect(second).toMatchObject({ method: 'PUT', bytes: Buffer.from([0xff, 0x00, 0x0a, 0x1b, 0x5b]) })
  })

  it('says when an inbox took a request for a copy', async () => {
    const copy = { status: 200, body: '{"ok":true,"duplicate":true}' }
    await using endpoint = await startEndpoint({ script: [{ status: 200, body: '{"ok":true}' }, copy] })
    const args = ['replay', 'aaaa00000001', 'aaaa00000001', '--to', endpoint.url, '--store', store]
    const { code, stdout } = await hookline(args)
    const copied = 'a copy that was not handled again'
    expect([code, stdout.replace(/\d+ ms/g, '1 ms').split('\n')]).toEqual([
      0,
      ['aaaa0000  200 after 1 ms', `aaaa0000  200 after 1 ms, ${copied}`, ''],
    ])
  })

  it('ends on Ctrl-C, and says that the request may have been taken', needs('POSIX'), async () => {
    await using endpoint = await startEndpoint({ script: ['hang'] })
    const { child, ended } = await start(['replay', 'bbbb', '--to', endpoint.url, '--store', store])
    await endpoint.received(1)
    child.kill('SIGINT')
    expect(await ended).toEqual({
      code: 1,
      stdout: 'bbbb0000  interrupted: it may have been taken\n',
      stderr: '',
    })
  })

  it('fails when one is not answered 2xx, or not all of it is kept', async () => {
    await using endpoint = await startEndpoint({ script: [302] })
    expect(await run('replay', 'aaaa00000001', '--to', endpoint.url)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('  302 after '),
    })
    expect(await run('replay', 'cccc', '--to', endpoint.url)).toEqual({
      code: 1,
      stdout: 'cccc0000  not sent: not all of its body is kept\n',
      stderr: '',
    })
    expect(await run('replay', 'bbbb', '--to', 'http://127.0.0.1:1')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('The server must accept connections.'),
    })
    expect(endpoint.requests).toHaveLength(1)
  })

  it('asks before it sends to another machine, and sends nothing when one id is unknown', async () => {
    await using endpoint = await startEndpoint()
    expect(await run('replay', 'bbbb', 'last', '--to', 'https://shop.example/x?token=t0ken')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: Send 2 requests to shop.example? There is no terminal to ask on. Pass --yes to go on.\n',
    })
    expect(await run('replay', 'bbbb', 'eeee', '--to', endpoint.url)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("'eeee' must name one"),
    })
    expect(endpoint.requests).toHaveLength(0)
  })

  it.each([fileURLToPath(import.meta.url), 'redis://bob:hunter2@127.0.0.1'])(
    'names the replay of a queue for a location',
    async (location) => {
      const { code, stderr } = await run('replay', location, '--to', 'http://127.0.0.1:1')
      expect([code, stderr]).toEqual([2, expect.stringContaining('hookline queue LOCATION replay')])
      expect(stderr).not.toContain('hunter2')
    },
  )
})

it.each([
  ['a summary that is no JSON', "UPDATE requests SET summary = 'x'"],
  ['an id that a terminal obeys', `UPDATE requests SET summary = json_set(summary, '$.id', char(27) || '[31m')`],
  ['a status that a terminal obeys', `UPDATE requests SET summary = json_set(summary, '$.answer.status', char(27))`],
])('refuses a store of strangers: %s', async (_case, sql) => {
  const path = await storeOf(keptRequest('aaaa00000001'))
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
  for (const args of [['list'], ['show', 'last']]) {
    const { code, stdout, stderr } = await hookline([...args, '--store', path])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^error: The store .*listen\.sqlite cannot be used\. A request in it is damaged\. .*\n$/)
  }
})

it('the store drops the oldest past a number of requests, and past a number of bytes', async () => {
  const path = join(folder, 'bounds.sqlite')
  const kept = createStore(path)
  onTestFinished(() => kept.close())
  const ids = (count: number, start: number) =>
    Array.from({ length: count }, (_, at) => (start + at).toString(16).padStart(12, '0'))
  for (const id of ids(12_500, 0)) kept.append(keptRequest(id))
  const list = kept.list(MAX_REQUESTS)
  expect(list).toHaveLength(MAX_REQUESTS)
  expect(list.at(-1)?.id).toBe((12_499).toString(16).padStart(12, '0'))
  const again = openStore(path)
  expect(again.get('last').id).toBe(list.at(-1)?.id)
  again.close()

  const large = Buffer.alloc(5_000_000, 'x')
  for (const id of ids(22, 0x10_0000)) kept.append(keptRequest(id, { body: large }))
  expect(kept.list(MAX_REQUESTS)).toHaveLength(MAX_BYTES / large.length - 1) // What is kept of each beside its body.
})
