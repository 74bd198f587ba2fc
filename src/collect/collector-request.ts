/** Determines who sent a request: the write key of the source, and the address of the client. */

import { isIP, SocketAddress } from 'node:net'
import type { EndpointHeaders, EndpointRequest } from '../host/endpoint.ts'
import { HooklineError } from '../protocol/error.ts'
import { textMember } from '../protocol/text-member.ts'

/** Reads the user name of Basic authentication. Returns an empty string for a request without a user name. */
export function readUserName({ authorization }: EndpointHeaders): string {
  const [, credentials = ''] = /^Basic +(\S+)$/i.exec(String(authorization)) ?? []
  const [name = ''] = Buffer.from(credentials, 'base64').toString().split(':', 1)
  return name
}

/** Finds the write key in a body without parsing the body, so that a body without a known key costs little. */
export function readWriteKey(body: Uint8Array): string {
  const writeKey = textMember(body, 'writeKey')
  if (writeKey) return writeKey
  const advice = 'Send it as the user name of Basic authentication, or as `writeKey` in the body.'
  throw new HooklineError('write_key_missing', `The request has no write key. ${advice}`)
}

/**
 * Reads the IP address of the client: the last entry of the proxy's header, or else the address of the connection. Writes an IPv4-mapped
 * IPv6 address as IPv4, and cuts off the port.
 */
export function readAddress(
  { headers, remoteAddress }: Pick<EndpointRequest, 'headers' | 'remoteAddress'>,
  header: string | undefined,
): string | undefined {
  const listed = header === undefined ? undefined : headers[header]
  const entry = listed === undefined ? remoteAddress : String(listed).split(',').at(-1)
  const address = withoutPort((entry ?? '').trim())
  const version = isIP(address)
  if (version === 0) return undefined
  return version === 4 ? address : normaliseIPv6(address)
}

/** Writes an IPv6 address in its canonical form (RFC 5952), without the zone, and an IPv4-mapped address as IPv4. */
function normaliseIPv6(entry: string): string {
  const address = entry.replace(/%.*$/, '')
  return new SocketAddress({ address, family: 'ipv6' }).address.replace(/^::ffff:(?=[\d.]+$)/, '')
}

/** Cuts off the port: proxies write `192.0.2.1:80` and `[2001:db8::1]:80`. */
function withoutPort(entry: string): string {
  const [, ipv6, ipv4] = /^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/.exec(entry) ?? []
  return ipv6 ?? ipv4 ?? entry
}
