/** The script of an endpoint: checks the steps that a test writes, and provides one step for each request. */

import { validateHeaderName, validateHeaderValue } from 'node:http'
import { isUint8Array } from 'node:util/types'
import { invalidOption, kindOf, refuseUnknown, requireInteger, requireOneOf, show } from '../kit/checks.ts'
import type { RecordedRequest } from './recorder.ts'

/** An answer described in full. */
export interface ScriptedAnswer {
  /** The status, from 200 to 599. Default 200. */
  readonly status?: number
  /** The headers, for example `{ 'Retry-After': '120' }`. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** The body. Default: empty. */
  readonly body?: string | Uint8Array
  /** How long the endpoint waits before it answers, in milliseconds. Default 0. */
  readonly delayMs?: number
  /** The interval at which the endpoint sends one byte, endlessly, in place of a body; in milliseconds. */
  readonly dripMs?: number
}

/** A step that ends the connection with RST. */
export interface ScriptedReset {
  /**
   * When the connection ends. `headers`: after the headers of the request. `body`: after the whole request. `answer`: after the first half
   * of an answer. `chunk`: after the first chunk of an answer without a length.
   */
  readonly reset: 'headers' | 'body' | 'answer' | 'chunk'
}

/**
 * The response to one request: a status, an answer in full, a reset, or one of these names:
 *
 * - `hang`: the request is read but never answered.
 * - `drip`: the endpoint sends the headers of an answer, then a byte every 100 ms, endlessly.
 * - `reset`: the connection ends with RST once the request has been read.
 * - `close`: the connection ends properly (FIN), without an answer.
 * - `garbage`: the answer is not HTTP.
 */
export type Step = number | ScriptedAnswer | ScriptedReset | 'hang' | 'drip' | 'reset' | 'close' | 'garbage'

/** One step for each request; the last step is repeated. A function is called with the request and returns its step. */
export type Script<Steps = Step> = readonly (Steps | ((request: RecordedRequest) => Steps | Promise<Steps>))[]

export type Response =
  | { readonly kind: 'answer'; readonly answer: Answer; readonly delayMs: number; readonly dripMs: number | undefined }
  | { readonly kind: 'reset'; readonly after: ScriptedReset['reset']; readonly half?: Answer }
  | { readonly kind: 'fail'; readonly error: () => Error }
  | { readonly kind: 'hang' | 'close' | 'garbage' }

/** The answer to send. Header names are spelled as in the test. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export type PlannedResponse = Response | ((request: RecordedRequest) => Promise<Response>)

export interface ActiveScript {
  next(): PlannedResponse
  /**
   * Continues with these steps instead of the rest of the script.
   *
   * @throws TypeError that names the step.
   */
  replace(script: readonly unknown[]): void
}

/** Reads a step that only one kind of endpoint has; returns undefined for any other step. */
export type ReadExtraStep = (step: unknown) => Response | undefined

/**
 * Creates the script of an endpoint, which repeats its last step endlessly.
 *
 * @throws TypeError that names the invalid step.
 */
export function createScript(
  script: readonly unknown[] = [200],
  readExtra: ReadExtraStep = () => undefined,
): ActiveScript {
  let steps: readonly PlannedResponse[] = []
  let position = 0
  const active: ActiveScript = {
    next() {
      const step = steps[Math.min(position, steps.length - 1)] as PlannedResponse
      position += 1
      return step
    },
    replace(script) {
      if (!Array.isArray(script) || script.length === 0) {
        const advice = 'Pass at least one step, for example [500, 200].'
        throw invalidOption('script', 'must be a non-empty list', show(script), advice)
      }
      steps = script.map((step, index) => planStep(step, `script[${index}]`, readExtra))
      position = 0
    },
  }
  active.replace(script)
  return active
}

/** Checks a step now or, if a function returns the step, at each request. */
function planStep(step: unknown, name: string, readExtra: ReadExtraStep): PlannedResponse {
  if (typeof step !== 'function') return readStep(step, name, readExtra)
  return async (request) => readStep(await step(request), `${name}(request)`, readExtra)
}

function readStep(step: unknown, name: string, readExtra: ReadExtraStep): Response {
  const extra = readExtra(step)
  if (extra !== undefined) return extra
  if (typeof step === 'number') return readAnswer({ status: step }, name)
  if (typeof step === 'object' && step !== null) return 'reset' in step ? readReset(step, name) : readAnswer(step, name)
  switch (step) {
    case 'hang':
    case 'close':
    case 'garbage':
      return { kind: step }
    case 'drip':
      return readAnswer({ dripMs: 100 }, name)
    case 'reset':
      return { kind: 'reset', after: 'body' }
    default:
      throw invalidOption(name, 'must be a step', show(step), "Pass a status, an answer, or a name such as 'hang'.")
  }
}

function readReset(step: object & Record<'reset', unknown>, name: string): Response {
  refuseUnknown(step, ['reset'], `${name}.`)
  const after = requireOneOf(`${name}.reset`, step.reset, ['headers', 'body', 'answer', 'chunk'] as const)
  const half = HALF_ANSWERS[after]
  return half === undefined ? { kind: 'reset', after } : { kind: 'reset', after, half }
}

/** Answers that are cut off in the middle. An answer without a length is sent in chunks. */
const HALF_ANSWERS: Readonly<Partial<Record<ScriptedReset['reset'], Answer>>> = {
  answer: { status: 200, headers: { 'content-length': '16' }, body: Buffer.from('Half of ') },
  chunk: { status: 200, headers: {}, body: Buffer.from('Half of ') },
}

function readAnswer(step: ScriptedAnswer, name: string): Response {
  refuseUnknown(step, ['status', 'headers', 'body', 'delayMs', 'dripMs'], `${name}.`)
  const { status = 200, headers = {}, body = '', delayMs = 0, dripMs } = step
  requireInteger(`${name}.status`, status, 200, 599)
  requireHeaders(`${name}.headers`, headers)
  if (typeof body !== 'string' && !isUint8Array(body)) {
    throw invalidOption(`${name}.body`, 'must be text or bytes', kindOf(body), 'Pass a string or a Uint8Array.')
  }
  requireInteger(`${name}.delayMs`, delayMs, 0)
  if (dripMs !== undefined) requireInteger(`${name}.dripMs`, dripMs, 1)
  if (dripMs !== undefined && body !== '') {
    throw invalidOption(`${name}.dripMs`, 'cannot be combined with `body`', undefined, 'Remove `body` or `dripMs`.')
  }
  return { kind: 'answer', answer: { status, headers: { ...headers }, body: Buffer.from(body) }, delayMs, dripMs }
}

function requireHeaders(name: string, headers: unknown): void {
  if (typeof headers !== 'object' || headers === null || !Object.values(headers).every((x) => typeof x === 'string')) {
    throw invalidOption(
      name,
      'must be an object of strings',
      show(headers),
      "Pass, for example, { 'Retry-After': '120' }.",
    )
  }
  for (const [header, value] of Object.entries(headers)) {
    try {
      validateHeaderName(header)
      validateHeaderValue(header, value)
    } catch (error) {
      const found = `a header that Node.js refuses: ${(error as Error).message}`
      throw invalidOption(name, 'must contain only valid headers', found, 'Use only characters that HTTP allows.')
    }
  }
}
