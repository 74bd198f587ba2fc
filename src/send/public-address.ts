/** Decides whether an IP address is on the public internet. */

import { isIPv4, isIPv6 } from 'node:net'

interface Block {
  readonly network: bigint
  readonly bits: number
}

/**
 * The blocks of IANA's IPv4 Special-Purpose Address Registry as of 2025-10-09, and multicast. The few blocks that the registry calls
 * globally reachable (PCP, TURN, AS112, AMT) are included, too. They belong to anycast services: the nearest machine responds, and this
 * machine may be on your own network.
 */
const SPECIAL_IPV4 = parseBlocks(parseIPv4, [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private use
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // not in the registry: on Azure, the host of a virtual machine
  '169.254.0.0/16', // link local, including the metadata services of clouds
  '172.16.0.0/12', // private use
  '192.0.0.0/24', // IETF protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private use
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
])

/** The only IPv6 block from which IANA allocates addresses of the public internet. */
const GLOBAL_IPV6 = parseBlocks(parseIPv6, ['2000::/3'])

/** The blocks within 2000::/3 that IANA's IPv6 Special-Purpose Address Registry lists as of 2025-10-09. */
const SPECIAL_IPV6 = parseBlocks(parseIPv6, [
  '2001::/23', // IETF protocol assignments: Teredo, ORCHID, benchmarking, anycast services
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
])

/** Blocks whose addresses stand for the IPv4 address in their last 32 bits: IPv4-mapped addresses, and NAT64 with the well-known prefix. */
const TRANSLATED = parseBlocks(parseIPv6, ['::ffff:0:0/96', '64:ff9b::/96'])

/** The 32 bits before the IPv4 address at the end of an ISATAP address (RFC 5214, section 6.1). */
const ISATAP = [0x0000_5efen, 0x0200_5efen]

/** Returns whether the text is a public address; false for text that is not an address. */
export function isPublicAddress(text: string): boolean {
  if (isIPv4(text)) return isPublicIPv4(parseIPv4(text))
  const address = text.replace(/%.*$/, '')
  return isIPv6(address) && isPublicIPv6(parseIPv6(address))
}

function isPublicIPv4(address: bigint): boolean {
  return !isIn(SPECIAL_IPV4, address, 32)
}

function isPublicIPv6(address: bigint): boolean {
  const last32 = address & 0xffff_ffffn
  if (isIn(TRANSLATED, address, 128)) return isPublicIPv4(last32)
  if (!isIn(GLOBAL_IPV6, address, 128) || isIn(SPECIAL_IPV6, address, 128)) return false
  const isTunnel = ISATAP.includes((address >> 32n) & 0xffff_ffffn)
  return !isTunnel || isPublicIPv4(last32)
}

/** Returns whether an address of 32 or 128 bits lies in one of the blocks. */
function isIn(list: readonly Block[], address: bigint, length: 32 | 128): boolean {
  return list.some(({ network, bits }) => (address ^ network) >> BigInt(length - bits) === 0n)
}

function parseBlocks(parseAddress: (text: string) => bigint, texts: readonly string[]): readonly Block[] {
  return texts.map((text) => {
    const [address = '', bits] = text.split('/')
    return { network: parseAddress(address), bits: Number(bits) }
  })
}

function parseIPv4(address: string): bigint {
  return address.split('.').reduce((number, byte) => (number << 8n) | BigInt(byte), 0n)
}

function parseIPv6(address: string): bigint {
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1) // `URL` rewrites a dotted IPv4 tail as two groups.
  const [left = [], right = []] = text.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right]
  return groups.reduce((number, group) => (number << 16n) | BigInt(`0x${group}`), 0n)
}
