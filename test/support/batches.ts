/** A receiver that takes batches, in each way in which messages are handled, and what its handlers saw. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { onTestFinished } from 'vitest'
import type { Message } from '../../src/protocol/message.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { Delivery } from '../../src/receive/delivery.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { Received } from '../../src/receive/receiver-types.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { deliver, setUp } from './receive.ts'
import { until } from './until.ts'

export const WAYS = ['inline', 'dedupe', 'inbox'] as const
export type Way = (typeof WAYS)[number]

export const track = (userId: string, more: object = {}) => ({ type: 'track', event: 'Seen', userId, ...more })

export function setUpBatches(way: Way, options: ReceiverOptions = {}) {
  const clock = options.clock === undefined ? manualClock() : (options.clock as ReturnType<typeof manualClock>)
  const queue = memoryQueue({ clock })
  const ways: Record<Way, ReceiverOptions> = {
    inline: {},
    dedupe: { dedupe: memoryDedupe({ clock }) },
    inbox: { inbox: { queue, random: () => 0.5 } },
  }
  const set = setUp({ batches: true, ...ways[way], ...options, clock })
  const seen: { readonly message: Message; readonly delivery: Delivery }[] = []
  const handler = { run: (_message: Message, _delivery: Delivery): unknown => undefined }
  set.receiver.on('*', (message, delivery) => {
    seen.push({ message, delivery })
    return handler.run(message, delivery)
  })
  let isStarted = false
  return {
    ...set,
    clock,
    queue,
    seen,
    handler,
    users: () => seen.map(({ message }) => message.userId),
    async send(body: string): Promise<Received> {
      const received = await deliver(set.receiver, body)
      if (way === 'inbox') {
        if (!isStarted) set.receiver.start()
        isStarted = true
        await until(async () => {
          await clock.advance(0)
          const { waiting, active } = await queue.counts()
          return waiting + active === 0
        })
      }
      return received
    },
    post(messages: readonly unknown[]): Promise<Received> {
      return this.send(JSON.stringify(messages))
    },
  }
}

const CHANNELS = ['received', 'refused', 'stored', 'handled', 'failed'] as const

export function countEvents(): Record<(typeof CHANNELS)[number], number> {
  const counts = { received: 0, refused: 0, stored: 0, handled: 0, failed: 0 }
  for (const name of CHANNELS) {
    const hear = (): void => void counts[name]++
    subscribe(`hookline:${name}`, hear)
    onTestFinished(() => void unsubscribe(`hookline:${name}`, hear))
  }
  return counts
}
