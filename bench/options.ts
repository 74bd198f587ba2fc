/** What `npm run bench` takes on its command line. */

import { resolve } from 'node:path'
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
  'inbox',
  'drain',
  'depth',
  'queues',
  'history',
  'groups',
  'peers',
  'inspector',
] as const

export type Part = (typeof parts)[number]

export interface BenchOptions {
  /** The parts to run. */
  readonly parts: readonly Part[]
  readonly rounds: number
  /** Another checkout, whose build takes part as a further contender. */
  readonly against: string | undefined
  /** Of `drain`. */
  readonly engines: readonly EngineName[]
}

/**
 * Reads the command line: `[part …] [--rounds 25] [--against ../other] [--engine sqlite]`, all
 * parts and engines by default.
 *
 * @throws TypeError that names what is wrong.
 */
export function readOptions(): BenchOptions {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '25' },
      against: { type: 'string' },
      engine: { type: 'string', multiple: true, default: [...engineNames] },
    },
  })
  for (const name of positionals) {
    if (!parts.some((part) => part === name))
      throw new TypeError(`${name}: no such part. There are ${parts.join(', ')}.`)
  }
  return {
    parts: positionals.length === 0 ? parts : (positionals as Part[]),
    rounds: readNumber('rounds', values.rounds),
    against: values.against === undefined ? undefined : resolve(values.against),
    engines: values.engine.map(readEngine),
  }
}

function readNumber(name: string, text: string): number {
  const value = Number(text)
  if (value > 0) return value
  throw new TypeError(`--${name}: must be a number above 0.`)
}
