/** `hookline list`, `show` and `replay`. */

import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sign } from 'hookline'
import { startEndpoint } from 'hookline/testing'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { createStore, MAX_BYTES, MAX_REQUESTS, openStore } from '../src/request-store.ts'
import type { KeptRequest } from '../src/requests/kept-request.ts'
import { createFolder, expectUsage, hookline, like } from './command.ts'
import { keptRequest } from './kept-request.ts'

const secret = 'a secret'
const BODY =
  '{"type":"track","event":"Order \\u001b[31m\u202ex","properties":{"total":39.0,"n":9007199254740993,"n":1e3,"a b":[{},[]]}}'
const BINARY = Buffer.from([0xff, 0x00, 0x0a, 0x1b, 0x5b])
const { answer } = keptRequest('000000000000')
const folder = await createFolder(afterAll)
const lines = ['Content-Type: application/json', 'Authorization: Basic t0ken', 'via: 1', 'Via: 2']
const signed = [...lines.flatMap((line) => line.split(': ')), 'X-Signature', sign(BODY, secret)]
const store = await storeOf(
  keptRequest('aaaa00000001', {
    ...{ body: Buffer.from(BODY), headers: signed, target: '/webhooks?token=t0ken' },
    message: { type: 'track', name: 'Order \u001b[31m\u202ex', user: 'ada\u009b\r\n\u2028', fault: '\u001b.' },
    answer: { ...answer, status: 201, by: 'forward', headers: ['Set-Cookie', 't0ken', 'Via', '3'], durationMs: 12.6 },
    answerBody: Buffer.from('{"ok":"\u001b"}'),
  }),
  keptRequest('aaaa00000002', {
    ...{ body: Buffer.from(BODY.replace('39.0', '39')), headers: [...signed, 'Cookie', 't0ken'] },
    message: { type: 'track', name: 'x'.repeat(41), user: 'y'.repeat(40) },
    ...{ verification: 'mismatched', reason: 'Got \u001b[2J.' },
    answer: { ...answer, headers: ['Set-Cookie', 't0ken'] },
  }),
  keptRequest('bbbb00000003', {
    ...{ body: BINARY, method: 'PUT', verification: 'unchecked' },
    answer: { ...answer, status: 300, by: 'forward', note: '\u001b[3J' },
  }),
  keptRequest('cccc00000004', { isComplete: false, size: 9e6, body: Buffer.from('{'), message: { type: 'page' } }),
)

/** A store of these requests, in a folder that is removed when the tests end. */
async function storeOf(...requests: readonly KeptRequest[]): Promise<string> {
  const path = join(await mkdtemp(join(folder, 'store-')), 'listen.sqlite')
  const kept = createStore(path)
  for (const request of requests) kept.append(request)
  kept.close()
  return path
}

const run = (...args: string[]) => hookline([...args, '--store', store])

const AT = /^(received {3})?2026-01-1\d \d\d:\d\d:00 */m // Times are local.
const SIZE = Buffer.byteLength(BODY)

it('hookline list prints a line a request, the newest last, escaped and without its query', async () => {
  const { code, stdout } = await hookline(['list', '--store', store], { env: { FORCE_COLOR: '1' } })

  const [user, name, why] = ['ada\\u{9b}\\u{d}\\u{a}\\u{2028}', `${'x'.repeat(39)}…`, 'not verified: Got \\u{1b}[2J.']
  const shown = stdout.replaceAll('\u001b[', '<').split('\n')
  expect([`${code}`, ...shown].map((line) => line.replace(AT, ''))).toEqual([
    '0',
    `aaaa0000  POST /webhooks?…  track     Order \\u{1b}[31m\\u{202e}x  ${user}     ${SIZE} B  <32m201<39m    13 ms  <32mverified<39m  Not a message: \\u{1b}.`,
    `aaaa0000  POST /webhooks  track     ${name}  ${'y'.repeat(40)}     ${SIZE - 2} B  <32m200<39m     2 ms  <31m${why}<39m`,
    `bbbb0000  PUT /webhooks  ${' '.repeat(36)}       5 B  <31m300<39m     2 ms  not verified  \\u{1b}[3J`,
    `cccc0000  POST /webhooks  page      ${' '.repeat(25)}  9000000 B  <32m200<39m     2 ms  <32mverified<39m`,
    '',
  ])
})

