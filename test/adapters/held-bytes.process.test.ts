/** What a request that is answered at its deadline leaves behind: no bytes, and no open stream. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { hosts } from '../support/hosts.ts'

const COUNT = 10
const LENGTH = 500_000
const PART = 400_000
const headers = { 'content-type': 'application/json', 'x-signature': 'f'.repeat(40), 'content-length': `${LENGTH}` }

let server: ChildProcess
let ports: readonly (number | null)[]
/** What the server holds by itself. */
let idle: number

beforeAll(async () => {
  server = fork(fileURLToPath(new URL('server.ts', import.meta.url)), { execArgv: ['--expose-gc'] })
  ;[ports] = (await once(server, 'message')) as [typeof ports]
  idle = await ask('held')
}, 60_000)
afterAll(() => void server.kill('SIGKILL'))

async function ask(question: string | object): Promise<number> {
  server.send(question)
  const [held] = (await once(server, 'message')) as [number]
  return held
}

/** Asks again after a pause: the server collects garbage for each question, and reads little between two. */
async function until(isRight: (held: number) => boolean, question: 'held' | 'expire', signal: AbortSignal) {
  while (!signal.aborted && !isRight((await ask(question)) - idle)) await new Promise((done) => setTimeout(done, 50))
}

const bodies = [
  ['that are forged, while the secret provider hangs', LENGTH],
  ['that are unfinished', PART],
] as const

describe.each(hosts.map(({ name, http }, index) => ({ name, version: http, index })))('$name', ({ version, index }) => {
  for (const [which, size] of bodies) {
    it(`forgets the bodies ${which}`, { timeout: 60_000 }, async ({ signal }) => {
      const isWhole = size === LENGTH
      const uploads = version === undefined ? [] : upload(version, Number(ports[index]), size)
      if (version === undefined) await ask(Array.from({ length: COUNT }, () => ({ headers, size, isWhole })))
      await until((held) => held > COUNT * size - LENGTH / 2, 'held', signal)
      await until((held) => held < LENGTH / 2, 'expire', signal)
      expect(await Promise.all(uploads.map(({ status }) => status))).toEqual(uploads.map(() => 503))
      // The server ends them, while the client would go on.
      if (version === 2 || !isWhole) await Promise.all(uploads.map(({ closed }) => closed))
    })
  }
})

interface Upload {
  readonly status: Promise<number>
  /** Resolves when the server has closed the stream or the connection. Rejects when it was an error that closed it. */
  readonly closed: Promise<unknown>
}

function upload(version: 1 | 2, port: number, size: number): readonly Upload[] {
  return version === 1 ? Array.from({ length: COUNT }, () => uploadHttp1(port, size)) : uploadHttp2(port, size)
}

function uploadHttp1(port: number, size: number): Upload {
  const request = http.request({ port, host: '127.0.0.1', path: '/webhooks', method: 'POST', headers, agent: false })
  request.on('error', () => {})
  onTestFinished(() => void request.destroy())
  const closed = once(request, 'close')
  const status = once(request, 'response').then(([response]) => response.resume().statusCode)
  request.write(Buffer.alloc(size))
  if (size === LENGTH) request.end()
  return { status, closed }
}

function uploadHttp2(port: number, size: number): readonly Upload[] {
  const session = http2.connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  return Array.from({ length: COUNT }, () => {
    const stream = session.request({ ':method': 'POST', ':path': '/webhooks', ...headers }, { endStream: false })
    const closed = once(stream, 'close').then(() => expect(stream.rstCode).toBe(http2.constants.NGHTTP2_NO_ERROR))
    const status = once(stream, 'response').then(([head]) => head[':status'])
    stream.resume().write(Buffer.alloc(size))
    if (size === LENGTH) stream.end()
    return { status, closed }
  })
}
