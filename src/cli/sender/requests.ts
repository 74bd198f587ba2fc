/** What each request of a sender must be. */

import { HooklineError } from '../../message/error.ts'
import { explainSignature } from '../../message/explain/explain-signature.ts'
import { isObject } from '../../message/json.ts'
import { parse } from '../../message/parse.ts'
import { verify } from '../../message/signature.ts'
import { kindOf, show } from '../../options/checks.ts'
import type { Verdict } from '../cases.ts'
import type { Arrival, Ledger } from './messages.ts'

/** What a case is judged by. */
export interface Seen {
  readonly ledger: Ledger
  readonly secret: string
  /** The path of the URL. */
  readonly path: string
}

/** What a case found, and in what words. */
export type Finding = readonly [verdict: Verdict, sentence: string]

/** Judges a case by what was seen. */
export type Judge = (seen: Seen) => Finding

/** What is wrong with a request, or what says that when it is asked. */
export type Check = (arrival: Arrival, seen: Seen) => string | (() => string) | undefined

/** Judges every request that has a body, and names what is wrong with the first. */
export function each(check: Check, good: string, severity: Verdict = 'fail'): Judge {
  return (seen) => judgeEach(check, good, severity, seen, ({ method }) => method !== 'GET' && method !== 'HEAD')
}

/** Judges every request, those to other paths included. */
export function every(check: Check, good: string): Judge {
  return (seen) => judgeEach(check, good, 'fail', seen, () => true)
}

function judgeEach(
  check: Check,
  good: string,
  severity: Verdict,
  seen: Seen,
  isJudged: (arrival: Arrival) => boolean,
): Finding {
  const { ledger, path } = seen
  const ours = ledger.arrivals.filter((arrival) => arrival.path === path || arrival.method === 'POST')
  const arrivals = ours.filter(isJudged)
  const faults = arrivals.flatMap((arrival) => check(arrival, seen) ?? [])
  const [first] = faults
  if (arrivals.length === 0) return ['skip', ours.length === 0 ? 'No request came.' : 'No request with a body came.']
  if (first === undefined) return ['pass', good]
  return [severity, `${faults.length} of ${arrivals.length} requests: ${typeof first === 'string' ? first : first()}`]
}

export const checkPath: Check = ({ path }, { path: expected }) =>
  path === expected ? undefined : `The path must be that of the URL, ${expected}. Got ${path}. Append nothing.`

export const checkMethod: Check = ({ method }) =>
  method === 'POST' ? undefined : `The method must be POST. Got ${method}.`

export const checkContentType: Check = ({ headers }) => {
  const type = headers['content-type']
  if (type?.split(';')[0]?.trim().toLowerCase() === 'application/json') return undefined
  return `The content type must be application/json. Got ${type ?? 'none'}.`
}

export const checkUserAgent: Check = ({ headers }) =>
  headers['user-agent'] ? undefined : 'The header User-Agent must name the sender, for example Shop/1.0. Got none.'

export const checkToken: Check = ({ headers }) => {
  const agent = headers['user-agent']
  if (!agent || /^[!#$%&'*+.^_`|~\w-]+\/1\.0$/.test(agent)) return undefined
  return `The header User-Agent must be a name and /1.0, for example Shop/1.0. Got ${agent}.`
}

/** Why the signature of a larger body is wrong takes seconds to find. */
const LARGEST = 100_000

export const checkSignature: Check = ({ headers, bytes }, { secret }) => {
  const signature = headers['x-signature']
  if (signature === undefined) {
    return 'The header X-Signature must hold the signature. Got none. Sign the bytes of the body with HMAC-SHA1 and the secret.'
  }
  if (verify(bytes, signature, secret)) return undefined
  if (bytes.length > LARGEST) return 'The signature is not that of the bytes. See hookline verify for why.'
  return () => explainSignature(bytes, signature, secret).message.replace(/\s+/g, ' ')
}

export const checkOneMessage: Check = ({ bytes }) => {
  const { messages, where } = readList(bytes) ?? {}
  if (messages === undefined) return undefined
  const count = `${messages.length} ${messages.length === 1 ? 'message' : 'messages'}`
  const got = where === '' ? `an array of ${count}` : `${count} ${where}`
  return `A body must be one JSON object. Got ${got}. Send a request for each.`
}

export const checkMessage: Check = ({ bytes }) => {
  for (const message of readList(bytes)?.messages ?? [bytes]) {
    try {
      parse(message)
    } catch (error) {
      if (error instanceof HooklineError) return error.message
      throw error
    }
  }
  return undefined
}

export const checkVersion: Check = ({ bytes }) => {
  const message = parseSingle(bytes)
  if (!isObject(message) || message.type === 'delete' || message.version === 1) return undefined
  return `\`version\` must be 1. Got ${kindOf(message.version)}.`
}

export const checkTimestamp: Check = ({ bytes }) => {
  const message = parseSingle(bytes)
  if (!isObject(message) || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(message.timestamp))) return undefined
  return `\`timestamp\` must be like 2026-01-15T09:30:00.000Z. Got ${show(message.timestamp)}.`
}

/** The messages of a body that does not hold one alone, and where they are: nowhere in particular in an array. */
interface List {
  readonly messages: readonly Buffer[]
  readonly where: string
}

/** The elements of an array, at the top or in a field, or the lines, that a body holds in place of one message. */
function readList(bytes: Buffer): List | undefined {
  const value = parseJson(bytes.toString())
  if (Array.isArray(value)) return { messages: value.map(write), where: '' }
  if (isObject(value) && value.type === undefined) {
    const field = Object.entries(value).find(([, inner]) => isListOfMessages(inner))
    return field && { messages: (field[1] as unknown[]).map(write), where: `in \`${field[0]}\`` }
  }
  if (value !== undefined) return undefined
  const lines = bytes
    .toString()
    .split('\n')
    .filter((line) => line.trim() !== '')
  const isList = lines.length > 1 && lines.every((line) => parseJson(line) !== undefined)
  return isList ? { messages: lines.map((line) => Buffer.from(line)), where: 'in lines' } : undefined
}

function isListOfMessages(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((each) => isObject(each) && each.type !== undefined)
}

function write(message: unknown): Buffer {
  return Buffer.from(JSON.stringify(message))
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
