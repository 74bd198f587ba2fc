/** Which addresses are public: by example, and against a second implementation on node:net's BlockList. */

import { BlockList, isIPv4, SocketAddress } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { isPublicAddress } from '../../src/send/public-address.ts'
import { runs } from '../support/properties.ts'

/** IANA's Special-Purpose Address Registries as of 2025-10-09, every row, those within others included. */
const REGISTRY = {
  ipv4: [
    '0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29',
    '192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24',
    '192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24',
    '240.0.0.0/4 255.255.255.255/32',
  ],
  ipv6: [
    '::1/128 ::/128 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128',
    '2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28',
    '2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10',
  ],
} as const

type Family = keyof typeof REGISTRY

const blocksOf = (family: Family) =>
  REGISTRY[family]
    .flatMap((line) => line.split(' '))
    .map((text) => {
      const [network = '', bits] = text.split('/')
      return { network, bits: Number(bits) }
    })

function listOf(family: Family, blocks: readonly { readonly network: string; readonly bits: number }[]): BlockList {
  const list = new BlockList()
  for (const { network, bits } of blocks) list.addSubnet(network, bits, family)
  return list
}

const special = {
  ipv4: listOf('ipv4', [
    ...blocksOf('ipv4'),
    { network: '224.0.0.0', bits: 4 },
    { network: '168.63.129.16', bits: 32 },
  ]),
  ipv6: listOf('ipv6', blocksOf('ipv6')),
}
const allocated = listOf('ipv6', [{ network: '2000::', bits: 3 }])
const translated = listOf('ipv6', [
  { network: '::ffff:0:0', bits: 96 },
  { network: '64:ff9b::', bits: 96 },
])

/** The second implementation: nothing of the first, and the addresses in groups of text instead of one number. */
function isPublic(groups: readonly number[]): boolean {
  const tail = groups.slice(-2).flatMap((group) => [group >> 8, group & 0xff])
  const isPublicTail = !special.ipv4.check(tail.join('.'), 'ipv4')
  if (groups.length === 2) return isPublicTail
  const address = new SocketAddress({ family: 'ipv6', address: write(groups) })
  if (translated.check(address)) return isPublicTail
  if (!allocated.check(address) || special.ipv6.check(address)) return false
  const isIsatap = [0, 0x200].includes(groups[4] as number) && groups[5] === 0x5efe
  return !isIsatap || isPublicTail
}

const write = (groups: readonly number[]) => groups.map((group) => group.toString(16)).join(':')
const writeIPv4 = (groups: readonly number[]) => groups.flatMap((group) => [group >> 8, group & 0xff]).join('.')

/** Each notation of an IPv6 address. */
const NOTATIONS: readonly ((groups: readonly number[]) => string)[] = [
  write,
  (groups) => groups.map((group) => group.toString(16).padStart(4, '0').toUpperCase()).join(':'),
  (groups) => new URL(`http://[${write(groups)}]`).hostname.slice(1, -1),
  (groups) => `${write(groups.slice(0, 6))}:${writeIPv4(groups.slice(6))}`,
  (groups) => `${write(groups)}%eth0`,
]

function readGroups(address: string): number[] {
  if (isIPv4(address)) {
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
    return [(a << 8) | b, (c << 8) | d]
  }
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [left, right] = [head, tail ?? ''].map((half) =>
    half
      .split(':')
      .filter(Boolean)
      .map((group) => Number(`0x${group}`)),
  )
  return [...(left ?? []), ...Array(8 - (left?.length ?? 0) - (right?.length ?? 0)).fill(0), ...(right ?? [])]
}

function inBlock(network: readonly number[], bits: number, rest: readonly number[], step: number): number[] {
  const size = BigInt(network.length * 16)
  const number = (groups: readonly number[]) => groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)
  const mask = (1n << (size - BigInt(bits))) - 1n
  const edge = step < 0 ? number(network) : number(network) | mask
  const value = step === 0 ? number(network) | (number(rest) & mask) : edge + BigInt(step > 1 ? 0 : step)
  return network.map((_, index) =>
    Number((BigInt.asUintN(Number(size), value) >> (size - 16n * BigInt(index + 1))) & 0xffffn),
  )
}

const group = fc.nat(0xffff)
const groupsOf = (length: number) => fc.array(group, { minLength: length, maxLength: length })

/** Addresses of any kind, and those at the edges of blocks and in them. */
function addresses(family: Family, more: readonly string[] = []): fc.Arbitrary<number[]> {
  const length = family === 'ipv4' ? 2 : 8
  const blocks = [...blocksOf(family), ...more.map((network) => ({ network, bits: 3 }))]
  const near = fc
    .tuple(fc.constantFrom(...blocks), groupsOf(length), fc.constantFrom(-1, 0, 1, 2))
    .map(([{ network, bits }, rest, step]) => inBlock(readGroups(network), bits, rest, step))
  return fc.oneof(groupsOf(length), near)
}

/** Addresses of ISATAP, which hold one of IPv4. The other forms that do, such as those of NAT64, are blocks of the registry. */
const isatap = fc
  .tuple(groupsOf(4), fc.constantFrom(0, 0x200), addresses('ipv4'))
  .map(([[a = 0, ...rest], flag, ipv4]) => [0x2600 | (a & 0xff), ...rest, flag, 0x5efe, ...ipv4])

describe('isPublicAddress', () => {
  it('agrees with the second implementation on IPv4', () => {
    fc.assert(
      fc.property(addresses('ipv4'), (groups) => isPublicAddress(writeIPv4(groups)) === isPublic(groups)),
      { numRuns: runs(500) },
    )
  })

  it('agrees with the second implementation on IPv6, in every notation', () => {
    fc.assert(
      fc.property(
        fc.oneof(addresses('ipv6', ['2000::']), isatap),
        fc.constantFrom(...NOTATIONS),
        (groups, notate) => isPublicAddress(notate(groups)) === isPublic(groups),
      ),
      { numRuns: runs(1_500) },
    )
  })

  test.each([...blocksOf('ipv4'), ...blocksOf('ipv6')])('no address in $network/$bits is', ({ network, bits }) => {
    const groups = readGroups(network)
    const first = groups.length === 2 ? network : write(groups)
    const last = inBlock(groups, bits, [], 2)
    expect(isPublicAddress(first)).toBe(false)
    expect(isPublicAddress(groups.length === 2 ? writeIPv4(last) : write(last))).toBe(false)
  })

  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '2000::1',
    '2001:db7:ffff::1',
    '2606:4700:4700::1111',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
  ])('%s is', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.each([
    '127.0.0.1',
    '168.63.129.16',
    '::ffff:0:8.8.8.8',
    'fe80::1%eth0',
    '2606:4700::200:5efe:10.0.0.1',
    'localhost',
    '',
    '1.2.3',
    '0x7f.1',
    '127.0.0.1.',
    '[::1]',
    '::1%',
    '1.1.1.1%eth0',
  ])('%s is not', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})
