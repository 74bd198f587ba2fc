/** Reads the body of a JSON request, after checking its method, its content type and its content encoding. */

import { HooklineError } from '../protocol/error.ts'
import { showText } from '../protocol/show-text.ts'
import { POST_ONLY } from './answer.ts'
import type { EndpointBody } from './body.ts'
import type { EndpointHeaders, EndpointRequest } from './endpoint.ts'

/** The methods, content types and content encodings to accept. Default: POST, JSON, and no compression. */
export interface AcceptedForms {
  readonly methods?: readonly string[]
  readonly mediaTypes?: readonly string[]
  readonly codings?: readonly string[]
}

const JSON_ONLY: readonly string[] = ['application/json']
const IDENTITY_ONLY: readonly string[] = ['identity']

/** @throws HooklineError (or a rejection) for a request that is not accepted, or whose body cannot be read. */
export function readJson(
  request: EndpointRequest,
  limit: number,
  { methods = POST_ONLY, mediaTypes = JSON_ONLY, codings = IDENTITY_ONLY }: AcceptedForms = {},
): EndpointBody | Promise<EndpointBody> {
  if (!methods.includes(request.method)) {
    const text = `The method must be ${methods.join(' or ')}. Got ${showText(request.method)}. Send a ${methods[0]} request.`
    throw new HooklineError('method_not_allowed', text)
  }
  const { headers } = request
  const type = readMediaType(headers)
  if (!mediaTypes.includes(type)) {
    const found = type === '' ? 'The request has no content type' : `Got ${showText(type)}`
    throw new HooklineError(
      'content_type_unsupported',
      `The content type must be ${mediaTypes.join(' or ')}. ${found}. Send the header Content-Type: ${mediaTypes[0]}.`,
    )
  }
  if (!codings.includes(readCoding(headers))) {
    throw new HooklineError(
      'content_encoding_unsupported',
      `The content encoding must be ${codings.join(' or ')}. Got ${showText(readCoding(headers))}. Send the body without compression.`,
    )
  }
  return request.readBody(limit)
}

/** Returns the content encoding in lower case; for a request without this header, `identity`. */
export function readCoding({ 'content-encoding': coding }: EndpointHeaders): string {
  return coding ? String(coding).trim().toLowerCase() : 'identity'
}

/** Returns the content type in lower case, without parameters; for a request without this header, an empty string. */
function readMediaType(headers: EndpointHeaders): string {
  const type = headers['content-type']
  if (typeof type !== 'string') return ''
  if (type === 'application/json') return type
  const end = type.indexOf(';')
  return (end === -1 ? type : type.slice(0, end)).trim().toLowerCase()
}
