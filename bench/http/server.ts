/** One server in a process of its own: listens, says where, and reports what its process has used when asked. */

import type { AddressInfo } from 'node:net'
import type { CreateServer } from './contenders.ts'
import { handled } from './contenders.ts'
import { type ContenderName, type Framework, frameworks } from './frameworks.ts'

/** What the process has done since it started. */
export interface Usage {
  readonly requests: number
  /** User and system time, in microseconds. */
  readonly cpu: number
}

const [framework, name] = process.argv.slice(2) as [Framework, ContenderName]
const { contenders } = await frameworks[framework].load()
const createServer = contenders[name] as CreateServer
const server = await createServer()

server.listen(0, '127.0.0.1', () => {
  process.send?.((server.address() as AddressInfo).port)
})

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ requests: handled(), cpu: user + system } satisfies Usage)
})
process.on('disconnect', () => process.exit())
