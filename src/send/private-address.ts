/** Refuses connections to addresses that are not on the public internet, when `allowPrivateAddresses` is false. */

import dns, { type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { Connector } from '../kit/connector.ts'
import { isPublicAddress } from './public-address.ts'

type LookUpAll = (
  hostname: string,
  options: dns.LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/**
 * Wraps a connector so that it refuses private addresses in URLs, and destroys sockets that are connected to a private
 * address. The connector must use {@link createGuardedLookup}, which checks host names before a socket is opened.
 */
export function guardConnector(connect: Connector): Connector {
  return (target, callback) => {
    const host = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !isPublicAddress(host)) return callback(privateAddressError(), null)
    connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      const address = socket.remoteAddress
      if (address !== undefined && isPublicAddress(address)) return callback(null, socket)
      socket.destroy()
      callback(address === undefined ? closedError() : privateAddressError(), null)
    })
  }
}

/** Creates a lookup that refuses a host name if any of its addresses is private: such a name cannot be trusted. */
export function createGuardedLookup(lookUpAll: LookUpAll = dns.lookup): LookupFunction {
  return (hostname, options, callback) => {
    lookUpAll(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error !== null || first === undefined) return callback(error ?? unresolvedError(), '', 0)
      if (!addresses.every(({ address }) => isPublicAddress(address))) return callback(privateAddressError(), '', 0)
      if (options.all) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}

/** Creates the error for a socket that has no address, because the socket has been closed. */
function closedError(): NodeJS.ErrnoException {
  // The `reason` of the attempt shows this text after "Got".
  return Object.assign(new Error('a connection that was closed'), { code: 'ECONNRESET' })
}

function unresolvedError(): NodeJS.ErrnoException {
  // The `reason` of the attempt shows this text after "Got".
  return Object.assign(new Error('a host name that does not resolve to an address'), { code: 'ENODATA' })
}

/** Creates an error that does not show the address, because a stranger who chose the URL should not learn the address. */
function privateAddressError(): NodeJS.ErrnoException {
  const text = 'The address is private or reserved. Use another URL, or set `allowPrivateAddresses` to true.'
  return Object.assign(new Error(text), { code: 'HOOKLINE_PRIVATE_ADDRESS' })
}
