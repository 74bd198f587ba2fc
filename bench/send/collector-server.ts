/** The servers that take batches, a program of its own: a bare one, and a collector whose destination only counts. */

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createCollector } from 'hookline/collector'
import { serve } from 'hookline/node'
import { readBare } from '../http/contenders.ts'
import { BATCH, writeKey } from './message.ts'

/** What the process has done since it started. */
export interface Usage {
  readonly messages: number
  /** User and system time, in seconds. */
  readonly cpu: number
}

let messages = 0

const listeners = {
  bare: (): RequestListener => (request, response) => {
    readBare(request, (body) => {
      messages += JSON.parse(body.toString()).batch.length
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer)
    })
  },
  collector: (): RequestListener => {
    const destination = {
      async submit(submissions: readonly object[]) {
        messages += submissions.length
        return submissions.map(() => ({ queued: true, id: 'an id' }) as const)
      },
    }
    return serve(createCollector({ sources: [{ name: 'bench', writeKey, destinations: [destination] }] }))
  },
} as const satisfies Readonly<Record<string, () => RequestListener>>

/** The servers by their names. */
export type ServerName = keyof typeof listeners

/** The answer of both. */
const answer = JSON.stringify({ success: true, accepted: BATCH, refused: [] })

const server = createServer(listeners[process.argv[2] as ServerName]())
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ messages, cpu: (user + system) / 1e6 } satisfies Usage)
})
process.on('disconnect', () => process.exit())
