/** What servers send beside a response, on real sockets: informational responses, and bytes without an end. */

import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { openSender, serveBytes } from './set-up.ts'

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'

/** Writes these bytes again and again to the end of the connection, and returns how many it wrote. */
async function serveEndless(start: string, piece: string) {
  let written = 0
  const chunk = Buffer.from(piece.repeat(Math.ceil(16_384 / piece.length)))
  const { url, sockets } = await serveBytes((socket) => {
    const write = (): void => {
      written += chunk.length
      if (!socket.destroyed) socket.write(chunk, write)
    }
    socket.write(start, write)
  })
  return { url, sockets, written: () => written }
}

function open(url: string) {
  const sender = openSender({ webhooks: [{ url }] })
  return async () => (await sender.delete({ userId: 'user-1' })).attempts[0]
}

describe('informational responses', () => {
  it('are skipped, and the connection is used again', async () => {
    const { url, sockets } = await serveBytes((socket) => {
      socket.write(HINTS)
      setImmediate(() => socket.write(OK))
    })
    const attempt = open(url)
    for (let index = 0; index < 3; index++) expect(await attempt()).toMatchObject({ ok: true, status: 200, body: 'ok' })
    expect(sockets.length).toBeLessThan(3)
  })

  it.each([
    ['100 Continue', `HTTP/1.1 100 Continue\r\n\r\n${OK}`],
    ['101 Switching Protocols', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n'],
  ])('%s, which was not asked for, is an error that says so', async (name, response) => {
    const { url } = await serveBytes((socket) => socket.write(response))
    expect(await open(url)()).toMatchObject({ error: 'unexpected_continue', reason: expect.stringContaining(name) })
  })
})

describe('bytes without an end', () => {
  const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

  it.each([
    ['informational responses', '', HINTS],
    ['one informational head', 'HTTP/1.1 103 Early Hints\r\n', 'link: </a>\r\n'],
    ['the text of a status', 'HTTP/1.1 200 ', 'OK '],
    ['chunk extensions', CHUNKED, `1;a=${'a'.repeat(1_000)}\r\nx\r\n`],
    ['the size of a chunk', CHUNKED, '0'],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'name: value\r\n'],
    ['trailers', `${CHUNKED}0\r\n`, 'name: value\r\n'],
  ])('%s: the attempt fails at once, and the connection is closed', async (_name, start, piece) => {
    const { url, sockets, written } = await serveEndless(start, piece)
    const reason = expect.stringMatching(/must be short/)
    expect(await open(url)()).toMatchObject({ ok: false, error: 'http', reason })
    await until(() => sockets[0]?.closed === true)
    expect(written()).toBeLessThan(8 * 1024 * 1024) // What the buffers of two sockets take, and not more.
  })

  it('are read to 64 KiB at most where they are a body, of which 256 are quoted', async () => {
    const { url, sockets, written } = await serveEndless('HTTP/1.1 202 OK\r\n\r\n', 'x')
    expect(await open(url)()).toMatchObject({ ok: true, status: 202, body: 'x'.repeat(256) })
    await until(() => sockets[0]?.closed === true)
    expect(written()).toBeLessThan(8 * 1024 * 1024)
  })

  it('are counted anew for each request of a connection', async () => {
    const body = 'x'.repeat(60_000)
    const { url, sockets } = await serveBytes((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
    )
    const attempt = open(url)
    for (let index = 0; index < 40; index++) expect(await attempt()).toMatchObject({ ok: true, status: 200 })
    expect(sockets.length).toBeLessThan(3)
  })

  it('are not the framing of a body in the smallest chunks', async () => {
    const { url } = await serveBytes((socket) => socket.write(`${CHUNKED}${'1\r\nx\r\n'.repeat(65_536)}0\r\n\r\n`))
    expect(await open(url)()).toMatchObject({ ok: true, status: 200 })
  })
})
