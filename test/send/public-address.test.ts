/** Which addresses are public: by example, and at the edges of each block by node:net's BlockList. */

import { BlockList, isIPv4 } from 'node:net'
import { expect, test } from 'vitest'
import { isPublicAddress } from '../../src/send/public-address.ts'

interface Block {
  readonly network: string
  readonly bits: number
}

const blocksOf = (...lines: readonly string[]): Block[] =>
  lines.flatMap((line) =>
    line.split(' ').map((text) => {
      const [network = '', bits] = text.split('/')
      return { network, bits: Number(bits) }
    }),
  )

/** IANA's Special-Purpose Address Registries as of 2025-10-09, every row, those within others included; then what they do not list. */
const SPECIAL_IPV4 = blocksOf(
  '0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29',
  '192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24',
  '192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24',
  '240.0.0.0/4 255.255.255.255/32 224.0.0.0/4 168.63.129.16/32',
)
const SPECIAL_IPV6 = blocksOf(
  '::1/128 ::/128 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128',
  '2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28',
  '2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10',
)
const ALLOCATED = blocksOf('2000::/3')

function listOf(family: 'ipv4' | 'ipv6', blocks: readonly Block[]): BlockList {
  const list = new BlockList()
  for (const { network, bits } of blocks) list.addSubnet(network, bits, family)
  return list
}

const special = { ipv4: listOf('ipv4', SPECIAL_IPV4), ipv6: listOf('ipv6', SPECIAL_IPV6) }
const allocated = listOf('ipv6', ALLOCATED)

const write = (groups: readonly number[]) => groups.map((group) => group.toString(16)).join(':')
const writeIPv4 = (groups: readonly number[]) => groups.flatMap((group) => [group >> 8, group & 0xff]).join('.')

function readGroups(address: string): number[] {
  if (isIPv4(address)) {
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
    return [(a << 8) | b, (c << 8) | d]
  }
  const halves = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [left = [], right = []] = halves.map((half) => half.split(':').filter(Boolean))
  const zeros = Array<string>(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].map((text) => Number.parseInt(text, 16))
}

/** The address before a block, its first, one within, its last, and the one after it. */
function edgesOf({ network, bits }: Block): number[][] {
  const groups = readGroups(network)
  const length = groups.length * 16
  const first = groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)
  const last = first | ((1n << BigInt(length - bits)) - 1n)
  const groupOf = (value: bigint, index: number) => Number((value >> BigInt(length - 16 * (index + 1))) & 0xffffn)
  return [first - 1n, first, (first + last) / 2n, last, last + 1n].map((value) =>
    groups.map((_, index) => groupOf(BigInt.asUintN(length, value), index)),
  )
}

test.each(SPECIAL_IPV4)('isPublicAddress at the edges of $network/$bits is right, also within IPv6', (block) => {
  for (const address of edgesOf(block).map(writeIPv4)) {
    const expected = !special.ipv4.check(address)
    for (const prefix of ['', '::ffff:', '64:ff9b::', '2600::5efe:', '2600::200:5efe:']) {
      const text = prefix + address
      expect([text, isPublicAddress(text)]).toEqual([text, expected])
    }
  }
})

test.each([...SPECIAL_IPV6, ...ALLOCATED])('isPublicAddress at the edges of $network/$bits is right', (block) => {
  for (const address of edgesOf(block).map(write)) {
    const expected = allocated.check(address, 'ipv6') && !special.ipv6.check(address, 'ipv6')
    expect([address, isPublicAddress(address)]).toEqual([address, expected])
  }
})

const areNot = [
  ...['127.0.0.1', '168.63.129.16', '::ffff:0:8.8.8.8', 'fe80::1%eth0', '2606:4700::200:5efe:10.0.0.1'],
  ...['::FFFF:7F00:0001', '0000:0000:0000:0000:0000:ffff:127.0.0.1', '::fffe:8.8.8.8', '64:ff9c::8.8.8.8'],
  ...['localhost', '', '1.2.3', '0x7f.1', '127.0.0.1.', '[::1]', '::1%', '1.1.1.1%eth0'],
]
const are = [
  ...['1.1.1.1', '2000::1', '2606:4700:4700::1111', '2606:4700::1%eth0', '2606:4700:4700::1:127.0.0.1'],
  ...['::ffff:8.8.8.8', '::FFFF:0808:0808', '0:0:0:0:0:ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2606:4700::5efe:808:808'],
]
test('isPublicAddress is right for each form of an address, and false for what is none', () => {
  expect([...are, ...areNot].filter(isPublicAddress)).toEqual(are)
})
