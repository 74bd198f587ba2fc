/** Reads the body of a JSON request: method, content type, encoding and limit, in that order. */

import { HooklineError } from '../message/error.ts'
import type { EndpointBody } from './body.ts'
import type { EndpointHeaders, EndpointRequest } from './endpoint.ts'

const JSON_ONLY: readonly string[] = ['application/json']

/**
 * Reads the body of a POST whose content type is one of `mediaTypes`, whatever its parameters.
 *
 * @param mediaTypes In lower case. Default: `application/json`.
 * @throws HooklineError `method_not_allowed`, `content_type_unsupported`,
 *   `content_encoding_unsupported`, and what `readBody` throws.
 */
export function readJson(
  request: EndpointRequest,
  limit: number,
  mediaTypes: readonly string[] = JSON_ONLY,
): EndpointBody | Promise<EndpointBody> {
  if (request.method !== 'POST') {
    throw new HooklineError('method_not_allowed', 'The method must be POST. Got another method. Send a POST request.')
  }
  const { headers } = request
  if (!mediaTypes.includes(mediaType(headers))) {
    const types = mediaTypes.join(' or ')
    throw new HooklineError(
      'content_type_unsupported',
      `The content type must be ${types}. Got another content type, or none. Send the header Content-Type: ${types}.`,
    )
  }
  const encoding = headers['content-encoding']
  if (encoding && String(encoding).trim().toLowerCase() !== 'identity') {
    throw new HooklineError(
      'content_encoding_unsupported',
      'The body must not be compressed. Got a Content-Encoding header. Send the body without compression.',
    )
  }
  return request.readBody(limit)
}

function mediaType(headers: EndpointHeaders): string {
  const type = headers['content-type']
  if (typeof type !== 'string') return ''
  if (type === 'application/json') return type
  const end = type.indexOf(';')
  return (end === -1 ? type : type.slice(0, end)).trim().toLowerCase()
}
