/** `hookline listen --ui`: shows the requests on a page. */

import { explainSignature } from 'hookline/testing'
import { shownUrl } from '../../../../../src/internals.ts'
import { createRequestPage, type ListenedRequest, type Step } from '../../../../inspector/src/page-server.ts'
import { servePage } from '../../page.ts'
import { openStore } from '../../request-store.ts'
import { headerOf, type KeptRequest, pairsOf } from '../kept-request.ts'

const MAX_AT_FIRST = 500
/** The maximum number of bytes to hash for one explanation. Hashing them takes about a tenth of a second. */
const BOUND = { maxBytes: 40_000_000 }

/**
 * Serves a page that first shows the newest stored requests, at most 500, and then each request that arrives.
 *
 * @param port The port, or true for any free port.
 * @param address Returns the address at which requests arrive; undefined before it is known.
 * @throws UsageError (as a rejection) for a port that is not available.
 */
export async function showRequests(
  port: number | true,
  path: string,
  secret: string | undefined,
  address: () => string | undefined,
) {
  const page = createRequestPage({
    address,
    async explain({ headers, bytes }) {
      if (secret === undefined) return 'An explanation needs the secret. Run `hookline show` with the secret.'
      return explainSignature(bytes, headers['x-signature']?.toString(), secret, BOUND).message
    },
  })
  const store = openStore(path)
  for (const request of store.readNewest(MAX_AT_FIRST)) page.append(toListened(request), false)
  store.close()
  return {
    append: (request: KeptRequest) => page.append(toListened(request), true),
    close: await servePage(page, port),
  }
}

function toListened(request: KeptRequest): ListenedRequest {
  const { receivedAt: at, method, target, headers, body, size: bytes, message, verification, answer } = request
  const { type, name, user } = message
  const { status, durationMs } = answer
  const names = pairsOf(headers).map(([name]) => name.toLowerCase())
  return {
    ...{ at, method, path: shownUrl(target), body, bytes, name, user, status, durationMs },
    headers: Object.fromEntries(names.map((name) => [name, headerOf(headers, name)])),
    type: type?.startsWith('batch of ') ? 'batch' : type,
    // The sender counts a request without an answer as failed.
    state: status === undefined || status >= 500 ? 'failed' : status < 400 ? 'done' : 'refused',
    code: codeOf(request),
    isRefused: verification === 'mismatched',
    steps: stepsOf(request),
  }
}

function codeOf({ headers, verification, answer }: KeptRequest): string | undefined {
  if (verification !== 'mismatched') return answer.status === undefined ? 'unanswered' : undefined
  return headerOf(headers, 'x-signature') === undefined ? 'signature_missing' : 'signature_mismatch'
}

function stepsOf(request: KeptRequest): readonly Step[] {
  const { receivedAt: at, size: bytes, isComplete, verification, reason, message, answer } = request
  const { status = 0, durationMs, note, by } = answer
  const text = reason ?? note ?? message.fault
  const code = codeOf(request) ?? (note === undefined ? 'no_message' : by)
  return [
    { at, what: 'arrived', bytes, isCopy: false },
    ...(verification === 'verified' ? [{ at, what: 'checked', isVerified: true } as const] : []),
    ...(verification === 'unchecked' && isComplete ? [{ at, what: 'unchecked' } as const] : []),
    { at: at + durationMs, what: 'answered', status, durationMs, ...(text && { error: { code, message: text } }) },
  ]
}
