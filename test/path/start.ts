/** Everything between a client and a handler, on real sockets. */

import { onTestFinished } from 'vitest'
import { createCollector } from '../../src/collector.ts'
import { createReceiver, type Message } from '../../src/index.ts'
import { createDestination } from '../../src/sender.ts'
import { WRITE_KEY } from './clients.ts'
import type { Serve } from './frameworks.ts'

const sharedSecret = 'secret'

export async function startPath(serve: Serve) {
  const handled: { readonly message: Message; readonly verified: boolean }[] = []
  const receiver = createReceiver({ secret: sharedSecret })
  receiver.on('*', (message, { verified }) => void handled.push({ message, verified: verified !== false }))
  const webhooks = [{ url: await serve(receiver, '/webhooks') }]
  const destination = createDestination({ webhooks, sharedSecret })
  onTestFinished(() => void destination.close({ graceMs: 0 }))
  const collector = createCollector({
    sources: [{ name: 'shop', kind: 'web', writeKey: WRITE_KEY, destinations: [destination] }],
  })
  return {
    collector,
    url: await serve(collector, '/analytics'),
    handled,
    async settle(): Promise<readonly Message[]> {
      await destination.close()
      return handled.map(({ message }) => message)
    },
  }
}
