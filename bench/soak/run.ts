/**
 * Run as a program, after a build: loads an inbox at half of what it can take, then a destination whose endpoint goes through outages,
 * for half an hour each. `--minutes 5 --engine bullmq` changes that; `inbox` or `destination` takes one of them. Fails when messages
 * are missing, or memory or descriptors grew.
 */

import { parseArgs } from 'node:util'
import { printMachine } from '../machine.ts'
import { readEngine } from '../queues/place.ts'
import { soakDestination } from './destination.ts'
import { soakInbox } from './inbox.ts'

const parts = { inbox: soakInbox, destination: soakDestination }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: 'string', default: '30' }, engine: { type: 'string', default: 'sqlite' } },
})
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new TypeError('--minutes: must be a number above 0.')
const engine = readEngine(values.engine)
const names = positionals.length === 0 ? Object.keys(parts) : positionals
for (const name of names) {
  if (!Object.hasOwn(parts, name))
    throw new TypeError(`${name}: no such part. There are ${Object.keys(parts).join(', ')}.`)
}

printMachine()
for (const name of names) {
  const isGood = await parts[name as keyof typeof parts](engine, minutes)
  if (!isGood) process.exitCode = 1
}
