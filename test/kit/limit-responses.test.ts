/** What servers send beside a response, on real sockets: informational responses, and bytes without an end. */

import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createSender } from '../../src/send/create-sender.ts'
import { until } from '../support/until.ts'

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function serve(respond: (socket: Socket, request: string) => void) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    socket.on('data', (chunk) => respond(socket, chunk.toString()))
  })
  const port = await listen(server)
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  return { url: `http://127.0.0.1:${port}/`, sockets }
}

function open(url: string, ca?: string) {
  const sender = createSender({ webhooks: [{ url }], ...(ca !== undefined && { ca }) })
  onTestFinished(() => sender.close())
  return async () => (await sender.delete({ userId: 'user-1' })).attempts[0]
}

describe('informational responses', () => {
  it.each([
    ['103 Early Hints, and the rest later', [HINTS, OK]],
    ['byte by byte', [...`${HINTS}${OK}`]],
  ])('are skipped: %s', async (_name, pieces) => {
    const { url, sockets } = await serve(async (socket) => {
      socket.setNoDelay(true)
      for (const piece of pieces) {
        socket.write(piece)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
    const attempt = open(url)
    for (let index = 0; index < 3; index++) expect(await attempt()).toMatchObject({ ok: true, status: 200, body: 'ok' })
    expect(sockets.length).toBeLessThan(3)
  })

  it('are only looked for in front of a response: the text of one in a body stays', async () => {
    const text = `${HINTS}${HINTS}`
    const { url } = await serve(async (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n`)
      await new Promise((resolve) => setImmediate(resolve))
      socket.write(text)
    })
    expect(await open(url)()).toMatchObject({ ok: true, body: text })
  })

  it.each([
    ['100 Continue', `HTTP/1.1 100 Continue\r\n\r\n${OK}`],
    ['101 Switching Protocols', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n'],
  ])('%s, which was not asked for, is an error that says so', async (name, response) => {
    const { url } = await serve((socket) => socket.write(response))
    expect(await open(url)()).toMatchObject({ error: 'unexpected_continue', reason: expect.stringContaining(name) })
  })
})

describe('bytes without an end', () => {
  const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

  it.each([
    ['informational responses', '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
    ['one informational head', 'HTTP/1.1 103 Early Hints\r\n', 'link: </a>\r\n'],
    ['the text of a status', 'HTTP/1.1 200 ', 'OK '],
    ['chunk extensions', CHUNKED, `1;a=${'a'.repeat(1_000)}\r\nx\r\n`],
    ['the size of a chunk', CHUNKED, '0'],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'name: value\r\n'],
    ['trailers', `${CHUNKED}0\r\n`, 'name: value\r\n'],
  ])('%s: the attempt fails at once, and the connection is closed', async (_name, start, piece) => {
    let written = 0
    const { url, sockets } = await serve((socket) => {
      const chunk = Buffer.from(piece.repeat(Math.ceil(16_384 / piece.length)))
      const write = (): void => {
        written += chunk.length
        if (!socket.destroyed) socket.write(chunk, write)
      }
      socket.write(start, write)
    })
    expect(await open(url)()).toMatchObject({
      ok: false,
      error: 'http',
      reason: expect.stringMatching(/must be short/),
    })
    await until(() => sockets[0]?.closed === true)
    expect(written).toBeLessThan(8 * 1024 * 1024) // What the buffers of two sockets take, and not more.
  })

  it('are counted anew for each request of a connection', async () => {
    const body = 'x'.repeat(60_000)
    const { url, sockets } = await serve((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
    )
    const attempt = open(url)
    for (let index = 0; index < 40; index++) expect(await attempt()).toMatchObject({ ok: true, status: 200 })
    expect(sockets.length).toBeLessThan(3)
  })

  it('are not the framing of a body in the smallest chunks', async () => {
    const { url } = await serve((socket) => socket.write(`${CHUNKED}${'1\r\nx\r\n'.repeat(65_536)}0\r\n\r\n`))
    expect(await open(url)()).toMatchObject({ ok: true, status: 200 })
  })
})
