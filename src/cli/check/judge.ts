/** What an answer means: right or wrong for its case, what it does to real messages, and what to do. */

import type { Exchange } from '../exchange.ts'
import type { Result } from '../report.ts'
import type { EndpointCase, Expectation } from './cases.ts'
import type { CaseRequest } from './message.ts'

/** What came back. `broken`: no answer, or none that is HTTP. */
export type Kind = 'success' | 'redirect' | 'refusal' | 'failure' | 'timeout' | 'broken'

export function kindOf({ status, error }: Exchange): Kind {
  if (status === undefined) return error === 'timeout' ? 'timeout' : 'broken'
  if (status >= 500) return 'failure'
  if (status >= 400) return 'refusal'
  return status >= 300 ? 'redirect' : 'success'
}

const RIGHT: Readonly<Record<Expectation, readonly Kind[]>> = {
  taken: ['success'],
  refused: ['refusal'],
  survived: ['success', 'refusal'],
  answered: ['success', 'redirect', 'refusal', 'failure'],
  not_taken: ['redirect', 'refusal', 'failure', 'timeout', 'broken'],
}

export const LOST: Readonly<Record<Kind, string>> = {
  success: '',
  redirect:
    'Redirects are not followed: the message is lost. Answer at this URL, or give the sender the URL that it leads to.',
  refusal: 'A 4xx is not retried: the message is lost.',
  failure: 'A 5xx is retried for up to four hours, always with the same bytes. See the log of the endpoint.',
  timeout: 'A sender stops after 5 s and sends the message again later. Answer first, and do slow work afterwards.',
  broken:
    'A sender sends such a message again for up to four hours. Answer every request, also when handling it fails.',
}

/** What a wrong answer to a request that must not be accepted means. */
const FORGED: Readonly<Record<Kind, string>> = {
  success: 'A 2xx takes it.',
  redirect: 'A refusal is a 4xx: answer 401.',
  refusal: '',
  failure: 'A 5xx says that the endpoint failed, and a sender retries it for up to four hours: answer 401.',
  timeout: 'A sender sends it again for up to four hours: answer 401 at once.',
  broken: 'A sender sends it again for up to four hours: answer 401.',
}

/** What a 5xx or no answer means for a body that may be accepted or refused. */
const FAILED: Readonly<Record<Kind, string>> = {
  ...LOST,
  redirect: 'A refusal is a 4xx: answer 400.',
  failure: 'A 5xx brings it back for up to four hours.',
}

export interface Known {
  /** The status of the answer to a forged message. */
  readonly forgedStatus?: number | undefined
  /** What changes the body before it is verified: a sentence. */
  readonly culprit?: string | undefined
  /** Whether nothing responds at the address since these requests. */
  readonly isDown?: boolean
}

export function judge(
  found: EndpointCase,
  requests: readonly CaseRequest[],
  exchanges: readonly Exchange[],
  known: Known = {},
): Result {
  const { id, section, severity, sends, advice } = found
  const expectationOf = (at: number): Expectation => (requests[at]?.isOpen ? 'answered' : found.expectation)
  const wrong = exchanges.findIndex((exchange, at) => !RIGHT[expectationOf(at)].includes(kindOf(exchange)))
  const revealing = exchanges.find(({ body }, at) => {
    const secret = requests[at]?.secret
    return secret !== undefined && body.includes(secret)
  })
  const durationMs = Math.round(Math.max(...exchanges.map((exchange) => exchange.durationMs)))
  const result = (result: Result['result'], got: string, ...meaning: readonly string[]): Result => {
    const sentence = [`Sent ${sends}. Got ${got}.`, ...meaning.filter((text) => text !== '')].join(' ')
    return { id, result, section, durationMs, sentence }
  }

  const exchange = exchanges[wrong]
  if (exchange === undefined) {
    if (revealing === undefined) return result('pass', [...new Set(exchanges.map(describe))].join(' and '))
    const got = `${describe(revealing)}, and the right signature in the body of the answer`
    return result('fail', got, 'Whoever forges a message reads it there: answer without it.')
  }
  const place = requests.length > 1 ? ` for request ${wrong + 1} of ${requests.length}` : ''
  const got = `${describe(exchange)}${place}`
  if (known.isDown) {
    return result('fail', `${got}, and nothing responds since then`, 'One request must not end the server.', advice)
  }
  return result(severity, got, ...explain(found, exchange, expectationOf(wrong), known))
}

const USE_BYTES = 'Verify the bytes as they arrived, before they are decoded or parsed.'
const UNVERIFIED = 'Each message with a forged signature gets the same: verify it, and answer 401 when it is wrong.'
const LIMITED = 'It limits how many requests it takes: a sender may post many messages in a short time.'
const OF_THEMSELVES: readonly unknown[] = [401, 404, 405, 408, 409, 413, 415]

function explain(found: EndpointCase, exchange: Exchange, expectation: Expectation, known: Known): readonly string[] {
  const { forgedStatus, culprit } = known
  const { advice } = found
  const { status = 0, body } = exchange
  const kind = kindOf(exchange)
  if (expectation === 'answered') return [LOST[kind]]
  if (expectation === 'survived') return [FAILED[kind], advice]
  if (expectation !== 'taken') {
    const saysError = /error|invalid|unauthori[sz]ed|forbidden|denied|mismatch/i.test(body.toString('latin1'))
    const says = kind === 'success' && saysError ? 'A sender reads the status, not the body.' : ''
    const isGeneral = status === (forgedStatus ?? 401) && kind !== 'refusal'
    return [FORGED[kind], says, isGeneral ? UNVERIFIED : advice]
  }
  if (status === 429) return [LOST[kind], LIMITED, advice]
  const isOfContent =
    kind === 'refusal' &&
    found.how === undefined &&
    forgedStatus !== undefined &&
    status !== forgedStatus &&
    !OF_THEMSELVES.includes(status)
  const content = isOfContent
    ? `A forged message gets ${forgedStatus}: here the signature was right, but not the content.`
    : ''
  if (!found.isExact) return [LOST[kind], content, advice]
  if (kind !== 'refusal' || isOfContent) {
    return [LOST[kind], content, 'It is correct JSON, in a form that some senders write: take it.']
  }
  return [LOST[kind], culprit ?? `It re-serialises or decodes the body before it verifies it. ${advice}`, USE_BYTES]
}

/** What came back, in a few words. It quotes no more of the endpoint than where it redirects to. */
export function describe({ status, headers, reason, error }: Exchange): string {
  if (error === 'timeout') return 'no complete answer within 5 s'
  if (error === 'reset') return 'no answer: the connection was closed'
  if (status === undefined) return `no answer that is HTTP (${String(reason).replace(/\.$/, '')})`
  const { location } = headers
  const isRedirect = typeof location === 'string' && status >= 300 && status < 400
  return isRedirect ? `${status} to ${location.replace(/[?#].*$/s, '')}` : `${status}`
}