it('hookline list takes only some, and prints JSON without what could log someone in', async () => {
  const { stdout } = await run('list', '--type', 'track', '--limit', '1', '--json')

  const hidden = '(hidden)'
  const first = { 'Content-Type': 'application/json', Authorization: hidden, via: '1', Via: '2' }
  expect(JSON.parse(stdout)).toEqual({
    ...{ id: 'aaaa00000002', receivedAt: '2026-01-15T09:30:00.000Z', method: 'POST', path: '/webhooks' },
    ...{ isComplete: true, headers: Object.entries({ ...first, 'X-Signature': hidden, Cookie: hidden }) },
    ...{ bytes: BODY.length, type: 'track', name: 'x'.repeat(41), user: 'y'.repeat(40) },
    ...{ verification: 'mismatched', reason: 'Got \u001b[2J.' },
    answer: { status: 200, headers: [['Set-Cookie', hidden]], by: 'listen', durationMs: 2 },
  })
  expect((await run('list', '--json')).stdout).not.toMatch(/t0ken|\u202e/)
})

it('hookline list is wrong usage where nothing is kept yet', async () => {
  expectUsage(await hookline(['list'], { cwd: folder }), '.hookline/listen.sqlite', '--store')
})

it('hookline show prints all of a request, the body pretty, each number and string as it is written', async () => {
  const { code, stdout } = await run('show', 'aaaa00000001')

  const headers = `Content-Type: application/json\n  Authorization: (hidden)\n  via: 1\n  Via: 2\n  X-Signature: ${signed.at(-1)}`
  expect([code, ...stdout.replace(AT, 'AT').split('\n\n')]).toEqual([
    0,
    'id         aaaa00000001\nAT\nrequest    POST /webhooks?…\nanswer     201 after 13 ms.\nsignature  verified\nmessage    \\u{1b}.',
    `headers\n  ${headers}`,
    `body, ${SIZE} bytes\n{\n  "type": "track",\n  "event": "Order \\u001b[31m\\u{202e}x",\n  "properties": {\n    "total": 39.0,\n    "n": 9007199254740993,\n    "n": 1e3,\n    "a b": [\n      {},\n      []\n    ]\n  }\n}`,
    'headers of the answer\n  Set-Cookie: (hidden)\n  Via: 3',
    'body of the answer\n{"ok":"\\u{1b}"}\n',
  ])
  expect((await run('show', 'aaaa00000001', '--raw')).stdout).toBe(BODY)
})

