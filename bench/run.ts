/**
 * `npm run bench`: builds the package, then measures what was built against its peers and its own floor.
 * `-- [part …] [--rounds 25] [--against ../other] [--engine sqlite]`: by default all parts, on all engines.
 */

import { execSync } from 'node:child_process'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { compareClient, compareCollector } from './client/part.ts'
import { compareInspectors, compareServers } from './http/part.ts'
import { measureEncryption } from './inbox/encryption.ts'
import { measureMonth } from './inbox/month.ts'
import { compareBatches, compareHistory, compareInboxes } from './inbox/part.ts'
import { printMachine } from './machine.ts'
import {
  compareDepths,
  compareDrains,
  compareGroups,
  comparePeers,
  compareQueues,
  measureWakes,
} from './queues/part.ts'
import { engineNames, readEngine } from './queues/place.ts'
import { compareReceivers } from './receive/part.ts'
import type { RoundOptions } from './rounds.ts'
import { compareDestination, compareSender } from './sender/part.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '25' },
    against: { type: 'string' },
    engine: { type: 'string', multiple: true, default: [...engineNames] },
  },
})
const rounds = Number(values.rounds)
if (!(rounds > 0)) throw new TypeError('--rounds: must be a number above 0.')
const options: RoundOptions = { rounds, against: values.against && resolve(values.against) }
const engines = values.engine.map(readEngine)

const parts: Readonly<Record<string, () => Promise<void>>> = {
  http: () => compareServers(options),
  receive: () => compareReceivers(options),
  sender: () => compareSender(options),
  destination: () => compareDestination(options),
  client: () => compareClient(options),
  collector: () => compareCollector(options),
  inbox: () => compareInboxes(options),
  batches: () => compareBatches(engines, options),
  encryption: () => measureEncryption(rounds),
  drain: () => compareDrains(engines, options),
  depth: () => compareDepths(options),
  queues: () => compareQueues(options),
  history: async () => {
    await compareHistory(options)
    await measureMonth()
  },
  groups: () => compareGroups(engines, options),
  peers: async () => {
    await comparePeers(options)
    await measureWakes(engines)
  },
  inspector: () => compareInspectors(options),
}

const chosen = positionals.length === 0 ? Object.keys(parts) : positionals
for (const name of chosen) {
  if (!Object.hasOwn(parts, name))
    throw new TypeError(`${name}: no such part. There are ${Object.keys(parts).join(', ')}.`)
}

execSync('npm run --silent build -- --silent', { stdio: ['ignore', 'ignore', 'inherit'] })

printMachine()
for (const name of chosen) {
  const start = performance.now()
  await parts[name]?.()
  console.error(`${name}: ${((performance.now() - start) / 1000).toFixed(0)} s`)
}
