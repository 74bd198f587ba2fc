/** What the reason of a failed attempt advises helps: each test follows the advice. */

import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createSender } from '../../src/send/create-sender.ts'
import type { SenderOptions } from '../../src/send/sender-options.ts'
import { startEndpoint } from '../../src/testing.ts'
import { AUTHORITY, certify, createParty, keyOf, namesOf, serveTls } from '../support/certificates.ts'

async function attempt(url: string, options: Omit<SenderOptions, 'webhooks'> = {}) {
  const sender = createSender({ webhooks: [{ url }], ...options })
  const { attempts } = await sender.delete({ userId: 'user-1' })
  await sender.close()
  return attempts[0]
}

const delivered = { ok: true, status: 200 }
const advises = (error: string, ...parts: readonly string[]) => ({
  ok: false,
  error,
  reason: expect.stringMatching(new RegExp(parts.join('.*'))),
})

describe('a certificate', () => {
  const authority = createParty('Authority')
  const ca = certify(authority, authority, { extensions: AUTHORITY })
  const party = createParty('localhost')
  const key = keyOf(party)
  const good = { key, cert: certify(party, authority) }

  test('that is self-signed: install one of an authority', async () => {
    const { url, server } = await serveTls({ key, cert: certify(party, party) })
    expect(await attempt(url, { ca })).toMatchObject(advises('self_signed', 'Install a certificate of an authority'))
    server.setSecureContext(good)
    expect(await attempt(url, { ca })).toMatchObject(delivered)
  })

  test('of an unknown authority: pass `ca`', async () => {
    const { url } = await serveTls(good)
    expect(await attempt(url)).toMatchObject(
      advises('tls', 'an unknown authority', 'pass the certificate of its root as `ca`'),
    )
    expect(await attempt(url, { ca })).toMatchObject(delivered)
  })

  test('without the intermediate certificate: install that as well', async () => {
    const intermediate = createParty('Intermediate')
    const cert = certify(party, intermediate)
    const { url, server } = await serveTls({ key, cert })
    expect(await attempt(url, { ca })).toMatchObject(advises('tls', 'Is an intermediate certificate missing'))
    server.setSecureContext({ key, cert: cert + certify(intermediate, authority, { extensions: AUTHORITY }) })
    expect(await attempt(url, { ca })).toMatchObject(delivered)
  })

  test('that has expired: renew it', async () => {
    const { url, server } = await serveTls({ key, cert: certify(party, authority, { until: '20010101000000Z' }) })
    expect(await attempt(url, { ca })).toMatchObject(
      advises('tls', 'Got a certificate that has expired. Renew it at the server'),
    )
    server.setSecureContext(good)
    expect(await attempt(url, { ca })).toMatchObject(delivered)
  })

  test('for another host: use a host that it names, or install one for this host', async () => {
    const { url, port, server } = await serveTls(good)
    const byAddress = `https://127.0.0.1:${port}/`
    expect(await attempt(byAddress, { ca })).toMatchObject(advises('tls', 'Use a host that the certificate names, or'))
    expect(await attempt(url, { ca })).toMatchObject(delivered)
    server.setSecureContext({ key, cert: certify(party, authority, { extensions: [namesOf('other.example')] }) })
    expect(await attempt(url, { ca })).toMatchObject(
      advises('tls', 'DNS:other.example', 'install a certificate for this'),
    )
    server.setSecureContext(good)
    expect(await attempt(url, { ca })).toMatchObject(delivered)
  })

  test('that TLS does not accept: replace it', async () => {
    const { url, server } = await serveTls({ key, cert: certify(party, authority, { digest: 'sha1' }) })
    expect(await attempt(url, { ca })).toMatchObject(advises('tls', 'too weak. Replace it at the server'))
    server.setSecureContext(good)
    expect(await attempt(url, { ca })).toMatchObject(delivered)
  })
})

test('https:// to a server without TLS, and http:// to one with it: correct the scheme', async () => {
  const plain = await startEndpoint()
  onTestFinished(() => plain.close())
  expect(await attempt(plain.url.replace('http:', 'https:'))).toMatchObject(
    advises('tls', 'Check that the server speaks https'),
  )
  expect(await attempt(plain.url)).toMatchObject(delivered)

  const secure = await startEndpoint({ tls: 'private_ca' })
  onTestFinished(() => secure.close())
  expect(await attempt(secure.url.replace('https:', 'http:'))).toMatchObject(
    advises('reset', 'check that it does not expect TLS'),
  )
  expect(await attempt(secure.url, { ca: secure.ca })).toMatchObject(delivered)
})

test('a server that does not run: start it', async () => {
  const first = await startEndpoint()
  await first.close()
  expect(await attempt(first.url)).toMatchObject(advises('refused', 'ECONNREFUSED', 'Start it'))
  const second = await startEndpoint({ port: Number(new URL(first.url).port) })
  onTestFinished(() => second.close())
  expect(await attempt(first.url)).toMatchObject(delivered)
})

test('a private address: allow it', async () => {
  const { url, close } = await startEndpoint()
  onTestFinished(() => close())
  expect(await attempt(url, { allowPrivateAddresses: false })).toMatchObject(
    advises('private_address', 'set `allowPrivateAddresses` to true'),
  )
  expect(await attempt(url, { allowPrivateAddresses: true })).toMatchObject(delivered)
})

test('a server that works before it responds: let it respond first', async () => {
  let respondsFirst = false
  const server = createServer((request, response) => {
    request.resume()
    if (respondsFirst) response.end()
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  expect(await attempt(url, { timeoutMs: 100 })).toMatchObject(
    advises('timeout', 'let it respond before it does slow work'),
  )
  respondsFirst = true
  expect(await attempt(url)).toMatchObject(delivered)
})

test('a `100 Continue` that was not asked for: turn it off', async () => {
  let isOff = false
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    const start = isOff ? '' : 'HTTP/1.1 100 Continue\r\n\r\n'
    socket.once('data', () => socket.end(`${start}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  expect(await attempt(url)).toMatchObject(advises('unexpected_continue', '`100 Continue`', 'Turn that off'))
  isOff = true
  expect(await attempt(url)).toMatchObject(delivered)
})
