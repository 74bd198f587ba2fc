/**
 * Serves a receiver from every host, in a process of its own. Its secret provider hangs, and its clock stands still. Sends the
 * ports. Answers `expire` when the deadline has passed, `held` with the bytes of buffers that garbage collection leaves, and a
 * list of requests when it has sent them to the Fetch adapter.
 */

import { serve } from '../../adapters/fetch.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { hosts } from '../support/hosts.ts'

const clock = manualClock()
const receiver = createReceiver({ secret: () => new Promise(() => {}), clock, onError: () => {} })
const running = await Promise.all(hosts.map((host) => host.start(receiver, 'nothing')))

const handle = serve(receiver)
/** A host holds the body of a request for as long as that is not at its end. */
const bodies: ReadableStream[] = []

function fetch({ headers, size, isWhole }: { headers: Record<string, string>; size: number; isWhole: boolean }): void {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.alloc(size))
      if (isWhole) controller.close()
    },
  })
  bodies.push(body)
  void handle(new Request('http://localhost/', { method: 'POST', headers, body, duplex: 'half' }))
}

process.on('message', async (message: 'expire' | 'held' | Parameters<typeof fetch>[0][]) => {
  if (Array.isArray(message)) message.forEach(fetch)
  if (message === 'expire') await clock.advance(4500)
  globalThis.gc?.()
  process.send?.(process.memoryUsage().arrayBuffers)
})
process.send?.(running.map(({ port }) => port))
