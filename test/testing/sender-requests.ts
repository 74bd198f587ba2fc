/** The requests of each known sender, and a receiver that takes them. */

import { expect, onTestFinished } from 'vitest'
import type { ReceivedMessage } from '../../src/protocol/message.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { Delivery, DeliveryMethod } from '../../src/receive/delivery.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { KNOWN_SENDERS, type KnownSender } from '../../src/testing/known-senders.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { hosts } from '../support/hosts.ts'
import { until } from '../support/until.ts'

export const secret = 'a shared secret'
export const mapped = { order: { id: 7, total: 12.5 } }

/** What a receiver of each sender is created with, as docs/senders.md says it. */
const OPTIONS: Readonly<Record<KnownSender, ReceiverOptions>> = {
  segment: { secret },
  'segment-actions': { secret, methods: ['POST', 'PUT', 'PATCH'] },
  'customer.io': { secret, methods: ['POST', 'PUT', 'PATCH', 'DELETE'], batches: true },
  rudderstack: { header: { name: 'x-webhook-key', value: secret }, methods: ['POST', 'PUT', 'PATCH'] },
}

export function create(as: KnownSender, options: Partial<ReceiverOptions> = {}) {
  const handled: { readonly message: ReceivedMessage; readonly delivery: Delivery }[] = []
  const receiver = createReceiver({ onError: () => {}, ...OPTIONS[as], custom: true, ...options } as ReceiverOptions)
  receiver.on('*', (message, delivery) => void handled.push({ message, delivery }))
  return { receiver, handled }
}

/** Every request that a sender may make. */
export function requestsOf(as: KnownSender) {
  const { methods } = KNOWN_SENDERS[as]
  const how = (method?: DeliveryMethod) => ({ as, ...(method && { method }) }) as { as: 'rudderstack' }
  const single = Object.values(fixtures).map((message) => signedRequest(message, secret, how()))
  if (as === 'segment') return single
  const byMethod = methods.map((method) => signedRequest(fixtures.track, secret, how(method)))
  const batch = OPTIONS[as].batches ? [signedRequest([fixtures.track, fixtures.page, mapped], secret, how())] : []
  return [...single, ...byMethod, signedRequest(mapped, secret, how()), ...batch]
}

export const COUNTS: Readonly<Record<KnownSender, number>> = {
  segment: 7,
  'segment-actions': 7 + 3 + 1,
  'customer.io': 7 + 4 + 1 + 3,
  rudderstack: 7 + 3 + 1,
}

export async function checkInbox(as: KnownSender, queue: Queue): Promise<void> {
  const { receiver, handled } = create(as, { inbox: queue })
  onTestFinished(async () => void (await receiver.close()))
  const running = await (hosts.at(-1) as (typeof hosts)[number]).start(receiver, 'nothing')
  for (const { method, headers, bytes } of requestsOf(as)) {
    expect((await running.send({ method, headers, chunks: [bytes] }))?.status).toBe(200)
  }
  await running.close()
  receiver.start()
  await until(() => handled.length === COUNTS[as])
  const proof = as === 'rudderstack' ? 'header' : 'signature'
  expect(new Set(handled.map(({ delivery }) => delivery.verified))).toEqual(new Set([proof]))
  expect(await receiver.deadLetters()).toEqual([])
}
