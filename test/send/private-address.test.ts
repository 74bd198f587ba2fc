import { isIP } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { createGuardedLookup, guardConnector } from '../../src/send/private-address.ts'
import { listen, openSender } from './set-up.ts'

it.each(['http', 'https'])(
  'private addresses forbidden, %s: no connection to loopback in any notation',
  async (scheme) => {
    const endpoint = await listen(scheme === 'https' ? { tls: 'self_signed' } : {})
    const { port } = new URL(endpoint.url)
    const hosts = [
      ...['127.0.0.1', '127.0.0.1.', 'localhost', 'LOCALHOST', '2130706433', '0x7f.1', '127.1', '0177.0.0.1'],
      ...['0300.0250.0.1', '127。0。0。1', '①②⑦.0.0.1', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::]', '[::1]'],
      ...['[0:0:0:0:0:FFFF:7F00:0001]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[fe80::1]', '0.0.0.0'],
    ]

    for (const host of hosts) {
      const webhooks = [{ url: `${scheme}://${host}:${port}/` }]
      const { ok, attempts } = await openSender({ webhooks, allowPrivateAddresses: false }).delete({ userId: 'u' })
      expect([host, ok, attempts[0]?.error]).toEqual([host, false, 'private_address'])
    }

    expect(endpoint.connections).toBe(0)
  },
)

describe('guardConnector', () => {
  const target = { hostname: 'shop.example', protocol: 'http:', port: '80' }
  const connect = (remoteAddress: string | undefined) => {
    const socket = { remoteAddress, destroy: vi.fn() }
    const given = vi.fn()
    guardConnector((_target, callback) => callback(null, socket as never))(target, given)
    return { socket, outcome: given.mock.calls }
  }

  it('passes on a socket to a public address', () => {
    const { socket, outcome } = connect('8.8.8.8')
    expect([outcome, socket.destroy.mock.calls]).toEqual([[[null, socket]], []])
  })

  it.each([
    ['10.0.0.1', 'HOOKLINE_PRIVATE_ADDRESS'],
    ['::ffff:127.0.0.1', 'HOOKLINE_PRIVATE_ADDRESS'],
    [undefined, 'ECONNRESET'],
  ])('destroys a socket that is connected to %s', (address, code) => {
    const { socket, outcome } = connect(address)
    expect(outcome).toEqual([[expect.objectContaining({ code }), null]])
    expect(socket.destroy).toHaveBeenCalled()
  })
})

describe('createGuardedLookup', () => {
  const answer = (addresses: readonly string[], options: object = {}) => {
    const found = addresses.map((address) => ({ address, family: isIP(address) }))
    const lookup = createGuardedLookup((_name, given, callback) => callback(null, given.all ? found : []))
    const given = vi.fn()
    lookup('shop.example', options, given)
    return given.mock.calls[0]
  }

  it('returns public addresses, one or all', () => {
    expect(answer(['8.8.8.8', '1.1.1.1'])).toEqual([null, '8.8.8.8', 4])
    const all = ['8.8.8.8', '2606:4700::1'].map((address, index) => ({ address, family: index === 0 ? 4 : 6 }))
    expect(answer(['8.8.8.8', '2606:4700::1'], { all: true })).toEqual([null, all])
  })

  it.each([
    ['with one private address', ['8.8.8.8', '10.0.0.1'], 'HOOKLINE_PRIVATE_ADDRESS'],
    ['with one private address', ['2606:4700:4700::1111', '::1'], 'HOOKLINE_PRIVATE_ADDRESS'],
    ['without addresses', [], 'ENODATA'],
  ])('refuses a name %s: %j', (_what, addresses, code) => {
    for (const all of [false, true]) expect(answer(addresses, { all })?.[0]).toMatchObject({ code })
  })
})

it('an error of a connection or of a lookup is passed on', () => {
  const given = vi.fn()
  const error = new Error('ENOTFOUND')
  guardConnector((_target, callback) => callback(error, null))({ hostname: 'a', protocol: 'http:', port: '80' }, given)
  createGuardedLookup((_name, _options, callback) => callback(error, undefined as never))('a', {}, given)
  expect(given.mock.calls).toEqual([
    [error, null],
    [error, '', 0],
  ])
})
