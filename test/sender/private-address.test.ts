import { describe, expect, it, test } from 'vitest'
import { isPrivateAddress } from '../../src/sender/private-address.ts'
import { createSender } from '../../src/sender/sender.ts'
import { startEndpoint } from '../../src/testing/index.ts'

describe('isPrivateAddress', () => {
  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.1',
    '127.0.0.1',
    '127.8.8.8',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
    'fe80::1%eth0',
    'ff02::1',
    '2001:db8::1',
    '64:ff9b:1::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '0:0:0:0:0:ffff:192.168.0.1',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::10.0.0.1',
    '::ffff:0:127.0.0.1',
    '2002:7f00:1::',
    '2002:a00:1::1',
    '2001:0:1:2::1',
    'localhost',
    '',
    '1.2.3',
  ])('%s is', (address) => {
    expect(isPrivateAddress(address)).toBe(true)
  })

  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::1',
  ])('%s is not', (address) => {
    expect(isPrivateAddress(address)).toBe(false)
  })
})

describe('allowPrivateAddresses: false', () => {
  it.each(['http', 'https'])(
    '%s: reaches no loopback address, however it is spelled, with not one connection',
    async (scheme) => {
      await using endpoint = await startEndpoint(scheme === 'https' ? { tls: 'self_signed' } : {})
      const { port } = new URL(endpoint.url)
      for (const host of [
        '127.0.0.1',
        'localhost',
        '2130706433',
        '0x7f.1',
        '127.1',
        '[::ffff:127.0.0.1]',
        '0.0.0.0',
        '[::]',
      ]) {
        const sender = createSender({
          webhooks: [{ url: `${scheme}://${host}:${port}/` }],
          allowPrivateAddresses: false,
        })
        const { ok, attempts } = await sender.delete({ userId: 'u' })
        expect([host, ok, attempts[0]?.error]).toEqual([host, false, 'private_address'])
        await sender.close()
      }
      expect(endpoint.connections).toBe(0)
    },
  )
})

test('by default a private address is reached', async () => {
  await using endpoint = await startEndpoint()
  const sender = createSender({ webhooks: [{ url: endpoint.url }] })

  expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: true })
  await sender.close()
})
