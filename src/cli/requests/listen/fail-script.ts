/** The script of `--fail`: what happens to the next requests before they are answered normally. */

import { InvalidArgumentError } from 'commander'
import { createScript, type Response, type Step } from '../../../testing/script.ts'

/** What happens to one request. */
interface FailStep {
  /** As the script has it: `timeout`. */
  readonly name: string
  /** Undefined: a normal answer, after `delayMs`. */
  readonly response?: Response
  readonly delayMs: number
}

/** A script in use: the step of the next request, and undefined when it is over. */
export type FailScript = () => FailStep | undefined

const NAMED: Readonly<Record<string, Step>> = { timeout: 'hang', reset: 'reset', close: 'close' }
const VALID =
  'Steps are a status from 200 to 599, timeout, reset, close and slow:MILLISECONDS, each with a count: 3x500,1xtimeout,2xreset,1xslow:3000.'

/** Parses the option. @throws InvalidArgumentError that shows valid steps. */
export function failScript(text: string): FailScript {
  const parts = text.split(',').map(readPart)
  let [part, used] = [0, 0]
  return () => {
    while (parts[part]?.count === used) [part, used] = [part + 1, 0]
    used += 1
    return parts[part]?.step
  }
}

function readPart(text: string): { readonly count: number; readonly step: FailStep } {
  const [, count = '1', name = ''] = /^\s*(?:(\d{1,6})\s*x\s*)?([a-z]+(?::\d{1,6})?|[2-5]\d\d)\s*$/i.exec(text) ?? []
  const step = readStep(name.toLowerCase())
  if (step === undefined || Number(count) === 0)
    throw new InvalidArgumentError(`'${text.slice(0, 40)}' is no step. ${VALID}`)
  return { count: Number(count), step }
}

function readStep(name: string): FailStep | undefined {
  const [, ms] = /^slow:(\d+)$/.exec(name) ?? []
  if (ms !== undefined) return { name, delayMs: Number(ms) }
  const step = /^\d+$/.test(name) ? Number(name) : Object.hasOwn(NAMED, name) ? NAMED[name] : undefined
  if (step === undefined) return undefined
  const response = createScript([step]).next() as Response // Not a function, so it is planned at once.
  return { name, response, delayMs: 0 }
}
