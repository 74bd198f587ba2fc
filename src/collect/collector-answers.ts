/** The answers of a collector. Pages of any origin may read them, because browsers send calls from other origins. */

import { problem } from '../host/answer.ts'
import type { EndpointAnswer } from '../host/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { SortedCalls } from './collected-batch.ts'

const cors = { 'access-control-allow-origin': '*' }

export const preflight: EndpointAnswer = {
  status: 200, // In Fetch, a 204 response must not have a body, not even an empty one.
  headers: {
    ...cors,
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': '*, authorization', // The star covers every header except `authorization`.
    'access-control-max-age': '86400',
  },
  body: '',
}

export function collected({ accepted, refused, refusedCount }: SortedCalls): EndpointAnswer {
  const isCountNeeded = refusedCount > refused.length // One item of `refused` may stand for several calls.
  const counts = { accepted: accepted.length, refusedCount: isCountNeeded ? refusedCount : undefined }
  return {
    status: 200,
    headers: { 'content-type': 'application/json', ...cors },
    body: JSON.stringify({ success: true, ...counts, refused }),
  }
}

export function failed(error: HooklineError): EndpointAnswer {
  const { status, headers, body } = problem(error)
  return { status, headers: { ...headers, ...cors, 'access-control-expose-headers': 'retry-after' }, body }
}
