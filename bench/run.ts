/** `npm run bench`: builds the package, then measures what was built against its peers and its own floor. */

import { execFileSync } from 'node:child_process'
import { compareServers } from './http/compare.ts'
import { printMachine } from './machine.ts'
import { readOptions } from './options.ts'
import { installPeers } from './peers.ts'
import { compareWithFloor } from './receive.ts'
import { printSize } from './size.ts'

const { parts, rounds, seconds } = readOptions()

execFileSync('npm', ['run', '--silent', 'build', '--', '--silent'], { stdio: ['ignore', 'ignore', 'inherit'] })

printMachine()
if (parts.includes('http')) {
  installPeers()
  await compareServers(rounds, seconds)
}
if (parts.includes('receive')) await compareWithFloor(rounds)
if (parts.includes('size')) printSize()
