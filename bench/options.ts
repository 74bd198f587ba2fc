/** What `npm run bench` takes on its command line. */

import { parseArgs } from 'node:util'
import { type EngineName, engineNames, readEngine } from './durable/place.ts'

/** The parts of the benchmark. */
const parts = [
  'http',
  'receive',
  'size',
  'sender',
  'destination',
  'client',
  'collector',
  'neighbours',
  'inbox',
  'drain',
  'depth',
] as const

type Part = (typeof parts)[number]

export interface BenchOptions {
  /** The parts to run. */
  readonly parts: readonly Part[]
  /** How long `http` and `inbox` measure each server in each round, in seconds. */
  readonly seconds: number
  readonly rounds: number
  /** What the slices of messages of the sending side are shares of: README.md says which. */
  readonly messages: number
  /** The most messages that wait in `depth`. */
  readonly waiting: number
  /** Of `inbox`, `drain` and `depth`. */
  readonly engines: readonly EngineName[]
}

/**
 * Reads the command line: `[part …] [--seconds 3] [--rounds 5] [--messages 100000] [--waiting 1000000] [--engine sqlite]`, all
 * parts and engines by default.
 *
 * @throws TypeError that names what is wrong.
 */
export function readOptions(): BenchOptions {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '5' },
      messages: { type: 'string', default: '100000' },
      waiting: { type: 'string', default: '1000000' },
      engine: { type: 'string', multiple: true, default: [...engineNames] },
    },
  })
  for (const name of positionals) {
    if (!parts.some((part) => part === name))
      throw new TypeError(`${name}: no such part. There are ${parts.join(', ')}.`)
  }
  return {
    parts: positionals.length === 0 ? parts : (positionals as Part[]),
    seconds: readNumber('seconds', values.seconds),
    rounds: readNumber('rounds', values.rounds),
    messages: readNumber('messages', values.messages),
    waiting: readNumber('waiting', values.waiting),
    engines: values.engine.map(readEngine),
  }
}

function readNumber(name: string, text: string): number {
  const value = Number(text)
  if (value > 0) return value
  throw new TypeError(`--${name}: must be a number above 0.`)
}
