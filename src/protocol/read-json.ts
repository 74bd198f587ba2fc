/** Reads the body of a JSON request: method, content type, encoding and limit, in that order. */

import type { EndpointBody } from './body.ts'
import type { EndpointHeaders, EndpointRequest } from './endpoint.ts'
import { HooklineError } from './error.ts'

/**
 * Reads the body of a POST whose content type is `application/json`, whatever its parameters.
 *
 * @throws HooklineError `method_not_allowed`, `content_type_unsupported`,
 *   `content_encoding_unsupported`, and what `readBody` throws.
 */
export function readJson(request: EndpointRequest, limit: number): EndpointBody | Promise<EndpointBody> {
  if (request.method !== 'POST') {
    throw new HooklineError('method_not_allowed', 'Send a POST request.')
  }
  const { headers } = request
  if (mediaType(headers) !== 'application/json') {
    throw new HooklineError('content_type_unsupported', 'Send the header Content-Type: application/json.')
  }
  const encoding = headers['content-encoding']
  if (encoding && String(encoding).trim().toLowerCase() !== 'identity') {
    throw new HooklineError(
      'content_encoding_unsupported',
      'Send the body without compression: the signature covers the plain bytes.',
    )
  }
  return request.readBody(limit)
}

function mediaType(headers: EndpointHeaders): string | undefined {
  const type = headers['content-type']
  if (type === 'application/json' || typeof type !== 'string') return type as string | undefined
  const end = type.indexOf(';')
  return (end === -1 ? type : type.slice(0, end)).trim().toLowerCase()
}
