/** Refuses connections to addresses that are not on the public internet, when `allowPrivateAddresses` is false. */

import dns, { type LookupAddress } from 'node:dns'
import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net'
import type { buildConnector } from 'undici'

/** The code of the error for a private address. */
export const PRIVATE_ADDRESS = 'HOOKLINE_PRIVATE_ADDRESS'

/** Opens connections for undici. */
type Connector = buildConnector.connector

/** Looks up all addresses of a name, as `dns.lookup` does. */
type LookUpAll = (
  hostname: string,
  options: dns.LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/**
 * Wraps a connector so that it refuses private addresses in URLs and destroys sockets that are connected to one. Names are
 * checked before connecting by {@link createGuardedLookup}, which the connector must use.
 */
export function guardConnector(connect: Connector): Connector {
  return (target, callback) => {
    const host = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && isPrivateAddress(host)) return callback(refused(), null)
    connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      const address = socket.remoteAddress
      if (address !== undefined && !isPrivateAddress(address)) return callback(null, socket)
      socket.destroy()
      callback(address === undefined ? closed() : refused(), null)
    })
  }
}

/** Creates a lookup that refuses a name if any of its addresses is private: such a name cannot be trusted. */
export function createGuardedLookup(lookUpAll: LookUpAll = dns.lookup): LookupFunction {
  return (hostname, options, callback) => {
    lookUpAll(hostname, { ...options, all: true } as dns.LookupAllOptions, (error, addresses) => {
      const [first] = addresses ?? []
      if (error !== null || first === undefined) return callback(error ?? refused(), '', 0)
      if (addresses.some(({ address }) => isPrivateAddress(address))) return callback(refused(), '', 0)
      if (options.all) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}

/** A closed socket has no address. */
function closed(): NodeJS.ErrnoException {
  return Object.assign(new Error('The connection was closed.'), { code: 'ECONNRESET' })
}

function refused(): NodeJS.ErrnoException {
  const error = new Error('The address is private. Set allowPrivateAddresses to true to reach it.')
  return Object.assign(error, { code: PRIVATE_ADDRESS })
}

/** Whether an IP address is not on the public internet. Text that is not an address counts as private. */
export function isPrivateAddress(address: string): boolean {
  const plain = address.replace(/%.*$/, '')
  if (!isIPv6(plain)) return isIP(plain) === 0 || special.check(plain, 'ipv4')
  const embedded = embeddedAddress(plain)
  return special.check(plain, 'ipv6') || (embedded !== undefined && special.check(embedded, 'ipv4'))
}

const special = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8],
  ['169.254.0.0', 16], // link-local, metadata services
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16],
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, broadcast
] as const) {
  special.addSubnet(network, bits, 'ipv4')
}
for (const [network, bits] of [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b:1::', 48], // NAT64 inside a network
  ['100::', 64], // discard
  ['2001::', 32], // Teredo
  ['2001:db8::', 32], // documentation
  ['fc00::', 7], // unique local
  ['fe80::', 10], // link-local
  ['fec0::', 10], // site-local
  ['ff00::', 8], // multicast
] as const) {
  special.addSubnet(network, bits, 'ipv6')
}

const MAPPED = new BlockList()
for (const [network, bits] of [
  ['::', 96], // IPv4-compatible
  ['::ffff:0:0', 96], // IPv4-mapped
  ['::ffff:0:0:0', 96], // IPv4-translated
  ['64:ff9b::', 96], // NAT64
] as const) {
  MAPPED.addSubnet(network, bits, 'ipv6')
}

/** The IPv4 address that an IPv6 address embeds; undefined when it embeds none. */
function embeddedAddress(address: string): string | undefined {
  const groups = expand(address)
  if (MAPPED.check(address, 'ipv6')) return dotted(groups[6], groups[7])
  if (groups[0] === 0x2002) return dotted(groups[1], groups[2]) // 6to4
  return undefined
}

/** The eight numbers of an IPv6 address. */
function expand(address: string): number[] {
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1) // The shortest form, without dots.
  const [head = '', tail] = text.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array<string>(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16))
}

function dotted(high = 0, low = 0): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}
