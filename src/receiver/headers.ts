/** Headers as a caller may have them, in the one form used inside. */

import type { EndpointHeaders } from '../protocol/endpoint.ts'

/** Web `Headers`, or an object with names in any case, as from node:http or a function's event. */
export type HeadersLike = EndpointHeaders | Iterable<readonly [string, string]>

/** Headers by lower-case name; the object itself when it is in that form already. */
export function readHeaders(headers: HeadersLike): EndpointHeaders {
  if (typeof headers !== 'object' || headers === null) {
    throw new TypeError('receive: headers must be an object of headers, or Headers.')
  }
  if (isIterable(headers)) return lowerCased([...headers])
  for (const name in headers) {
    if (name !== name.toLowerCase()) return lowerCased(Object.entries(headers))
  }
  return headers
}

function isIterable(headers: HeadersLike): headers is Iterable<readonly [string, string]> {
  return Symbol.iterator in headers
}

function lowerCased(entries: readonly (readonly [string, EndpointHeaders[string]])[]): EndpointHeaders {
  const headers = new Map<string, EndpointHeaders[string]>()
  for (const [name, value] of entries) {
    const key = name.toLowerCase()
    headers.set(key, headers.has(key) ? `${headers.get(key)}, ${value}` : value)
  }
  return Object.fromEntries(headers)
}
