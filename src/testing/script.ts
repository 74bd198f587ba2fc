/** What a scripted endpoint does with each request: the steps a test writes, and what they mean. */

import { validateHeaderName, validateHeaderValue } from 'node:http'
import { refuseUnknown, requireWhole } from '../protocol/options.ts'
import type { RecordedRequest } from './recorder.ts'

/** An answer in full. */
export interface ScriptedAnswer {
  /** 200 to 599. Default 200. */
  readonly status?: number
  /** For instance `{ 'Retry-After': '120' }`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Default: nothing. */
  readonly body?: string | Uint8Array
  /** How long the answer is held back, in milliseconds. Default 0. */
  readonly delayMs?: number
  /** In place of a body: a byte each time so many milliseconds have passed, without end. */
  readonly dripMs?: number
}

/** Ends the connection with RST. */
export interface ScriptedReset {
  /**
   * When: the headers of the request are there; the whole request is; the first half of an answer was sent; or the first
   * chunk of an answer that does not say how long it is.
   */
  readonly reset: 'headers' | 'body' | 'answer' | 'chunk'
}

/**
 * What becomes of one request: a status; an answer in full; or
 *
 * - `hang`: it is read and never answered;
 * - `drip`: the headers of an answer, then a byte each 100 ms, without end;
 * - `reset`: the connection ends with RST once the request is there;
 * - `close`: the connection ends in order (FIN), without an answer;
 * - `garbage`: the answer is not HTTP.
 */
export type Step = number | ScriptedAnswer | ScriptedReset | 'hang' | 'drip' | 'reset' | 'close' | 'garbage'

/** One step for each request; the last is repeated. A function is asked what the step is. */
export type Script<Steps = Step> = readonly (Steps | ((request: RecordedRequest) => Steps | Promise<Steps>))[]

/** A step, complete and ready to play. */
export type Move =
  | { readonly kind: 'answer'; readonly answer: Answer; readonly delayMs: number; readonly dripMs: number | undefined }
  | { readonly kind: 'reset'; readonly after: ScriptedReset['reset']; readonly half?: Answer }
  | { readonly kind: 'fail'; readonly error: () => Error }
  | { readonly kind: 'hang' | 'close' | 'garbage' }

/** The answer itself. Header names are as the test wrote them. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What one request gets: a move, or a function that makes one. */
export type Cue = Move | ((request: RecordedRequest) => Promise<Move>)

/** A script as it is played. */
export interface Prompter {
  /** The cue for the next request. */
  next(): Cue
  /** Forgets what is left and goes on with these. @throws TypeError that names the step. */
  replace(script: readonly unknown[]): void
}

/** What a step is that only some players know, or undefined. */
export type ReadOther = (step: unknown) => Move | undefined

/**
 * Checks a script.
 *
 * @param readOther Knows further steps.
 * @throws TypeError that names the step.
 */
export function createPrompter(script: readonly unknown[] = [200], readOther: ReadOther = () => undefined): Prompter {
  let cues: readonly Cue[] = []
  let position = 0
  const prompter: Prompter = {
    next() {
      const cue = cues[Math.min(position, cues.length - 1)] as Cue
      position += 1
      return cue
    },
    replace(steps) {
      if (!Array.isArray(steps) || steps.length === 0) {
        throw new TypeError('script: must be a list of at least one step, for instance [500, 200].')
      }
      cues = steps.map((step, index) => readCue(step, `script[${index}]`, readOther))
      position = 0
    },
  }
  prompter.replace(script)
  return prompter
}

function readCue(step: unknown, name: string, readOther: ReadOther): Cue {
  if (typeof step !== 'function') return readStep(step, name, readOther)
  return async (request) => readStep(await step(request), `${name}(request)`, readOther)
}

function readStep(step: unknown, name: string, readOther: ReadOther): Move {
  const other = readOther(step)
  if (other !== undefined) return other
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
      throw new TypeError(
        `${name}: there is no step '${String(step)}'. Give a status, an answer, or one of those named.`,
      )
  }
}

function readReset(step: object & Record<'reset', unknown>, name: string): Move {
  refuseUnknown(step, ['reset'], `${name}.`)
  const { reset } = step
  if (reset === 'headers' || reset === 'body') return { kind: 'reset', after: reset }
  if (reset === 'answer' || reset === 'chunk') return { kind: 'reset', after: reset, half: HALF_ANSWERS[reset] }
  throw new TypeError(`${name}.reset: must be 'headers', 'body', 'answer' or 'chunk'.`)
}

/** What an answer that is cut off begins with. One without a length comes in chunks. */
const HALF_ANSWERS: Readonly<Record<'answer' | 'chunk', Answer>> = {
  answer: { status: 200, headers: { 'content-length': '16' }, body: Buffer.from('Half of ') },
  chunk: { status: 200, headers: {}, body: Buffer.from('Half of ') },
}

function readAnswer(step: ScriptedAnswer, name: string): Move {
  refuseUnknown(step, ['status', 'headers', 'body', 'delayMs', 'dripMs'], `${name}.`)
  const { status = 200, headers = {}, body = '', delayMs = 0, dripMs } = step
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError(`${name}: a status must be a whole number from 200 to 599.`)
  }
  requireHeaders(`${name}.headers`, headers)
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw new TypeError(`${name}.body: must be text or bytes.`)
  }
  requireWhole(`${name}.delayMs`, delayMs, 0)
  if (dripMs !== undefined) requireWhole(`${name}.dripMs`, dripMs, 1)
  if (dripMs !== undefined && body !== '') throw new TypeError(`${name}.dripMs: stands in place of a body.`)
  return { kind: 'answer', answer: { status, headers: { ...headers }, body: Buffer.from(body) }, delayMs, dripMs }
}

/** Lets headers pass that Node sends. */
function requireHeaders(name: string, headers: unknown): void {
  if (typeof headers !== 'object' || headers === null || !Object.values(headers).every((x) => typeof x === 'string')) {
    throw new TypeError(`${name}: must be an object of names and text.`)
  }
  for (const [header, value] of Object.entries(headers)) {
    try {
      validateHeaderName(header)
      validateHeaderValue(header, value)
    } catch (error) {
      throw new TypeError(`${name}: cannot be sent. ${(error as Error).message}.`)
    }
  }
}
