/** What `npm run bench` takes on its command line. */

import { parseArgs } from 'node:util'

/** The parts of the benchmark. */
const parts = ['http', 'receive', 'size'] as const

type Part = (typeof parts)[number]

export interface BenchOptions {
  /** The parts to run. */
  readonly parts: readonly Part[]
  /** How long each server is measured in each round, in seconds. */
  readonly seconds: number
  readonly rounds: number
}

/**
 * Reads the command line: `[http] [receive] [size] [--seconds 3] [--rounds 5]`, all parts by default.
 *
 * @throws TypeError that names what is wrong.
 */
export function readOptions(): BenchOptions {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seconds: { type: 'string', default: '3' }, rounds: { type: 'string', default: '5' } },
  })
  for (const name of positionals) {
    if (!parts.some((part) => part === name))
      throw new TypeError(`${name}: no such part. There are ${parts.join(', ')}.`)
  }
  return {
    parts: positionals.length === 0 ? parts : (positionals as Part[]),
    seconds: readNumber('seconds', values.seconds),
    rounds: readNumber('rounds', values.rounds),
  }
}

function readNumber(name: string, text: string): number {
  const value = Number(text)
  if (value > 0) return value
  throw new TypeError(`--${name}: must be a number above 0.`)
}
