/** Judges an answer: says whether it is right for the case, what would happen to real messages, and what to do. */

import { sign } from 'hookline'
import type { Exchange } from '../../../../src/internals.ts'
import type { Result } from '../report.ts'
import { adviceOf } from './advice.ts'
import type { EndpointCase, Expectation } from './cases.ts'
import type { CaseRequest } from './message.ts'

/** The kind of an answer. `broken` means that the connection closed without a valid HTTP answer. */
export type Kind = 'success' | 'redirect' | 'refusal' | 'failure' | 'timeout' | 'broken'

export function kindOf({ status, error }: Exchange): Kind {
  if (status === undefined) return error === 'timeout' ? 'timeout' : 'broken'
  if (status >= 500) return 'failure'
  if (status >= 400) return 'refusal'
  return status >= 300 ? 'redirect' : 'success'
}

const LOST = {
  redirect:
    'Redirects are not followed: the message is lost. Answer at this URL, or give the sender the target of the redirect.',
  refusal: 'A 4xx is not retried: the message is lost.',
  failure: 'A 5xx is retried for up to four hours, with the same bytes. See the log of the endpoint.',
  timeout: 'A sender gives up after 5 s and sends the message again later. Answer first, and do slow work afterwards.',
  broken:
    'A sender sends such a message again for up to four hours. Answer every request, even when handling it fails.',
}

/** The consequence of each wrong answer. Right answers have no entry. */
const MEANINGS: Readonly<Record<Expectation, { readonly [kind in Kind]?: string }>> = {
  taken: LOST,
  refused: {
    success: 'A 2xx accepts the message.',
    redirect: 'A refusal is a 4xx: answer 401.',
    failure: 'A 5xx says that the endpoint failed, and a sender retries the request for up to four hours: answer 401.',
    timeout: 'A sender sends the message again for up to four hours: answer 401 at once.',
    broken: 'A sender sends the message again for up to four hours: answer 401.',
  },
  survived: {
    redirect: 'A refusal is a 4xx: answer 400.',
    failure: 'A 5xx is retried for up to four hours.',
    timeout: LOST.timeout,
    broken: LOST.broken,
  },
  answered: { timeout: LOST.timeout, broken: LOST.broken },
  not_taken: { success: 'A 2xx accepts the message.' },
}

/** Says what happens to a correct message that gets this answer. */
export function lossOf(exchange: Exchange): string {
  return MEANINGS.taken[kindOf(exchange)] ?? ''
}

export interface Sent {
  readonly found: EndpointCase
  readonly requests: readonly CaseRequest[]
  readonly exchanges: readonly Exchange[]
  /** Whether the address no longer responds. */
  readonly isDown: boolean
}

export interface Known {
  readonly secret: string
  /** The status of the answer to a forged message. */
  readonly forgedStatus: number | undefined
  /** A sentence that says what changes the body before it is verified. */
  readonly culprit: string | undefined
}

/** The maximum number of bytes to show of the body of an answer. */
const MAX_QUOTED = 500

export function judge({ found, requests, exchanges, isDown }: Sent, known: Known): Result {
  const { id, section, severity, sends } = found
  const expectationOf = (at: number): Expectation => (requests[at]?.isOpen ? 'answered' : found.expectation)
  const wrong = exchanges.findIndex((exchange, at) => kindOf(exchange) in MEANINGS[expectationOf(at)])
  const durationMs = Math.round(Math.max(...exchanges.map((exchange) => exchange.durationMs)))
  const exchange = exchanges[wrong]
  const result = (result: Result['result'], got: string, ...meaning: readonly (string | undefined)[]): Result => {
    const cause = meaning.filter(Boolean).join(' ')
    const answer = exchange?.body.toString('utf8', 0, MAX_QUOTED)
    const quoted = { ...(cause && { cause }), ...(answer && { answer }) }
    return {
      id,
      result,
      section,
      durationMs,
      sentence: `Sent ${sends}. ${toSentence(got)} ${cause}`.trimEnd(),
      ...quoted,
    }
  }

  if (exchange === undefined) {
    const got = [...new Set(exchanges.map(describe))].join(' and ')
    const reveals =
      id === 'signature-forged' &&
      exchanges.some(({ body }, at) => body.includes(sign(requests[at]?.body ?? '', known.secret)))
    if (!reveals) return result('pass', got)
    const advice = 'Anyone who forges a message can read the signature there: do not include it in answers.'
    return result('fail', `${got}, and the right signature in the body of the answer`, advice)
  }
  const place = requests.length > 1 ? ` for request ${wrong + 1} of ${requests.length}` : ''
  const got = `${describe(exchange)}${place}`
  if (isDown) {
    return result(
      'fail',
      `${got}, and the endpoint has not responded since`,
      'One request must not stop the server.',
      adviceOf(id),
    )
  }
  return result(severity, got, MEANINGS[expectationOf(wrong)][kindOf(exchange)], ...explain(found, exchange, known))
}

const USE_BYTES = 'Verify the bytes as they arrived, before they are decoded or parsed.'
const UNVERIFIED =
  'Every message with a forged signature gets the same answer: verify the signature, and answer 401 when it is wrong.'
const LIMITED = 'The endpoint limits the rate of requests: a sender may post many messages in a short time.'
const OF_THEMSELVES: readonly unknown[] = [401, 404, 405, 408, 409, 413, 415]

/** Returns sentences about the likely cause and what to do. */
function explain({ id, expectation, isExact, how }: EndpointCase, exchange: Exchange, known: Known): readonly string[] {
  const { forgedStatus, culprit } = known
  const { status } = exchange
  const advice = adviceOf(id)
  const isRefusal = kindOf(exchange) === 'refusal'
  const isForged = expectation === 'refused' || expectation === 'not_taken'
  if (isForged) return [status === (forgedStatus ?? 401) && !isRefusal ? UNVERIFIED : advice]
  if (expectation !== 'taken') return [advice]
  if (status === 429) return [LIMITED, advice]
  const isOfSignature =
    how !== undefined || [undefined, status].includes(forgedStatus) || OF_THEMSELVES.includes(status)
  const content =
    isRefusal && !isOfSignature
      ? `A forged message gets ${forgedStatus}, so here the signature was accepted, but not the content.`
      : ''
  if (!isExact) return [content, advice]
  if (!isRefusal || content) return [content, 'The body is correct JSON, in a form that some senders write: accept it.']
  return [culprit ?? `The endpoint re-serialises or decodes the body before verifying it. ${advice}`, USE_BYTES]
}

/** Turns a description of answers into a sentence: `Got 401.`, or `There was no complete answer within 5 s.` */
export function toSentence(description: string): string {
  return `${/^\d/.test(description) ? 'Got' : 'There was'} ${description}.`
}

/** Describes an answer. Includes the target of a redirect without its query, or the reason why an answer is not HTTP. */
export function describe({ status, headers, reason, error }: Exchange): string {
  if (error === 'timeout') return 'no complete answer within 5 s'
  if (error === 'reset') return 'no answer: the connection was closed'
  if (status === undefined) return `an answer that is not HTTP (${String(reason).replace(/\.$/, '')})`
  const { location } = headers
  const isRedirect = typeof location === 'string' && status >= 300 && status < 400
  return isRedirect ? `${status} to ${location.replace(/[?#].*$/s, '')}` : `${status}`
}
