/** The endpoints of the soak's destination, in a process of their own: real servers that misbehave when they are asked to. */

import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Behaviour } from './phases.ts'

/** A question: how an endpoint is to behave, or what came so far. */
type Question = { readonly index: number; readonly behaviour: Behaviour } | 'totals'

/** What came so far. */
export interface EndpointTotals {
  /** Messages that one of the URLs took. */
  readonly taken: number
  /** Messages that a URL took once more. */
  readonly duplicates: number
  /** Posts whose message was taken and that were not answered to the end. */
  readonly cut: number
}

const SLOW_MS = 3_000
const URLS = 3

const taken = new Set<string>()
let duplicates = 0
let cut = 0

/** Starts a URL on any port. */
async function start(): Promise<{ readonly port: number; behave(behaviour: Behaviour): Promise<void> }> {
  const takenHere = new Set<string>()
  let behaviour: Behaviour = 'up'
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => answer(JSON.parse(Buffer.concat(parts).toString()), response))
  })

  function answer(message: { messageId: string; event: string }, response: Parameters<RequestListener>[1]): void {
    if (behaviour === '503') response.writeHead(503).end()
    else if (message.event === 'refused') response.writeHead(400).end()
    else if (behaviour !== 'hangs') take(message.messageId, response)
  }

  function take(id: string, response: Parameters<RequestListener>[1]): void {
    if (takenHere.has(id)) duplicates += 1
    takenHere.add(id)
    taken.add(id)
    response.once('close', () => {
      if (!response.writableFinished) cut += 1
    })
    if (behaviour === 'cut') response.socket?.destroy()
    else if (behaviour === 'slow') setTimeout(() => response.end(), SLOW_MS)
    else response.end()
  }

  await listen(server, 0)
  const { port } = server.address() as AddressInfo
  return {
    port,
    async behave(next) {
      if (next === 'gone' && behaviour !== 'gone') {
        server.close()
        server.closeAllConnections()
      }
      if (next !== 'gone' && behaviour === 'gone') await listen(server, port)
      behaviour = next
    },
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
}

const urls = await Promise.all(Array.from({ length: URLS }, start))
process.on('message', async (question: Question) => {
  if (question !== 'totals') await urls[question.index]?.behave(question.behaviour)
  process.send?.({ taken: taken.size, duplicates, cut } satisfies EndpointTotals)
})
process.on('disconnect', () => process.exit())
process.send?.(urls.map(({ port }) => port))
