/** `npm run bench`: builds the package, then measures what was built against its peers and its own floor. */

import { execSync } from 'node:child_process'
import { compareCollector } from './collect/part.ts'
import { measureMonth } from './durable/month.ts'
import {
  compareDepths,
  compareDrains,
  compareGroups,
  compareHistory,
  compareInboxes,
  comparePeers,
  compareQueues,
} from './durable/part.ts'
import { measureWakes } from './durable/wake.ts'
import { compareServers } from './http/part.ts'
import { compareInspectors } from './inspect/part.ts'
import { printMachine } from './machine.ts'
import { type Part, readOptions } from './options.ts'
import { compareReceivers } from './receive/part.ts'
import { compareClient, compareDestination, compareSender } from './send/part.ts'
import { printSize } from './size.ts'

const { parts, engines, ...options } = readOptions()

const measures: Readonly<Record<Part, () => unknown>> = {
  http: () => compareServers(options),
  receive: () => compareReceivers(options),
  size: printSize,
  sender: () => compareSender(options),
  destination: () => compareDestination(options),
  client: () => compareClient(options),
  collector: () => compareCollector(options),
  inbox: () => compareInboxes(options),
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

execSync('npm run --silent build -- --silent', { stdio: ['ignore', 'ignore', 'inherit'] })

printMachine()
for (const part of parts) {
  const start = performance.now()
  await measures[part]()
  console.error(`${part}: ${((performance.now() - start) / 1000).toFixed(0)} s`)
}
