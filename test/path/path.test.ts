/** All seven types from each client to the handlers of a receiver, over real sockets: each client on a framework, and each framework. */

import { expect, onTestFinished, test } from 'vitest'
import { createCollector } from '../../src/collector.ts'
import { createReceiver, type Endpoint, type Message } from '../../src/index.ts'
import { createDestination } from '../../src/sender.ts'
import { type Host, hosts } from '../support/hosts.ts'
import { CALLS, clients, TIME, WRITE_KEY } from './clients.ts'

const ALIAS = { 'User ID': 'user-1', 'Previous ID': 'anonymous-1', userId: 'user-1' }

const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const frameworks = hosts.filter(({ name }) => ['Express 5', 'Koa 3', 'Fastify 5'].includes(name))
const pairs = Object.entries(clients).flatMap(([client, given], index) =>
  // Each client, and each framework, in turn; ours on each of them.
  frameworks
    .filter((_, at) => client === 'hookline' || at === index % 3)
    .map((host) => ({ client, framework: host.name, given, host })),
)

/** Everything between a client and a handler. */
async function startPath(host: Host) {
  const serve = async (endpoint: Endpoint): Promise<string> => {
    const { port, close } = await host.start(endpoint, 'nothing')
    onTestFinished(close)
    return `http://127.0.0.1:${port}/webhooks`
  }
  const handled: { readonly message: Message; readonly verified: boolean }[] = []
  const receiver = createReceiver({ secret: 'secret' })
  receiver.on('*', (message, { verified }) => void handled.push({ message, verified: verified !== false }))
  const destination = createDestination({ webhooks: [{ url: await serve(receiver) }], sharedSecret: 'secret' })
  onTestFinished(() => void destination.close({ graceMs: 0 }))
  const collector = createCollector({
    sources: [{ name: 'shop', kind: 'web', writeKey: WRITE_KEY, destinations: [destination] }],
  })
  const settle = async () => {
    await destination.close()
    return handled.map(({ message }) => message)
  }
  return { collector, url: await serve(collector), handled, settle }
}

test.each(pairs)('what $client sends arrives on $framework', async ({ given: { types, time = TIME, run }, host }) => {
  const { url, collector, handled, settle } = await startPath(host)

  await run(url)
  expect(await collector.delete('user-1')).toEqual([{ source: 'shop', queued: 1 }])
  const messages = await settle()

  expect(handled.every(({ verified }) => verified)).toBe(true)
  expect(messages.map(({ type }) => type).sort()).toEqual([...types, 'delete'].sort())
  for (const message of messages) {
    if (message.type === 'delete') {
      expect(message).toEqual({ type: 'delete', userId: 'user-1', timestamp: expect.stringMatching(UTC) })
    } else {
      expect(message).toMatchObject({
        version: 1,
        timestamp: time,
        ...(message.type === 'alias' ? ALIAS : CALLS[message.type]),
      })
      expect(message.context).toMatchObject({ ip: '127.0.0.1', library: { name: expect.any(String) } })
    }
    expect(JSON.stringify(message)).not.toContain('the-key')
  }
})
