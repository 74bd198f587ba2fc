/** `hookline listen`. */

import { once } from 'node:events'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { fixtures, signedRequest } from 'hookline/testing'
import { expect, it, onTestFinished, vi } from 'vitest'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { createStore, openStore } from '../src/request-store.ts'
import type { Forwarder } from '../src/requests/forward.ts'
import type { KeptRequest } from '../src/requests/kept-request.ts'
import { createEndpoint, failScript } from '../src/requests/listen/endpoint.ts'
import { createFindReason } from '../src/requests/listen/reasons.ts'
import { createFolder, expectUsage, hookline, like, listenHere, type Running, start, urlOf } from './command.ts'
import { keptRequest } from './kept-request.ts'

const secret = 'a secret'
const withSecret = { env: { HOOKLINE_SECRET: secret } }
const signed = signedRequest(fixtures.track, secret)
const page = signedRequest(fixtures.page, secret)

it('listen shows a line a request: what it is, whether it is verified, and why not', async () => {
  const cwd = await createFolder()
  const { url, lines, end } = await listen([], { ...withSecret, cwd })

  const statuses = [
    await post(url, signed),
    await post(url, { ...signed, body: `${signed.body}\n` }),
    await post(url, { method: 'POST', body: signed.body }),
  ]

  expect(statuses).toEqual([200, 401, 401])
  const what = `track +Order Completed  user-1 +${signed.body.length} B  200 +\\d+ ms  verified`
  expect(await lines(3)).toEqual([
    expect.stringMatching(`^\\d\\d:\\d\\d:\\d\\d  [0-9a-f]{8}  POST /webhooks  ${what}$`),
    like(/ 401 .* not verified: .*line break/),
    like(/ 401 .* not verified: ./),
  ])
  const { code, stderr } = await end()
  expect([code, stderr]).toEqual([0, like(/\n3 requests received, 1 verified, 2 not verified.\n$/)])
  expect(stderr).not.toContain(secret)
  const answers = read(cwd).map(({ answerBody }) => JSON.parse(Buffer.from(answerBody).toString()))
  expect(answers.map(({ ok, code }) => ok ?? code)).toEqual([true, 'signature_mismatch', 'signature_missing'])
})

it('listen verifies nothing without a secret, and answers any method and path, also without a Host', async () => {
  const { url, lines, printed } = await listen()

  await post(`${new URL('/anything?token=t0ken', url)}`, { method: 'PUT', body: '{"type":"track"}' })
  await post(url, { method: 'GET' })
  const body = '{"userId":"","anonymousId":"a1"}'
  await send(url, `POST /bare HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`)

  const [put, get, bare] = await lines(3)
  expect(put).toMatch(/PUT \/anything\?… .* 200 .* not verified .*`userId`/)
  expect(get).toMatch(/GET \/webhooks .* 0 B {2}200 .* not verified$/)
  expect(bare).toMatch(/POST \/bare .* a1 /)
  expect(printed.stderr).toContain('Signatures are not verified')
  expect(printed.stdout).not.toContain('t0ken')
})

it('listen refuses bodies over the limit, and shows uploads that end early', async () => {
  const { url, lines } = await listen()
  const chunked = { method: 'POST', body: new Blob([Buffer.alloc(5_000_001)]).stream(), duplex: 'half' }
  const large = (size: number) => post(url, { method: 'POST', body: Buffer.alloc(size) })
  const statuses = [await large(5_000_000), await large(5_000_001), await post(url, chunked)]
  const { socket } = await send(url, 'POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this')
  socket.end()
  expect(statuses).toEqual([200, 413, 413])
  const shown = (await lines(4)).map((line) => / (\d+ B {2}...) /.exec(line)?.[1])
  expect(shown).toEqual(['5000000 B  200', '5000001 B  413', '5000001 B  413', '9 B  ---'])
})

it('what is no HTTP is answered 400, and noted once a second', async () => {
  const { url, printed } = await listen()
  for (const bytes of ['\x16\x03\x01', 'hello\r\n\r\n']) {
    const { text } = await send(url, bytes)
    await until(() => text().startsWith('HTTP/1.1 400 '))
  }
  expect(printed.stderr.split('\n')).toEqual([expect.anything(), like(/https: .*http:/), ''])
})

it('of a flood, five reasons are found in a second, and none of a large body', () => {
  const now = vi.spyOn(performance, 'now')
  onTestFinished(() => now.mockRestore())
  const findReason = createFindReason(secret)
  const isFound = (...args: [Uint8Array, string?]) => !findReason('1a2b', ...args).includes('hookline show 1a2b')
  for (const [at, free] of [[5_000, 5] as const, [6_000, 0] as const, [6_001, 5] as const]) {
    now.mockReturnValue(at)
    expect(Array.from({ length: 6 }, () => isFound(signed.bytes, 'x')).filter(Boolean)).toHaveLength(free)
  }
  now.mockReturnValue(9_000)
  const [large, larger] = [Buffer.alloc(100_000), Buffer.alloc(100_001)]
  expect([isFound(large, 'x'), isFound(larger, 'x'), isFound(larger)]).toEqual([true, false, true])
  const signature = `sha1=${signed.headers['x-signature']}`
  expect(findReason('1a2b', Buffer.from(`${signed.body}\n`), signature)).toMatch(/^The (.*\. ){2}Also \w+\.$/)
})

