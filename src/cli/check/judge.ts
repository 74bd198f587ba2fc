/** What an answer means: right or wrong for its case, what it does to real messages, and what to do. */

import type { Result } from '../cases.ts'
import type { Exchange } from '../exchange.ts'
import type { EndpointCase, Expectation, Shot } from './endpoint-case.ts'

/** What came back. `broken`: no answer, or none that is HTTP. */
export type Kind = 'success' | 'redirect' | 'refusal' | 'failure' | 'timeout' | 'broken'

/** Sorts an exchange. */
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

const SLOW = 'A sender stops after 5 s and sends the message again later. Answer first, and do slow work afterwards.'
const SILENT =
  'A sender sends such a message again for up to four hours. Answer every request, also when handling it fails.'

/** What a wrong answer to a correct message means for real messages. */
export const LOST: Readonly<Record<Kind, string>> = {
  success: '',
  redirect:
    'Redirects are not followed: the message is lost. Answer at this URL, or give the sender the URL that it leads to.',
  refusal: 'A 4xx is not retried: the message is lost.',
  failure: 'A 5xx is retried for up to four hours, always with the same bytes. See the log of the endpoint.',
  timeout: SLOW,
  broken: SILENT,
}

/** What a wrong answer to a request that must not be taken means. */
const FORGED: Readonly<Record<Kind, string>> = {
  success: 'A 2xx takes it.',
  redirect: 'A refusal is a 4xx: answer 401.',
  refusal: '',
  failure: 'A 5xx says that the endpoint failed, and a sender retries it for up to four hours: answer 401.',
  timeout: 'A sender sends it again for up to four hours: answer 401 at once.',
  broken: 'A sender sends it again for up to four hours: answer 401.',
}

/** What a 5xx or no answer means for a body that may be taken or refused. */
const FAILED: Readonly<Record<Kind, string>> = {
  ...LOST,
  redirect: 'A refusal is a 4xx: answer 400.',
  failure: 'A 5xx brings it back for up to four hours.',
}

const UNKNOWN = 'It re-serialises or decodes the body before it verifies it.'

/** What is known of the endpoint when an answer is judged. */
export interface Known {
  /** The status of the answer to a forged message. */
  readonly forgedStatus?: number | undefined
  /** What changes the body before it is verified: a sentence. */
  readonly culprit?: string | undefined
  /** Whether nothing responds at the address since these requests. */
  readonly isDown?: boolean
}

/** Judges the answers to the requests of a case. */
export function judge(
  found: EndpointCase,
  shots: readonly Shot[],
  exchanges: readonly Exchange[],
  known: Known = {},
): Result {
  const { id, section, severity, sends, expectation } = found
  const durationMs = Math.round(Math.max(...exchanges.map((exchange) => exchange.durationMs)))
  const expectations = exchanges.map((_, index): Expectation => shots[index]?.expects ?? expectation)
  const wrong = exchanges.findIndex(
    (exchange, index) => !RIGHT[expectations[index] as Expectation].includes(kindOf(exchange)),
  )
  const exchange = exchanges[wrong]
  const place = shots.length > 1 ? ` for request ${wrong + 1} of ${shots.length}` : ''
  const revealing = exchanges.find(({ body }, index) => body.includes(shots[index]?.secret ?? NEVER))
  if (exchange === undefined && revealing !== undefined) {
    const sentence = `Sent ${sends}. Got ${describe(revealing)}, and the right signature in the body of the answer. Whoever forges a message reads it there: answer without it.`
    return { id, result: 'fail', section, durationMs, sentence }
  }
  if (exchange === undefined) {
    const answers = [...new Set(exchanges.map(describe))].join(' and ')
    return { id, result: 'pass', section, durationMs, sentence: `Sent ${sends}. Got ${answers}.` }
  }
  if (known.isDown) {
    const sentence = `Sent ${sends}. Got ${describe(exchange)}${place}, and nothing responds since then. One request must not end the server. ${found.advice}`
    return { id, result: 'fail', section, durationMs, sentence }
  }
  const meaning = explain(found, exchange, expectations[wrong] as Expectation, known)
  const sentence = [`Sent ${sends}. Got ${describe(exchange)}${place}.`, ...meaning].join(' ')
  return { id, result: severity, section, durationMs, sentence }
}

/** In no answer. */
const NEVER = '\0never'

function explain(found: EndpointCase, exchange: Exchange, expectation: Expectation, known: Known): readonly string[] {
  const kind = kindOf(exchange)
  if (expectation === 'answered') return [LOST[kind]]
  if (expectation === 'survived') return [FAILED[kind], found.advice]
  if (expectation !== 'taken') {
    const says = kind === 'success' && hasError(exchange) ? ['A sender reads the status, not the body.'] : []
    return [FORGED[kind], ...says, isGeneral(exchange, known) ? UNVERIFIED : found.advice]
  }
  const { forgedStatus } = known
  if (exchange.status === 429) return [LOST[kind], LIMITED, found.advice]
  const isContent = kind === 'refusal' && found.how === undefined && isOfContent(exchange, forgedStatus)
  const content = isContent
    ? [`A forged message gets ${forgedStatus}: here the signature was right, but not the content.`]
    : []
  if (found.group !== 'exact') return [LOST[kind], ...content, found.advice]
  if (kind !== 'refusal' || isContent)
    return [LOST[kind], ...content, 'It is correct JSON, in a form that some senders write: take it.']
  return [
    LOST[kind],
    `${known.culprit ?? `${UNKNOWN} ${found.advice}`} Verify the bytes as they arrived, before they are decoded or parsed.`,
  ]
}

const LIMITED = 'It limits how many requests it takes: a sender may post many messages in a short time.'

/** Statuses that say what is wrong themselves. */
const OF_THEMSELVES: readonly unknown[] = [401, 404, 405, 408, 409, 413, 415]

/** Whether a refusal is not for the signature: a forged message gets another. */
function isOfContent({ status }: Exchange, forgedStatus: number | undefined): boolean {
  return forgedStatus !== undefined && status !== forgedStatus && !OF_THEMSELVES.includes(status)
}

const UNVERIFIED = 'Each message with a forged signature gets the same: verify it, and answer 401 when it is wrong.'

/** Whether the answer says nothing of this case, because every forged message gets it. */
function isGeneral({ status }: Exchange, { forgedStatus = 401 }: Known): boolean {
  return status === forgedStatus && !(status >= 400 && status < 500)
}

/** What came back, in a few words. It quotes no more of the endpoint than where it redirects to. */
export function describe({ status, headers, reason, error }: Exchange): string {
  if (error === 'timeout') return 'no complete answer within 5 s'
  if (error === 'reset') return 'no answer: the connection was closed'
  if (status === undefined) return `no answer that is HTTP (${String(reason).replace(/\.$/, '')})`
  const { location } = headers
  const to =
    typeof location === 'string' && status >= 300 && status < 400 ? ` to ${location.replace(/[?#].*$/s, '')}` : ''
  return `${status}${to}`
}

/** Whether a body speaks of an error. */
function hasError({ body }: Exchange): boolean {
  return /error|invalid|unauthori[sz]ed|forbidden|denied|mismatch/i.test(body.toString('latin1'))
}
