/** The write key of a request: in its headers, or else in its body. */

import type { EndpointHeaders } from '../protocol/endpoint.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Json } from '../protocol/json.ts'

/**
 * Finds the write key: the user name of Basic authentication, or `writeKey` of the body.
 *
 * @throws HooklineError `write_key_missing`.
 */
export function readWriteKey({ authorization }: EndpointHeaders, { writeKey }: Json): string {
  const key = readUserName(authorization) || writeKey
  if (typeof key === 'string' && key !== '') return key
  const places = 'as the user name of Basic authentication, or as writeKey in the body'
  throw new HooklineError('write_key_missing', `Give the write key of the source, ${places}.`)
}

function readUserName(authorization: EndpointHeaders[string]): string {
  const [, credentials = ''] = /^Basic +(\S+)$/i.exec(String(authorization)) ?? []
  const [name = ''] = Buffer.from(credentials, 'base64').toString().split(':', 1)
  return name
}
