/** The cases of a sender, in the order in which they are reported: what every request must be, and what must follow an answer. */

import { describeError } from '../../message/error.ts'
import { explainSignature } from '../../message/explain/explain-signature.ts'
import { isObject } from '../../message/json.ts'
import { parse } from '../../message/parse.ts'
import { verify } from '../../message/signature.ts'
import { kindOf, show } from '../../options/checks.ts'
import type { CaseFacts, Verdict } from '../report.ts'
import { counted } from '../terminal.ts'
import { type Arrival, type Ledger, type Scenario, type SeenMessage, SILENCE_MS } from './messages.ts'

interface Seen {
  readonly ledger: Ledger
  readonly secret: string
}

export type Finding = readonly [verdict: Verdict, sentence: string]

type Judge = (seen: Seen) => Finding

export interface SenderCase extends CaseFacts {
  readonly scenarios: readonly Scenario[]
  readonly judge: Judge
}

/** What is wrong with a request, or what says that when it is asked. */
type Check = (arrival: Arrival, seen: Seen) => string | (() => string) | undefined

/** Why the signature of a larger body is wrong takes seconds to find. */
const MAX_EXPLAINED_BYTES = 100_000

const checkPath: Check = ({ path }, { ledger }) =>
  path === ledger.path ? undefined : `The path must be that of the URL, ${ledger.path}. Got ${path}. Append nothing.`

const checkMethod: Check = ({ method }) => (method === 'POST' ? undefined : `The method must be POST. Got ${method}.`)

const checkContentType: Check = ({ headers: { 'content-type': type = 'none' } }) =>
  /^application\/json\s*(;|$)/i.test(type) ? undefined : `The content type must be application/json. Got ${type}.`

const checkUserAgent: Check = ({ headers }) =>
  headers['user-agent'] ? undefined : 'The header User-Agent must name the sender, for example Shop/1.0. Got none.'

