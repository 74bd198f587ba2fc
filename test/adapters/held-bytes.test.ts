/** What a request that is answered at its deadline leaves behind: no bytes, and no open stream. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { hosts } from '../support/hosts.ts'

const COUNT = 20
const LENGTH = 500_000
const PART = 400_000
const headers = {
  'content-type': 'application/json',
  'x-signature': 'f'.repeat(40),
  'content-length': `${LENGTH}`,
}

let server: ChildProcess
let ports: readonly (number | null)[]

beforeAll(async () => {
  server = fork(fileURLToPath(new URL('server.ts', import.meta.url)), { execArgv: ['--expose-gc'] })
  ;[ports] = (await once(server, 'message')) as [typeof ports]
}, 30_000)
afterAll(() => void server.kill('SIGKILL'))

async function ask(question: string | object): Promise<number> {
  server.send(question)
  const [held] = (await once(server, 'message')) as [number]
  return held
}

/** Asks again after a pause: the server collects garbage for each question, and reads little between two. */
async function untilHeld(isRight: (bytes: number) => boolean): Promise<void> {
  while (!isRight(await ask('held'))) await new Promise((resolve) => setTimeout(resolve, 50))
}

describe.each(hosts.map(({ name, http }, index) => ({ name, version: http, index })))('$name', ({ version, index }) => {
  it.each([
    ['that are forged, while the secret provider hangs', LENGTH],
    ['that are unfinished', PART],
  ])(
    'forgets the bodies %s',
    async (_which, size) => {
      const before = await ask('held')
      const isWhole = size === LENGTH
      const uploads = version === undefined ? undefined : upload(version, Number(ports[index]), size)
      if (uploads === undefined) {
        const list = Array.from({ length: COUNT }, () => ({ headers, size, isWhole }))
        await ask(isWhole ? list : list.map((each) => ({ ...each, headers: { ...headers } })))
      }
      await untilHeld((held) => held - before > COUNT * size - 1000)
      await ask('expire')
      await untilHeld((held) => held - before < size)
      if (uploads === undefined) return
      expect(await Promise.all(uploads.map(({ status }) => status))).toEqual(uploads.map(() => 503))
      // The server ends them, while the client would go on.
      if (version === 2 || !isWhole) await Promise.all(uploads.map(({ closed }) => closed))
    },
    30_000,
  )
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
