/** The address of whoever sent a request. */

import { isIP } from 'node:net'
import type { EndpointRequest } from '../protocol/endpoint.ts'

/**
 * The IP address of a client: the last entry of the header, where there is such a header, else that of the connection. An
 * IPv4 address that a server for both families writes as IPv6 comes back as IPv4; a port is cut off.
 *
 * @param header In lower case.
 * @returns undefined where neither holds an address.
 */
export function readAddress(
  { headers, remoteAddress }: Pick<EndpointRequest, 'headers' | 'remoteAddress'>,
  header: string | undefined,
): string | undefined {
  const listed = header === undefined ? undefined : headers[header]
  const entry = listed === undefined ? remoteAddress : String(listed).split(',').at(-1)
  const address = withoutPort((entry ?? '').trim()).replace(/^::ffff:(?=[\d.]+$)/i, '')
  return isIP(address) === 0 ? undefined : address
}

/** Proxies write `192.0.2.1:80` and `[2001:db8::1]:80`. */
function withoutPort(entry: string): string {
  const [, ipv6, ipv4] = /^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/.exec(entry) ?? []
  return ipv6 ?? ipv4 ?? entry
}