const checkToken: Check = ({ headers }) => {
  const agent = headers['user-agent']
  if (!agent || /^[!#$%&'*+.^_`|~\w-]+\/1\.0$/.test(agent)) return undefined
  return `The header User-Agent must be a name and /1.0, for example Shop/1.0. Got ${agent}.`
}

const checkSignature: Check = ({ headers, bytes }, { secret }) => {
  const signature = headers['x-signature']
  if (signature === undefined) {
    return 'The header X-Signature must hold the signature. Got none. Sign the bytes of the body with HMAC-SHA1 and the secret.'
  }
  if (verify(bytes, signature, secret)) return undefined
  if (bytes.length > MAX_EXPLAINED_BYTES) {
    return 'The signature is not that of the bytes. See hookline verify for why.'
  }
  return () => explainSignature(bytes, signature, secret).message.replace(/\s+/g, ' ')
}

const checkOneMessage: Check = ({ bytes }) => {
  const list = readList(bytes)
  return (
    list &&
    `A body must be one JSON object. Got ${counted(list.messages.length, 'message')} ${list.where}. Send a request for each.`
  )
}

const checkMessage: Check = ({ bytes }) => {
  try {
    for (const message of readList(bytes)?.messages ?? [bytes]) parse(message)
    return undefined
  } catch (error) {
    return describeError(error)
  }
}

const checkVersion: Check = ({ bytes }) => {
  const message = parseSingle(bytes)
  if (!isObject(message) || message.type === 'delete' || message.version === 1) return undefined
  return `\`version\` must be 1. Got ${kindOf(message.version)}.`
}

const checkTimestamp: Check = ({ bytes }) => {
  const message = parseSingle(bytes)
  if (!isObject(message) || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(message.timestamp))) return undefined
  return `\`timestamp\` must be like 2026-01-15T09:30:00.000Z. Got ${show(message.timestamp)}.`
}

interface List {
  readonly messages: readonly Buffer[]
  readonly where: string
}

/** The messages of a body that does not hold one alone: the elements of an array, at the top or in a field, or the lines. */
function readList(bytes: Buffer): List | undefined {
  const value = parseJson(bytes.toString())
  if (Array.isArray(value)) return listOf(value, 'in an array')
  if (isObject(value) && value.type === undefined) {
    const [name, list] = Object.entries(value).find(([, inner]) => isListOfMessages(inner)) ?? []
    return Array.isArray(list) ? listOf(list, `in \`${name}\``) : undefined
  }
  if (value !== undefined) return undefined
  const lines = bytes
    .toString()
    .trim()
    .split(/\s*\n\s*/)
    .map(parseJson)
  return lines.length > 1 && !lines.includes(undefined) ? listOf(lines, 'in lines') : undefined
}

function listOf(values: readonly unknown[], where: string): List {
  return { messages: values.map((value) => Buffer.from(JSON.stringify(value))), where }
}

function isListOfMessages(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((each) => isObject(each) && each.type !== undefined)
}

/** Undefined also for a list of messages: another case judges that. */
function parseSingle(bytes: Buffer): unknown {
  return readList(bytes) === undefined ? parseJson(bytes.toString()) : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Judges every request, and names what is wrong with the first. A request without a body has a method and a path only. */
function judgeRequests(check: Check, expects: string, severity: Verdict): Judge {
  const needsBody = check !== checkPath && check !== checkMethod
  return (seen) => {
    const { arrivals, path } = seen.ledger
    const ours = arrivals.filter((arrival) => arrival.path === path || arrival.method === 'POST')
    const judged = ours.filter(({ method }) => !needsBody || (method !== 'GET' && method !== 'HEAD'))
    const faults = judged.flatMap((arrival) => check(arrival, seen) ?? [])
    const [first] = faults
    if (judged.length === 0) return ['skip', ours.length === 0 ? 'No request came.' : 'No request with a body came.']
    if (first === undefined) return ['pass', `Each had ${expects}.`]
    return [severity, `${faults.length} of ${judged.length} requests: ${typeof first === 'string' ? first : first()}`]
  }
}

const NONE: Finding = ['skip', 'No message came for it. Send as many as the command says.']

function find({ ledger }: Seen, scenario: Scenario): SeenMessage | undefined {
  return ledger.messages.find((message) => message.scenario === scenario)
}

function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(ms < 1_000 ? 2 : 1))} s`
}

function retried(scenario: Scenario, attempt = 1): Judge {
  return (seen) => {
    const message = find(seen, scenario)
    if (message === undefined) return NONE
    const [before, after] = message.arrivals.slice(attempt - 1)
    if (before?.endedAt === undefined) {
      return ['skip', 'No attempt ended before the end of the run: see the cases before it.']
    }
    if (after !== undefined) return ['pass', `Retried after ${seconds(after.at - before.endedAt)}.`]
    const waited = seconds(performance.now() - before.endedAt)
    const outcome = before.answer.status === undefined ? 'not answered' : `answered ${before.answer.status}`
    const advice =
      'A retry has the bytes or the messageId of the message. If it would come later, pass a longer --wait.'
    return ['fail', `A message that is ${outcome} must be retried. It did not come again within ${waited}. ${advice}`]
  }
}

const REFUSED = ['invalid', 'unauthorized', 'missing'] as const

const refusedOnce: Judge = (seen) => {
  const messages = REFUSED.flatMap((scenario) => find(seen, scenario) ?? [])
  for (const { arrivals } of messages) {
    const [first, again] = arrivals
    if (first?.isAnswered !== true || again === undefined) continue
    const after = `${seconds(again.at - (first.endedAt ?? first.at))} after it was answered ${first.answer.status}`
    return ['fail', `A message that is answered 4xx must not be retried. It came again ${after}.`]
  }
  if (messages.length < REFUSED.length) return NONE
  return ['pass', `Not sent again after ${messages.map(({ arrivals }) => arrivals[0]?.answer.status).join(', ')}.`]
}

const takenOnce: Judge = (seen) => {
  for (const { number, arrivals } of seen.ledger.messages) {
    const taken = arrivals.findIndex(({ answer, isAnswered }) => answer.status === 200 && isAnswered === true)
    const again = arrivals[taken + 1]
    if (taken === -1 || again === undefined) continue
    const after = seconds(again.at - (arrivals[taken]?.endedAt ?? 0))
    const found = `Message ${number} came again after ${after}. If that was another message, give each a messageId of its own.`
    return ['fail', `A message that was answered 200 must not be sent again. ${found}`]
  }
  return find(seen, 'taken') === undefined ? NONE : ['pass', 'No message came again after a 200.']
}

/** How early or late a timeout may be seen here: connecting and busy machines take their part. */
const TOO_EARLY_MS = 4_200
const TOO_LATE_MS = 7_000

const timesOut: Judge = (seen) => {
  const [first, second] = find(seen, 'silent')?.arrivals ?? []
  if (first === undefined) return NONE
  const end = Math.min(first.endedAt ?? Number.POSITIVE_INFINITY, second?.at ?? Number.POSITIVE_INFINITY)
  if (end === Number.POSITIVE_INFINITY) return ['skip', 'The run ended before the sender gave up.']
  const waited = end - first.at
  const rule = 'An attempt without a response must be given up after 5 s.'
  if (waited < TOO_EARLY_MS) return ['fail', `${rule} The sender waited ${seconds(waited)} only: endpoints have 5 s.`]
  if (waited >= SILENCE_MS - 100) return ['fail', `${rule} After ${seconds(waited)} the sender still waited.`]
  if (waited > TOO_LATE_MS) return ['fail', `${rule} The sender waited ${seconds(waited)}.`]
  return ['pass', `Gave up after ${seconds(waited)}.`]
}

const waitsForSlow: Judge = (seen) => {
  const first = find(seen, 'slow')?.arrivals[0]
  if (first === undefined) return NONE
  if (first.endedAt === undefined) return ['skip', 'The run ended before it was answered.']
  if (first.isAnswered) return ['pass', 'Waited for an answer that took 4 s.']
  return ['fail', `An endpoint has 5 s to answer. The sender gave up after ${seconds(first.endedAt - first.at)}.`]
}

const identical: Judge = ({ ledger }) => {
  const retries = ledger.messages.filter(({ arrivals }) => arrivals.length > 1)
  for (const { arrivals, number } of retries) {
    const [first, ...rest] = arrivals as [Arrival, ...Arrival[]]
    if (rest.some(({ bytes }) => !bytes.equals(first.bytes))) {
      const rule = `A retry must carry the identical bytes. Message ${number} came again with others.`
      return ['fail', `${rule} Serialise it once, and keep the bytes.`]
    }
    if (rest.some(({ headers }) => headers['x-signature'] !== first.headers['x-signature'])) {
      return ['fail', `A retry must carry the identical signature. Message ${number} came again with another one.`]
    }
  }
  if (retries.length === 0) return ['skip', 'No message came again.']
  return ['pass', 'Each retry had the bytes and the signature of the first attempt.']
}

/** The case that needs `--tls`, and that nothing else is checked with. */
export const SELF_SIGNED: CaseFacts = {
  id: 'self-signed',
  sends: 'shows a self-signed certificate, with --tls',
  expects: 'no request',
  section: 'Authentication 4',
  severity: 'fail',
}

type RequestRow = readonly [
  id: string,
  expects: string,
  section: string,
  check: Check,
  severity?: CaseFacts['severity'],
]

const DELIVERY = 'Outbound delivery'
const FIELDS = 'Delivered message fields'

const REQUESTS: readonly RequestRow[] = [
  ['path', 'the path of the URL, and nothing more', DELIVERY, checkPath],
  ['method', 'POST', DELIVERY, checkMethod],
  ['content-type', 'application/json', DELIVERY, checkContentType],
  ['user-agent', 'a User-Agent', DELIVERY, checkUserAgent],
  ['signature', 'the signature of its exact bytes', 'Authentication 2', checkSignature],
  ['one-message', 'one message', DELIVERY, checkOneMessage],
  ['message', 'a valid message', FIELDS, checkMessage],
  ['user-agent-form', 'a User-Agent like Shop/1.0', DELIVERY, checkToken, 'warn'],
  ['version', '`version` 1', FIELDS, checkVersion, 'warn'],
  ['timestamp', 'a `timestamp` like 2026-01-15T09:30:00.000Z', FIELDS, checkTimestamp, 'warn'],
]

type AnswerRow = readonly [id: string, sends: string, expects: string, section: string, Judge, ...Scenario[]]

const ANSWERS: readonly AnswerRow[] = [
  ['taken-once', 'answers 200', 'no retry', 'Errors', takenOnce, 'taken'],
  ['slow-answer', 'answers 200 after 4 s', 'waits for it', 'Limits', waitsForSlow, 'slow'],
  ['retry-500', 'answers 500', 'a retry', 'Errors', retried('failed'), 'failed'],
  ['retry-again', 'answers the retry 500', 'another retry', 'Errors', retried('failed', 2), 'failed'],
  ['retry-503', 'answers 503', 'a retry', 'Errors', retried('unavailable'), 'unavailable'],
  ['retry-timeout', 'does not answer', 'a retry', 'Errors', retried('silent'), 'silent'],
  ['timeout', 'does not answer', 'gives up after 5 s', 'Limits', timesOut, 'silent'],
  ['identical-retry', 'answers 500', 'identical bytes and signature', 'Authentication 2', identical, 'failed'],
  ['refused-once', 'answers 400, 401 and 404', 'no retry', 'Errors', refusedOnce, ...REFUSED],
]

export const SENDER_CASES: readonly SenderCase[] = [
  ...REQUESTS.map(([id, expects, section, check, severity = 'fail']): SenderCase => {
    const judge = judgeRequests(check, expects, severity)
    return { id, sends: 'every request', expects, section, severity, scenarios: [], judge }
  }),
  ...ANSWERS.map(([id, sends, expects, section, judge, ...scenarios]): SenderCase => {
    return { id, sends, expects, section, severity: 'fail', scenarios, judge }
  }),
]
