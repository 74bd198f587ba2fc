/** What a collector answers. Any page may read it: browsers send calls from the sites of others. */

import { problem } from '../protocol/answer.ts'
import type { EndpointAnswer } from '../protocol/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { SortedCalls } from './batch.ts'

const cors = { 'access-control-allow-origin': '*' }

/** The answer to the question of a browser whether it may send a call. */
export const preflight: EndpointAnswer = {
  status: 200, // In Fetch, a 204 cannot carry the empty text that is the body of this answer.
  headers: {
    ...cors,
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': '*, authorization', // The star is every header but this one.

    'access-control-max-age': '86400',
  },
  body: '',
}

/** The answer to calls, when those that are accepted are in every queue. */
export function collected({ accepted, refused, refusedCount }: SortedCalls): EndpointAnswer {
  const counts = { accepted: accepted.length, ...(refusedCount > refused.length && { refusedCount }) }
  return {
    status: 200,
    headers: { 'content-type': 'application/json', ...cors },
    body: JSON.stringify({ success: true, ...counts, refused }),
  }
}

/** The answer to a request that failed as a whole. */
export function failed(error: HooklineError): EndpointAnswer {
  const { status, headers, body } = problem(error)
  return { status, headers: { ...headers, ...cors, 'access-control-expose-headers': 'retry-after' }, body }
}