it('--fail answers by the script, then normally', async () => {
  const { url, lines } = await listen(['--fail', '2x503,reset,1xtimeout,1xslow:20,close'])
  const leaving = new AbortController()

  const refused = [await post(url, signed), await post(url, signed)]
  await expect(post(url, signed)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
  const posted = post(url, { ...signed, signal: leaving.signal })
  await lines(4)
  leaving.abort()
  await expect(posted).rejects.toMatchObject({ name: 'AbortError' })
  const slow = await post(url, signed)
  await expect(post(url, signed)).rejects.toThrow()
  const last = await post(url, signed)

  expect([...refused, slow, last]).toEqual([503, 503, 200, 200])
  const shown = (await lines(7)).map((line) => line.replace(/^.* B {2}(\S+) +(\d+) ms {2}not verified(.*)$/, '$1$3'))
  const failed = (status: string, step: string) => `${status}  --fail: ${step}.`
  expect(shown).toEqual([
    ...[failed('503', '503'), failed('503', '503'), failed('---', 'reset'), failed('---', 'timeout')],
    ...['200', failed('---', 'close'), '200'],
  ])
})

it.each(['', '3y500', '0x500', '600', 'slow:', 'constructor', '9999999x500'])('--fail refuses %j', (text) => {
  expect(() => failScript(text)).toThrow(`'${text}'`)
})

it('a request that Ctrl-C cuts off is kept', async () => {
  const cwd = await createFolder()
  const { url, interrupt, ended } = await listen(['--fail', '1xslow:60000'], { ...withSecret, cwd })
  const { text } = await send(url, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
  await until(() => text().includes('100 Continue'))
  interrupt()
  expect(await ended).toMatchObject({ code: 0, stdout: like(/ --- /) })
  expect(read(cwd)).toMatchObject([{ method: 'POST', isComplete: false }])
})

it('--forward passes on the identical bytes and the end-to-end headers, and answers what the other answers', async () => {
  const other = await serve((_request, response) => {
    const cookies = { 'set-cookie': ['a=1', 'b=2'], connection: 'x-gone', 'x-gone': '1' }
    response.writeHead(302, { location: '/elsewhere', ...cookies, 'x-kept': '2' }).end('see there')
  })
  const { url, lines, printed } = await listen(['--forward', `${other.url}/?source=shop`], withSecret)
  const body = Buffer.from([0xff, 0xfe, 0x00, 0x7b, 0x0d, 0x0a])
  const kept = ['X-Signature: no', 'x-TWICE: 1', 'X-Twice: 2', 'Authorization: Basic eA==']
  const hops = ['TE: trailers', 'Keep-Alive: 5', 'Connection: keep-alive, X-Hop', 'X-Hop: 1']
  const head = ['PUT /webhooks?x=1 HTTP/1.1', 'Host: sender.example', ...kept, ...hops, 'Transfer-Encoding: chunked']

  const { text } = await send(url, `${head.join('\r\n')}\r\n\r\n6\r\n`, body, '\r\n0\r\n\r\n')
  await until(() => text().includes('see there'))

  expect(text()).toMatch(/^HTTP\/1.1 302 Found\r\n/)
  expect(text()).toMatch(/set-cookie: a=1\r\nset-cookie: b=2\r\nx-kept: 2\r\n/)
  expect(text()).not.toContain('x-gone')
  const own = ['host', new URL(other.url).host, 'connection', 'keep-alive', 'content-length', '6']
  const headers = [...kept.flatMap((line) => line.split(': ')), ...own]
  expect(other.requests).toMatchObject([{ method: 'PUT', target: '/?source=shop', body }])
  expect(other.requests[0]?.headers.toSorted()).toEqual(headers.toSorted())
  expect((await lines(1))[0]).toMatch(/ 302 .* not verified: /)
  expect(printed.stderr).toContain(`${other.url}/. `)
})

it('--forward keeps the path for a URL without one, and passes on a compressed answer as it is', async () => {
  const zipped = gzipSync('{"ok":true}')
  const other = await serve((_request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': String(zipped.length) }).end(zipped)
  })
  const { url } = await listen(['--forward', other.url])
  const { socket, text } = await send(url, 'GET /a/b?c=d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await once(socket, 'end')
  expect(text().split('\r\n\r\n').slice(1).join('\r\n\r\n')).toBe(zipped.toString('latin1'))
  expect(other.requests).toMatchObject([{ target: '/a/b?c=d' }])
})

it.each([
  ['connection', 502],
  ['timeout', 504],
  [undefined, 201],
] as const)('--forward answers for an endpoint without an answer, and keeps 64 KB: %s, %i', async (error, status) => {
  const kept: KeptRequest[] = []
  const own = error === undefined ? { status } : { error, reason: 'Got none.' }
  const answer = { headers: [], body: Buffer.alloc(70_000), durationMs: 1, ...own }
  const forwarder = { forward: async () => answer, close: async () => {} } as unknown as Forwarder
  const { server } = createEndpoint({ forwarder, keep: (request) => void kept.push(request) })
  expect(await post(await listenHere(server), signed)).toBe(status)
  expect(kept).toMatchObject([{ answer: { status, by: 'forward' } }])
  const { length } = JSON.stringify({ status, detail: own.reason })
  expect(kept[0]?.answerBody).toHaveLength(error === undefined ? 65_536 : length)
})

it('the store is for this user alone, is shared, and is made again when it was removed', needs('POSIX'), async () => {
  const cwd = await createFolder()
  const { url, end } = await listen([], { cwd })
  const folder = join(cwd, '.hookline')

  await post(url, signed)
  const other = createStore(join(folder, 'listen.sqlite'))
  const names = ['', '.gitignore', 'listen.sqlite', 'listen.sqlite-shm', 'listen.sqlite-wal']
  const modes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).mode & 0o777))
  other.append(keptRequest('aaaa00000001'))
  const both = other.list(9)
  other.close()
  const ignored = await readFile(join(folder, '.gitignore'), 'utf8')
  await rm(folder, { recursive: true })
  await post(url, page)
  const kept = read(cwd)
  await rm(folder, { recursive: true })
  await writeFile(folder, 'no folder')
  for (const request of [page, page]) await post(url, request)
  const { stderr } = await end()

  expect([...modes, ignored]).toEqual([0o700, 0o600, 0o600, 0o600, 0o600, '*\n'])
  expect(both).toHaveLength(2)
  const received = { receivedAt: expect.closeTo(Date.now(), -5), headers: expect.arrayContaining(['x-signature']) }
  const type = ['content-type', 'application/json', 'content-length', '11']
  const answer = { status: 200, headers: type, by: 'listen', durationMs: expect.any(Number) } as const
  const bodies = { body: new Uint8Array(page.bytes), answerBody: new Uint8Array(Buffer.from('{"ok":true}')) }
  const facts = { verification: 'unchecked', message: { type: 'page', user: 'user-1' }, answer } as const
  expect(kept).toEqual([keptRequest(like(/^[0-9a-f]{12}$/), { ...received, ...bodies, ...facts })])
  expect(stderr).toMatch(/^.*\n.* not stored\. .*\n4 requests received, 2 not stored\.\n$/)
})

