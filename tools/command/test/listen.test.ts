/** `hookline listen`. */

import { once } from 'node:events'
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { signedRequest } from '../../../src/testing/signed-request.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { createStore, openStore } from '../src/request-store.ts'
import { createForwarder } from '../src/requests/forward.ts'
import { failScript } from '../src/requests/listen/endpoint.ts'
import { createFolder, hookline, listenHere, type Ran, type Running, type Started, start } from './command.ts'

const secret = 'a secret'
const withSecret = { env: { HOOKLINE_SECRET: secret } }

describe('what it shows and answers', () => {
  it('shows a line a request: whether it is verified, and why not', needs('POSIX'), async () => {
    const { url, lines, end } = await listen([], withSecret)
    const right = signedRequest(fixtures.track, secret)
    expect(await post(url, right)).toBe(200)
    expect(await post(url, { ...right, body: `${right.body}\n` })).toBe(401)
    expect(await post(url, { method: 'POST', body: right.body })).toBe(401)
    expect(await post(url, signedRequest(fixtures.group, secret))).toBe(200)

    const shown = await lines(4)
    const bytes = right.body.length
    expect(shown).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          new RegExp(
            `^\\d\\d:\\d\\d:\\d\\d  [0-9a-f]{8}  POST /webhooks  track +Order Completed  user-1 +${bytes} B  200 +\\d+ ms  verified$`,
          ),
        ),
        expect.stringMatching(
          /401 .* not verified: The body must be the bytes that were signed. Got (white space|a line break)/,
        ),
        expect.stringMatching(/401 .* not verified: The request has no signature\. Set /),
        expect.stringMatching(/ group +group-1 .* verified$/),
      ]),
    )
    const { code, stderr } = await end()
    expect(stderr).toMatch(/\n4 requests came, 2 verified, 2 not.\n$/)
    expect(stderr).not.toContain(secret)
    expect(code).toBe(0)
  })

  it('verifies nothing without a secret, and answers any method and path', async () => {
    const { url, lines, printed } = await listen()
    expect(printed.stderr).toContain('Nothing is verified: no secret was passed.')
    expect(await post(`${new URL('/anything?token=t0ken', url)}`, { method: 'PUT', body: '{"type":"track"}' })).toBe(
      200,
    )
    expect(await post(url, { method: 'GET' })).toBe(200)
    const [put, get] = await lines(2)
    expect(put).toMatch(/PUT \/anything\?… .* 200 .* not verified {2}No message: `userId` must be a non-empty string/)
    expect(put).not.toContain('t0ken')
    expect(get).toMatch(/GET \/webhooks .* 0 B {2}200 .* not verified$/)
  })

  it('shows a request without a Host', async () => {
    const { url, lines } = await listen()
    const socket = await connect(url)
    socket.write('POST /bare HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}')
    expect((await lines(1))[0]).toContain('POST /bare')
  })

  it('escapes what strangers sent', needs('util-linux'), async () => {
    const { url, lines } = await listen([], { isTerminal: true, env: { NO_COLOR: '1' } })
    const event = '\u001b]0;owned\u0007\u202egnp\r\nx\u2028'
    await post(url, { method: 'POST', body: JSON.stringify({ type: 'track\u001b[2J', event, userId: '\u009b31m' }) })
    const [line = ''] = await lines(1)
    expect(line).toContain('\\u{1b}]0;owned\\u{7}\\u{202e}gnp\\u{d}\\u{a}x\\u{2028}')
    expect(line).toContain('track\\u{1b}[2J')
    expect(line).toContain('\\u{9b}31m')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e\u2028]/)
  })

  it('refuses bodies over the limit, and shows uploads that end early', async () => {
    const { url, lines } = await listen()
    expect(await post(url, { method: 'POST', body: Buffer.alloc(5_000_001) })).toBe(413)
    const chunked = { method: 'POST', body: new Blob([Buffer.alloc(5_000_001)]).stream(), duplex: 'half' }
    expect(await post(url, chunked as RequestInit)).toBe(413)
    const socket = await connect(url)
    socket.write('POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this')
    socket.end()
    const shown = await lines(3)
    expect(shown[0]).toMatch(/ 5000001 B {2}413 /)
    expect(shown[1]).toMatch(/ 5000001 B {2}413 /)
    expect(shown[2]).toMatch(/ 9 B {2}--- .* The upload ended early\.$/)
  })

  it('answers pipelined requests in order', async () => {
    const { url } = await listen()
    const socket = await connect(url)
    const request = (path: string): string => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`
    socket.write(request('/1') + request('/2') + request('/3'))
    await until(() => socket.text().split('HTTP/1.1 200 OK').length === 4)
  })

  it('says that what came is not HTTP, and why', async () => {
    const { url, printed } = await listen()
    const socket = await connect(url)
    socket.write(Buffer.from([0x16, 0x03, 0x01, 0x00, 0xa5, 0x01, 0x00]))
    await until(() =>
      /no complete HTTP request came \(HPE_\w+\)\. The sender uses https: give it the URL with http\./.test(
        printed.stderr,
      ),
    )
  })

  it('ends quietly when what reads its lines ends', async () => {
    const { url, child, ended, printed } = await listen()
    await post(url, signedRequest(fixtures.track, secret))
    await until(() => printed.stdout.includes('\n'))
    child.stdout?.destroy()
    await post(url, signedRequest(fixtures.track, secret))
    expect(await ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Listening on .*\n$/) })
  })
})

describe('--fail', () => {
  it('answers by the script, then normally', async () => {
    const { url, lines } = await listen(['--fail', '2x503,reset,1xtimeout,1xslow:200,close'])
    const request = signedRequest(fixtures.track, secret)
    expect([await post(url, request), await post(url, request)]).toEqual([503, 503])
    await expect(post(url, request)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    const leaving = new AbortController()
    const posted = post(url, { ...request, signal: leaving.signal })
    await lines(4)
    leaving.abort()
    await expect(posted).rejects.toMatchObject({ name: 'AbortError' })
    const started = performance.now()
    expect(await post(url, request)).toBe(200)
    expect(performance.now() - started).toBeGreaterThan(190)
    await expect(post(url, request)).rejects.toThrow()
    expect(await post(url, request)).toBe(200)
    const shown = (await lines(7)).map((line) => line.replace(/^.* B {2}(\S+) +\d+ ms {2}not verified(.*)$/, '$1$2'))
    const [status, reset, timeout, close] = [
      '503  --fail: 503.',
      '---  --fail: reset.',
      '---  --fail: timeout.',
      '---  --fail: close.',
    ]
    expect(shown).toEqual([status, status, reset, timeout, '200', close, '200'])
  })

  it.each(['', '3y500', '0x500', '600', '100', 'slow', 'slow:', 'constructor', '500,,500', '9999999x500'])(
    'refuses %j',
    (text) => {
      expect(() => failScript(text)).toThrow(/is no step. Steps are a status .* 3x500,1xtimeout,2xreset,1xslow:3000\.$/)
    },
  )
})

it('keeps a request that a Ctrl-C cuts off', needs('POSIX'), async () => {
  const folder = await createFolder()
  const { url, end } = await listen(['--fail', '1xslow:9000'], { ...withSecret, cwd: folder })
  const posted = post(url, { ...signedRequest(fixtures.track, 'another secret') }).catch(() => 'cut off')
  await delay(300)
  const { code, stdout, stderr } = await end()
  expect(await posted).toBe('cut off')
  expect(stdout).toMatch(/^.* --- .* not verified: The signature does not match.*\n$/)
  expect(stderr).toMatch(/\n1 request came, 0 verified, 1 not\.\n$/)
  expect(code).toBe(0)
  expect((await hookline(['list'], { cwd: folder })).stdout).toContain(stdout)
})

describe('--forward', () => {
  it('passes on the identical bytes and the end-to-end headers, and answers what the other answers', async () => {
    const other = await serve((_request, response) => {
      const headers = {
        location: '/elsewhere',
        'set-cookie': ['a=1', 'b=2'],
        connection: 'x-gone',
        'x-gone': '1',
        'x-kept': '2',
      }
      response.writeHead(302, headers).end('see there')
    })
    const { url, lines } = await listen(['--forward', `${other.url}/hooks?source=shop`], withSecret)
    const body = Buffer.from([0xff, 0xfe, 0x00, 0x7b, 0x0d, 0x0a])
    const socket = await connect(url)
    socket.write(
      'PUT /webhooks?x=1 HTTP/1.1\r\nHost: sender.example\r\nX-Signature: no\r\nx-TWICE: 1\r\nX-Twice: 2\r\n',
    )
    socket.write(
      'TE: trailers\r\nKeep-Alive: 5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\n',
    )
    socket.write(
      Buffer.concat([Buffer.from('Authorization: Basic eA==\r\n\r\n6\r\n'), body, Buffer.from('\r\n0\r\n\r\n')]),
    )
    await until(() => socket.text().includes('see there'))
    expect(socket.text()).toMatch(/^HTTP\/1.1 302 Found\r\n/)
    expect(socket.text()).toMatch(/x-kept: 2\r\n/)
    expect(socket.text()).toMatch(/set-cookie: a=1\r\nset-cookie: b=2\r\n/)
    expect(socket.text()).not.toContain('x-gone')
    const [request] = other.requests
    expect(request).toMatchObject({ method: 'PUT', target: '/hooks?source=shop', body })
    const passed = ['X-Signature', 'no', 'x-TWICE', '1', 'X-Twice', '2', 'Authorization', 'Basic eA==']
    const own = ['host', new URL(other.url).host, 'connection', 'keep-alive', 'content-length', '6']
    expect(request?.headers.toSorted()).toEqual([...passed, ...own].toSorted())
    expect((await lines(1))[0]).toMatch(/ 302 .* not verified: /)
    expect(other.requests).toHaveLength(1)
  })

  it.each([
    'keep-alive',
    'proxy-authenticate',
    'proxy-authorization',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'host',
    'content-length',
    'expect',
  ])('passes %s of a request not on: it is for one connection', async (name) => {
    const other = await serve((_request, response) => void response.end('{}'))
    const { forward, close } = createForwarder(new URL(other.url))
    onTestFinished(close)
    const request = { method: 'POST', target: '/', headers: [name, 'mine', 'x-kept', '1'], body: Buffer.from('{}') }
    await forward(request, new AbortController().signal)
    expect(other.requests[0]?.headers).toContain('x-kept')
    expect(other.requests[0]?.headers).not.toContain('mine')
  })

  it('passes on an answer without a body, and one that is compressed', async () => {
    const zipped = gzipSync('{"ok":true}')
    const other = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': String(zipped.length) }).end(zipped)
    })
    const { url, lines } = await listen(['--forward', other.url])
    const socket = await connect(url)
    socket.write('HEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await once(socket, 'end')
    const [, head = '', get = ''] = socket.text().split('HTTP/1.1 200 OK\r\n')
    expect(head).toContain(`content-length: ${zipped.length}\r\n`)
    expect(head).toMatch(/\r\n\r\n$/)
    expect(get.slice(get.indexOf('\r\n\r\n') + 4)).toBe(zipped.toString('latin1'))
    expect(await lines(2)).toHaveLength(2)
  })

  it('keeps the path of each request for a URL without one', async () => {
    const other = await serve((_request, response) => response.end())
    const { url } = await listen(['--forward', other.url])
    await post(`${new URL('/a/b?c=d', url)}`, { method: 'POST', body: '{}' })
    expect(other.requests).toMatchObject([{ target: '/a/b?c=d' }])
  })

  it('answers 502 for an endpoint that cannot be reached, and 504 for one that does not answer', async () => {
    const other = await serve(() => {})
    const [silent, away] = await Promise.all([
      listen(['--forward', other.url]),
      listen(['--forward', 'http://127.0.0.1:1']),
    ])
    const started = performance.now()
    expect(await post(away.url, signedRequest(fixtures.track, secret))).toBe(502)
    expect((await away.lines(1))[0]).toMatch(/ 502 .* The server must accept connections. Got connect ECONNREFUSED/)
    expect(await post(silent.url, signedRequest(fixtures.track, secret))).toBe(504)
    expect(performance.now() - started).toBeGreaterThan(4_900)
    expect((await silent.lines(1))[0]).toMatch(
      / 504 +\d{4,} ms .* The server must respond in time. Got a timeout before a response/,
    )
  })

  it('shows that the sender left while the other endpoint worked', async () => {
    const other = await serve(() => {})
    const { url, lines } = await listen(['--forward', other.url])
    const leaving = new AbortController()
    const posted = post(url, { ...signedRequest(fixtures.track, secret), signal: leaving.signal })
    await until(() => other.requests.length === 1)
    leaving.abort()
    await expect(posted).rejects.toThrow()
    expect((await lines(1))[0]).toMatch(/ --- .* The sender left before the answer\.$/)
  })
})

describe('the store', () => {
  it('is for this user alone, and shared by several', needs('POSIX'), async () => {
    const folder = await createFolder()
    const [one, other] = await Promise.all([listen([], { cwd: folder }), listen([], { cwd: folder })])
    const request = signedRequest(fixtures.track, secret)
    await Promise.all(Array.from({ length: 20 }, (_, index) => post(index % 2 ? one.url : other.url, request)))
    await Promise.all([one.lines(10), other.lines(10)])
    const store = join(folder, '.hookline')
    expect((await stat(store)).mode & 0o777).toBe(0o700)
    const files = (await readdir(store)).filter((name) => name.startsWith('listen.sqlite')).sort()
    expect(files).toEqual(['listen.sqlite', 'listen.sqlite-shm', 'listen.sqlite-wal'])
    for (const name of files) expect((await stat(join(store, name))).mode & 0o777).toBe(0o600)
    const { stdout } = await hookline(['list'], { cwd: folder })
    expect(stdout.match(/\n/g)).toHaveLength(20)
    await Promise.all([one.end(), other.end()])
  })

  it('is made again when it was removed', needs('POSIX'), async () => {
    const folder = await createFolder()
    const { url, lines } = await listen([], { cwd: folder })
    await post(url, signedRequest(fixtures.track, secret))
    await lines(1)
    await rm(join(folder, '.hookline'), { recursive: true, maxRetries: 9 })
    await post(url, signedRequest(fixtures.page, secret))
    await lines(2)
    const { stdout } = await hookline(['list'], { cwd: folder })
    expect(stdout).toMatch(/^.* page .*\n$/)
  })
})

it('says what is wrong in one sentence, and exit code 2', async () => {
  const folder = await createFolder()
  const { port } = new URL(await listenHere(http.createServer()))
  await writeFile(join(folder, 'text.sqlite'), 'a text '.repeat(1_000))
  createStore(join(folder, 'prepared.sqlite')).close()
  createStore(join(folder, 'newer.sqlite')).close()
  for (const [name, sql] of [
    ['other.sqlite', 'CREATE TABLE orders (id)'],
    ['newer.sqlite', 'PRAGMA user_version = 99'],
    ['prepared.sqlite', 'CREATE TRIGGER copies AFTER INSERT ON requests BEGIN DELETE FROM requests; END'],
  ] as const) {
    const database = new DatabaseSync(join(folder, name))
    database.exec(sql)
    database.close()
  }
  const cases: [args: string[], message: RegExp][] = [
    [['--port', port], /^error: --port must be free\. Got port \d+ of 127\.0\.0\.1, which is in use\. .*\n$/],
    [['--host', '192.0.2.1'], /^error: This process cannot listen on port 4000 of 192\.0\.2\.1\. Got .*\n$/],
    [
      ['--port', '4001', '--forward', 'http://localhost:4001/x'],
      /^error: --forward must be another endpoint than this one, at port 4001\..*\n$/,
    ],
    [['--store', 'other.sqlite'], /^error: The store other\.sqlite cannot be used\. .* Got another database\. .*\n$/],
    [
      ['--store', 'newer.sqlite'],
      /^error: The store newer\.sqlite .* Got version 99\. .* the Hookline that wrote it\.\n$/,
    ],
    [['--store', 'prepared.sqlite'], /^error: The store prepared\.sqlite .* Got other tables\. .*\n$/],
    [['--store', 'text.sqlite'], /^error: The store text\.sqlite .* Got 'file is not a database'\. .*\n$/],
    [['--store', 'none/x.sqlite'], /^error: The store none\/x\.sqlite .* Got 'ENOENT: .* pass another path\.\n$/],
    [['--host', ''], /^error: --host is empty\. .*\n$/],
    [
      ['--forward', 'localhost'],
      /^error: The URL must begin with http:.* Got localhost\. Pass http:\/\/localhost\.\n$/,
    ],
    [['--fail', '3y'], /'3y' is no step\. Steps are/],
  ]
  const runs = await Promise.all(cases.map(([args]) => hookline(['listen', ...args], { cwd: folder })))
  expect(runs).toEqual(cases.map(([, message]) => ({ code: 2, stdout: '', stderr: expect.stringMatching(message) })))
  expect(await readdir(folder)).not.toContain('other.sqlite-wal')
})

describe('under load', () => {
  const count = 1_000

  it('on a terminal, says how many lines it left out', { ...needs('util-linux'), timeout: 60_000 }, () => load(true))
  it('in a pipe, prints every line', { ...needs('POSIX'), timeout: 60_000 }, () => load(false))

  async function load(isTerminal: boolean): Promise<void> {
    const folder = await createFolder()
    const { url, printed, end } = await listen([], {
      cwd: folder,
      isTerminal,
      env: { ...withSecret.env, NO_COLOR: '1' },
    })
    const request = signedRequest(fixtures.track, secret)
    const started = performance.now()
    const send = async (): Promise<void> => {
      for (let sent = 0; sent < count / 20; sent += 1) await post(url, request)
    }
    await Promise.all(Array.from({ length: 20 }, send))
    const perSecond = Math.round(count / ((performance.now() - started) / 1_000))
    const { stdout, stderr } = await end()
    const text = isTerminal ? stdout : stdout + stderr
    const shown = text.match(/ verified\r?$/gm)?.length ?? 0
    const leftOut = Number(/, (\d+) lines left out/.exec(text)?.[1] ?? 0)
    console.log(
      `listen, ${isTerminal ? 'terminal' : 'pipe'}: ${perSecond} requests/s, ${shown} lines shown, ${leftOut} left out`,
    )
    expect(text).toContain(`${count} requests came, ${count} verified`)
    expect(shown + leftOut).toBe(count)
    expect(leftOut > 0).toBe(isTerminal)
    const store = openStore(join(folder, '.hookline/listen.sqlite'))
    expect(store.list(10_000)).toHaveLength(count)
    store.close()
    expect(printed.stderr).not.toContain('not kept')
  }
})

interface Listening extends Started {
  readonly url: string
  lines(count: number): Promise<readonly string[]>
  end(): Promise<Ran>
}

async function listen(args: readonly string[] = [], running: Running = {}): Promise<Listening> {
  const started = await start(['listen', '--port', '0', ...args], {
    ...running,
    cwd: running.cwd ?? (await createFolder()),
  })
  const { child, printed, ended } = started
  const all = (): string => printed.stderr + printed.stdout
  await until(() => all().includes('Ctrl-C ends.') || child.exitCode !== null)
  const [, origin = ''] = /Listening on (\S+),/.exec(all()) ?? []
  return {
    ...started,
    url: `${origin}/webhooks`,
    async lines(count) {
      const found = (): readonly string[] =>
        printed.stdout.split(/\r?\n/).filter((line) => /^\d\d:\d\d:\d\d /.test(line))
      await until(() => found().length >= count)
      return found()
    },
    async end() {
      if (running.isTerminal) child.stdin?.write('\u0003')
      else child.kill('SIGINT')
      return ended
    },
  }
}

async function post(url: string, request: RequestInit): Promise<number> {
  const answer = await fetch(url, { ...request, redirect: 'manual' })
  await answer.arrayBuffer()
  return answer.status
}

async function connect(url: string): Promise<net.Socket & { text(): string }> {
  const { hostname, port } = new URL(url)
  const socket = net.connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket
    .setEncoding('latin1')
    .on('data', (chunk) => (text += chunk))
    .on('error', () => {})
  await once(socket, 'connect')
  return Object.assign(socket, { text: () => text })
}

interface Seen {
  readonly method: string | undefined
  readonly target: string | undefined
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** An endpoint that is not ours. */
async function serve(answer: http.RequestListener): Promise<{ url: string; requests: Seen[] }> {
  const requests: Seen[] = []
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    requests.push({
      method: request.method,
      target: request.url,
      headers: request.rawHeaders,
      body: Buffer.concat(chunks),
    })
    answer(request, response)
  })
  return { url: await listenHere(server), requests }
}
