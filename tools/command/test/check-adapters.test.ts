/** `hookline check URL`, against a receiver behind each adapter: everything passes, with and without an inbox. */

import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { serve as serveFetch } from '../../../adapters/fetch.ts'
import type { Endpoint } from '../../../src/host/endpoint.ts'
import { memoryQueue } from '../../../src/queues-memory.ts'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import { hosts } from '../../../test/support/hosts.ts'
import { listenHere } from './command.ts'
import { findFaults, SECRET } from './endpoints/start.ts'

const sockets = hosts.filter(({ http }) => http === 1)

const starts: readonly (readonly [name: string, start: (endpoint: Endpoint) => Promise<number>])[] = [
  ...sockets.map(({ name, start }) => [name, startHost.bind(undefined, start)] as const),
  ['fetch', startFetch],
]

async function startHost(start: (typeof sockets)[0]['start'], endpoint: Endpoint): Promise<number> {
  const { port = 0, close } = await start(endpoint, 'nothing')
  onTestFinished(close)
  return port
}

async function startFetch(endpoint: Endpoint): Promise<number> {
  const handle = serveFetch(endpoint, { path: '/webhooks' })
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    const init = { method, headers: headers as Record<string, string>, body: Readable.toWeb(request), duplex: 'half' }
    const { status, headers: answered, body } = await handle(new Request(`http://localhost${url}`, init as RequestInit))
    response.writeHead(status, Object.fromEntries(answered))
    if (body === null) response.end()
    else Readable.fromWeb(body as never).pipe(response)
  })
  return Number(new URL(await listenHere(server)).port)
}

it.each(starts.flatMap(([name, start]) => [[name, false, start] as const, [name, true, start] as const]))(
  '%s, with an inbox: %s',
  async (_name, hasInbox, start) => {
    const inbox = hasInbox ? { inbox: memoryQueue({ name: 'inbox' }) } : {}
    const receiver = createReceiver({ secret: SECRET, onError: () => {}, ...inbox }).on('*', () => {})
    onTestFinished(async () => void (await receiver.close()))
    expect(await findFaults(`http://127.0.0.1:${await start(receiver)}/webhooks`)).toEqual({})
  },
)
