/** The collector without HTTP: a batch in, an answer out; and its floor, JSON.parse. */

import { createCollector } from 'hookline/collector'
import type { Queue } from 'hookline/queues'
import { createDestination } from 'hookline/sender'
import type { Contender } from '../contender.ts'
import { authorization, message, secret, writeKey } from '../message.ts'

/** Calls in a batch. */
const BATCH = 20

/**
 * What gets the batch: JSON.parse; a collector whose destination only counts; or one with so many destinations of the package, whose
 * queues take each job and forget it.
 */
export type CollectorKind = 'parse' | 'counting' | number

export async function openContender(kind: CollectorKind): Promise<Contender> {
  const bytes = batchBody()
  if (kind === 'parse') {
    return inBatches(async () => {
      if (JSON.parse(bytes.toString()).batch.length !== BATCH) throw new Error('Not a whole batch.')
    })
  }
  const destinations = kind === 'counting' ? [counter] : Array.from({ length: kind }, forgetful)
  const collector = createCollector({ sources: [{ name: 'bench', writeKey, destinations }] })
  const request = {
    method: 'POST',
    path: '/v1/batch',
    query: '',
    headers: { authorization, 'content-type': 'application/json', 'content-length': String(bytes.length) },
    remoteAddress: '127.0.0.1',
    readBody: () => ({ bytes, source: 'stream' as const }),
  }
  return inBatches(async () => {
    const answer = await collector.handle(request)
    if (answer?.body !== EXPECTED) throw new Error(`The collector answered ${JSON.stringify(answer)}`)
  })
}

/** The body of a batch, as clients post it. */
function batchBody(): Buffer {
  const { version: _, ...recorded } = message
  const batch = Array.from({ length: BATCH }, (_, index) => ({ ...recorded, messageId: `message-${index}` }))
  return Buffer.from(JSON.stringify({ batch, sentAt: message.timestamp }))
}

const EXPECTED = JSON.stringify({ success: true, accepted: BATCH, refused: [] })

function inBatches(post: () => Promise<void>): Contender {
  return {
    async run(messages) {
      for (let done = 0; done < messages; done += BATCH) await post()
    },
  }
}

const counter = {
  submit: async (submissions: readonly object[]) => submissions.map(() => ({ queued: true, id: 'an id' }) as const),
}

function forgetful() {
  const queue: Pick<Queue, 'push' | 'work'> = { push: async () => {}, work: () => () => {} }
  return createDestination({
    webhooks: [{ url: 'https://example.com/webhooks' }],
    sharedSecret: secret,
    queue: queue as Queue,
  })
}
