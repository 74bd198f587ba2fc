/** Certificates, on the real connections of senders and clients. */

import net from 'node:net'
import tls, { type SecureVersion } from 'node:tls'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ClientOptions, createClient } from '../../src/client.ts'
import { createConnector } from '../../src/kit/connector.ts'
import { createPoster } from '../../src/kit/poster.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'
import type { SenderOptions } from '../../src/send/sender-options.ts'
import { capture } from '../../src/testing/capture.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import { serveTls } from '../support/certificates.ts'
import { expectRefusal } from '../support/refusal.ts'
import { throwing } from '../support/throwing.ts'
import { until } from '../support/until.ts'

async function send(url: string, options: Omit<SenderOptions, 'webhooks'> = {}) {
  const sender = createSender({ webhooks: [{ url }], ...options })
  onTestFinished(() => sender.close())
  const outcomes: unknown[] = []
  for (let index = 0; index < 4; index++) {
    const { attempts } = await sender.delete({ userId: 'user-1' })
    outcomes.push(attempts[0]?.status ?? attempts[0]?.error)
  }
  return outcomes
}

/** The errors that a client reports after three attempts. */
async function record(endpoint: string, options: Partial<ClientOptions> = {}) {
  const errors: string[] = []
  const onError = ({ message }: Error) => errors.push(message)
  const client = createClient('write-key', { endpoint, maxRetries: 2, random: () => 0, onError, ...options })
  client.track({ userId: 'user-1', event: 'Event' })
  expect(await client.close()).toEqual([])
  return errors
}

describe.each<SecureVersion>(['TLSv1.2', 'TLSv1.3'])('over %s', { timeout: 30_000 }, (version) => {
  const only = { minVersion: version, maxVersion: version }

  it('a self-signed certificate is refused on every connection, also when `ca` has it', async () => {
    const { ca, server } = createCertificate('self_signed')
    const { url, seen } = await serveTls({ ...server, ...only })
    expect(await send(url, { ca })).toEqual(Array(4).fill('self_signed'))
    expect(await record(url, { ca })).toEqual([expect.stringContaining('Got DEPTH_ZERO_SELF_SIGNED_CERT after 3')])
    await until(() => seen.open === 0)
    expect(seen).toMatchObject({ connections: 7, bytes: 0, requests: 0 })
  })

  it('a certificate of the authority in `ca` is accepted, and no session is resumed', async () => {
    const { ca, server } = createCertificate('private_ca')
    const { url, seen } = await serveTls({ ...server, ...only })
    expect(await send(url, { ca })).toEqual([200, 200, 200, 200])
    expect(await record(url, { ca })).toEqual([])
    expect(seen).toMatchObject({ connections: 5, resumed: 0, requests: 5 })
  })
})

const connect = (timeoutMs: number) => {
  const connector = createConnector({ ca: undefined, responseLimit: 1, timeoutMs })
  connector({ protocol: 'http:', hostname: 'shop.example', port: '1' }, () => {})
}
const reach = (url: string) => createPoster(new URL(url)).reach()
it.each<[string, () => unknown, object]>([
  ['a fifth of its time for an address', () => connect(1_001), { autoSelectFamilyAttemptTimeout: 201 }],
  ['a second for an address', () => connect(9_000), { autoSelectFamilyAttemptTimeout: 1_000 }],
  ['the port of http', () => reach('http://shop.example'), { host: 'shop.example', port: '80' }],
  ['the port of https', () => reach('https://shop.example'), { port: '443' }],
])('a connection gets %s by default', async (_what, open, expected) => {
  const seen = vi.fn(throwing('seen'))
  const spies = [net, tls].map((module) => vi.spyOn(module as typeof net, 'connect').mockImplementation(seen))
  onTestFinished(() => spies.forEach((spy) => void spy.mockRestore()))
  await expect((async () => open())()).rejects.toThrow('seen')
  expect(seen.mock.calls).toMatchObject([[expected]])
})

it('proxies in the environment are not used', async () => {
  const { ca, server } = createCertificate('private_ca')
  const { url, seen } = await serveTls(server)
  const proxy = await serveTls(server)
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']) {
    vi.stubEnv(name, proxy.url)
  }
  vi.stubEnv('NODE_USE_ENV_PROXY', '1')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(await send(url, { ca })).toEqual([200, 200, 200, 200])
  expect(await record(url, { ca })).toEqual([])
  expect([seen.requests, proxy.seen.connections]).toEqual([5, 0])
})

it('a sender and a client refuse workerd, which shows no certificates', async () => {
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
  onTestFinished(() => void vi.unstubAllGlobals())
  const endpoint = 'http://127.0.0.1:9/'
  const webhooks = [{ url: endpoint }]
  await expectRefusal(() => createSender({ webhooks }), 'workerd')
  await expectRefusal(() => createDestination({ webhooks }), 'workerd')
  await expectRefusal(() => createClient('write-key', { endpoint }), 'workerd')
  const { dispatcher } = capture()
  await createSender({ webhooks, dispatcher }).close()
  await createClient('write-key', { endpoint, dispatcher }).close()
})
