/** `npm run bench`: builds the package, then measures what was built against its peers and its own floor. */

import { execFileSync } from 'node:child_process'
import { compareDepths } from './durable/depth.ts'
import { compareDrains } from './durable/drain.ts'
import { compareInboxes } from './durable/inbox.ts'
import { compareServers } from './http/compare.ts'
import { printMachine } from './machine.ts'
import { readOptions } from './options.ts'
import { installPeers } from './peers.ts'
import { compareWithFloor } from './receive.ts'
import { compareClients } from './send/clients.ts'
import { compareCollector } from './send/collector.ts'
import { compareNeighbours } from './send/neighbours.ts'
import { compareDestination } from './send/queued.ts'
import { compareSender } from './send/single.ts'
import { printSize } from './size.ts'

const { parts, rounds, seconds, messages, waiting, engines } = readOptions()

execFileSync('npm', ['run', '--silent', 'build', '--', '--silent'], { stdio: ['ignore', 'ignore', 'inherit'] })

printMachine()
if (parts.includes('http')) {
  installPeers()
  await compareServers(rounds, seconds)
}
if (parts.includes('receive')) await compareWithFloor(rounds)
if (parts.includes('size')) printSize()
if (parts.includes('sender')) await compareSender(rounds, messages)
if (parts.includes('destination')) await compareDestination(rounds, messages)
if (parts.includes('client')) await compareClients(rounds, messages)
if (parts.includes('collector')) await compareCollector(rounds, messages)
if (parts.includes('neighbours')) await compareNeighbours(rounds, messages)
if (parts.includes('inbox')) {
  installPeers()
  await compareInboxes(engines, rounds, seconds)
}
if (parts.includes('drain')) await compareDrains(engines, rounds, messages)
if (parts.includes('depth')) await compareDepths(engines, rounds, messages, waiting)