it.each<[string, string[], RegExp]>([
  ['not without it', ['last~2'], /^signature .*Got \\u\{1b\}\[2J\..*secret/m],
  ['that nothing checked', ['last~1'], /^answer .* 300 after 2 ms\. \\u.*\nsignature {2}not verified\. .*secret/m],
  ['that nothing explains', ['last~2', '--secret', secret], /^signature {2}(?!.*2J)/m],
  ['that something explains', ['last~3', '--secret', ` ${secret} `], /^signature .*white space/m],
  ['not of a part', ['last', '--secret', secret], /^signature {2}verified\n.*^body, 9000000 bytes, of which 1 /ms],
])('hookline show explains a signature with the secret: %s', async (_what, args, line) => {
  expect((await run('show', ...args)).stdout).toMatch(line)
})

it('hookline show shows a body that is not UTF-8 escaped, and writes no bytes to a terminal', async () => {
  const { stdout } = await run('show', 'bbbb')
  const refused = await hookline(['show', 'bb', '--raw', '--store', store], { isTerminal: true })
  expect(stdout).toMatch(/^body, 5 bytes.*--raw.*\n\ufffd\\u\{0\}\n\\u\{1b\}\[\n$/m)
  expectUsage(refused, '--raw')
})

it.each(['aaaa', 'aaaag', 'ffff', 'last~9', 'last~', '0123456789abc'])('hookline show finds none by %s', async (id) => {
  expectUsage(await run('show', id), `'${id}'`)
})

it('hookline replay sends the identical bytes and headers again', async () => {
  await using endpoint = await startEndpoint({ script: [{ status: 200, body: '{"duplicate":true}' }, 299] })
  const { code, stdout } = await run('replay', 'aaaa00000001', 'BBBB', '--to', endpoint.url)
  expect([code, stdout]).toEqual([0, like(/^aaaa0000 {2}200 after \d+ ms, .*copy.*\nbbbb0000 {2}299 after \d+ ms\n$/)])
  const headers = { 'x-signature': sign(BODY, secret), authorization: 'Basic t0ken', via: '1, 2' }
  expect(endpoint.requests).toMatchObject([
    { method: 'POST', path: '/webhooks', headers, bytes: Buffer.from(BODY) },
    { method: 'PUT', bytes: BINARY },
  ])
})

it('hookline replay fails when one is not answered 2xx, is not all kept, or cannot be sent', async () => {
  await using endpoint = await startEndpoint({ script: [300, 200] })
  const replay = (id: string, to = endpoint.url) => run('replay', id, '--to', to)
  const both = await run('replay', 'aaaa00000001', 'bbbb', '--to', endpoint.url)
  expect(both).toMatchObject({ code: 1, stdout: like(/ 300 .*\n.* 200 /) })
  expect(await replay('cccc')).toMatchObject({ code: 1, stdout: like(/^cccc0000 {2}not sent/), stderr: '' })
  const away = await replay('bbbb', 'http://127.0.0.1:1')
  expect(away).toMatchObject({ code: 1, stdout: like(/ECONNREFUSED/) })
  expect(endpoint.requests).toHaveLength(2)
})

it('hookline replay asks before it sends to another machine, and sends nothing when one id is unknown', async () => {
  await using endpoint = await startEndpoint()
  const remote = await run('replay', 'bbbb', 'last', '--to', 'https://shop.example/x?token=t0ken')
  const unknown = await run('replay', 'bbbb', 'eeee', '--to', endpoint.url)
  expectUsage(remote, '2 requests', 'shop.example', '--yes')
  expect(remote.stderr).not.toContain('t0ken')
  expectUsage(unknown, "'eeee'")
  expect(endpoint.requests).toHaveLength(0)
})

const DAMAGED = ['$.id', '$.receivedAt', '$.size', '$.answer.durationMs', '$.answer.status']
const sqlOf = (path: string) => `json_set(summary, '${path}', char(27) || '[31m')`
it.each(["'x'", ...DAMAGED.map(sqlOf)])('a store of strangers is refused, with a summary of %s', async (summary) => {
  const path = await storeOf(keptRequest('aaaa00000001'))
  const database = new DatabaseSync(path)
  database.exec(`UPDATE requests SET summary = ${summary}`)
  database.close()
  for (const args of [['list'], ['show', 'last']]) {
    const ran = await hookline([...args, '--store', path])
    expectUsage(ran, path)
    expect(ran.stderr).not.toContain('\u001b')
  }
})

it('the store drops the oldest past a number of requests, and past a number of bytes', async () => {
  const path = await storeOf(keptRequest('000000000000'))
  const database = new DatabaseSync(path)
  database.exec(`INSERT INTO requests (id, start, bytes, summary, body, answer_body)
    SELECT printf('%012x', n), n * bytes, bytes, json_set(summary, '$.id', printf('%012x', n)), body, answer_body
    FROM requests, (WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted
      WHERE n < ${MAX_REQUESTS}) SELECT n FROM counted)`)
  database.close()
  const kept = openStore(path)
  onTestFinished(() => kept.close())

  kept.append(keptRequest('ffff00000000'))
  const list = kept.list(MAX_REQUESTS + 1)
  for (const id of 'abcde') kept.append(keptRequest(`ffff0000000${id}`, { body: Buffer.alloc(MAX_BYTES / 4) }))

  expect([list.length, list.at(-1)?.id]).toEqual([MAX_REQUESTS, 'ffff00000000'])
  expect(kept.list(MAX_REQUESTS)).toHaveLength(3) // Beside each body something more is kept.
})
