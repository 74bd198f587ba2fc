/** Which addresses are public: by example, and at the edges of each block of IANA's registries as of 2025-10-09. */

import { expect, test } from 'vitest'
import { isPublicAddress } from '../../src/send/public-address.ts'

const words = (...lines: readonly string[]) => lines.join(' ').split(' ')
/** Fills the rest of an IPv6 address with ones. */
const last = (start: string) => start + ':ffff'.repeat(8 - start.split(':').length)

/** The addresses around each block of IPv4 that is not public, or of several in a row; then the first and last of each. */
const AROUND = words(
  '1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17',
  '169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0',
  '192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0',
  '192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0',
  '223.255.255.255',
)
const SPECIAL = words(
  '0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.255.255.255 168.63.129.16',
  '169.254.0.0 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255 192.31.196.0',
  '192.31.196.255 192.52.193.0 192.52.193.255 192.88.99.0 192.88.99.255 192.168.0.0 192.168.255.255 192.175.48.0',
  '192.175.48.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 224.0.0.0',
  '255.255.255.255 239.255.255.255 240.0.0.0',
)

test.each(['', '::ffff:', '64:ff9b::', '2600::5efe:', '2600::200:5efe:'])(
  'isPublicAddress is right at the edges of each block of IPv4, also in IPv6 after "%s"',
  (prefix) => {
    expect([...AROUND, ...SPECIAL].filter((address) => isPublicAddress(prefix + address))).toEqual(AROUND)
  },
)

const areNot = [
  ...['127.0.0.1', '168.63.129.16', '::ffff:0:8.8.8.8', 'fe80::1%eth0', '2606:4700::200:5efe:10.0.0.1'],
  ...['::FFFF:7F00:0001', '0000:0000:0000:0000:0000:ffff:127.0.0.1', '::fffe:8.8.8.8', '64:ff9c::8.8.8.8'],
  ...['localhost', '', '1.2.3', '0x7f.1', '127.0.0.1.', '[::1]', '::1%', '1.1.1.1%eth0', '64:ff9b::1:808:808'],
  ...words(':: ::1 ::2 64:ff9b:1:: 100:: 100:0:0:1:: 5f00:: fc00:: fe80:: ff02::1 4000:: 2001:: 2001:db8:: 2002::'),
  ...['1fff', '2001:1ff', '2001:db8', '2002', '2620:4f:8000', '3fff:fff'].map(last),
  ...words('2620:4f:8000:: 3fff:: 2001:1::1 2001:2:: 2001:4:112:: 2001:20::'),
]
const are = [
  ...['1.1.1.1', '2000::1', '2606:4700:4700::1111', '2606:4700::1%eth0', '2606:4700:4700::1:127.0.0.1'],
  ...['::ffff:8.8.8.8', '::FFFF:0808:0808', '0:0:0:0:0:ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2606:4700::5efe:808:808'],
  ...words('2000:: 2001:200:: 2001:db9:: 2003:: 2620:4f:8001:: 3fff:1000::'),
  ...['2000:ffff', '2001:db7', '2001:ffff', '2620:4f:7fff', '3ffe', '3fff:ffff'].map(last),
]
test('isPublicAddress is right for each form of an address, at the edges of blocks, and false for what is none', () => {
  expect([...are, ...areNot].filter(isPublicAddress)).toEqual(are)
})