it('a port that is taken is wrong usage', async () => {
  const { port } = new URL(await listenHere(http.createServer()))
  expectUsage(await hookline(['listen', '--port', port], { cwd: await createFolder() }), '--port', port)
})

it.each([
  ['another database', 'CREATE TABLE orders (id)', 'another database'],
  ['a newer store', 'PRAGMA user_version = 99', 'version 99'],
  ['a store with a trigger', 'CREATE TRIGGER t AFTER INSERT ON requests BEGIN SELECT 1; END', 'other tables'],
])('a store that is %s is wrong usage', async (what, sql, found) => {
  const path = join(await createFolder(), 'x.sqlite')
  if (what !== 'another database') createStore(path).close()
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
  expectUsage(await hookline(['listen', '--store', path]), path, found)
  await expect(stat(`${path}-wal`)).rejects.toThrow('ENOENT')
})

async function listen(args: readonly string[] = [], running: Running = {}) {
  const started = await start(['listen', '--port', '0', ...args], { cwd: await createFolder(), ...running })
  const { printed, ended, interrupt } = started
  return {
    ...started,
    url: await urlOf(started),
    async lines(count: number) {
      await until(() => printed.stdout.split('\n').length > count)
      return printed.stdout.split('\n').slice(0, -1)
    },
    end() {
      interrupt()
      return ended
    },
  }
}

function read(folder: string): readonly KeptRequest[] {
  const store = openStore(join(folder, '.hookline/listen.sqlite'))
  onTestFinished(() => store.close())
  return [...store.readNewest()]
}

async function post(url: string, request: object): Promise<number> {
  const answer = await fetch(url, { ...request, redirect: 'manual' })
  await answer.arrayBuffer()
  return answer.status
}

async function send(url: string, ...chunks: readonly (string | Buffer)[]) {
  const { hostname, port } = new URL(url)
  const socket = net.connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => (text += chunk))
  socket.on('error', () => {})
  await once(socket, 'connect')
  for (const chunk of chunks) socket.write(chunk)
  return { socket, text: () => text }
}

async function serve(answer: http.RequestListener) {
  const requests: Pick<KeptRequest, 'method' | 'target' | 'headers' | 'body'>[] = []
  const server = http.createServer(async (request, response) => {
    const { method = '', url: target = '', rawHeaders: headers } = request
    requests.push({ method, target, headers, body: await buffer(request) })
    answer(request, response)
  })
  return { url: await listenHere(server), requests }
}
