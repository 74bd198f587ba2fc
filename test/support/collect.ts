/** A collector with one source (a site), what its destination was given, and a request sent to it without a host. */

import type { CollectorOptions } from '../../src/collect/collector-options.ts'
import { createCollector } from '../../src/collect/create-collector.ts'
import type { EndpointAnswer, EndpointRequest } from '../../src/host/endpoint.ts'
import type { HooklineError } from '../../src/protocol/error.ts'
import { isMeantFor } from '../../src/protocol/integrations.ts'
import { INTEGRATION_NAME } from '../../src/protocol/limits.ts'
import type { Queued, Submission } from '../../src/send/destination-types.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'

export const writeKey = 'the write key of the shop'

export type Delivered = Readonly<Record<string, unknown>>

/** A destination that keeps what it is given, each key once, and takes what is meant for it. */
export function recorder({ enabled = true } = {}) {
  const messages: Delivered[] = []
  const keys: (string | undefined)[] = []
  const take = ({ message, key }: Submission): Queued => {
    if (!enabled) return { queued: false, reason: 'switched_off' }
    if (!isMeantFor(INTEGRATION_NAME, message.integrations)) return { queued: false, reason: 'not_selected' }
    if (key === undefined || !keys.includes(key)) messages.push(JSON.parse(JSON.stringify(message)) as Delivered)
    keys.push(key)
    return { queued: true, id: 'an id' }
  }
  const recording = {
    ...{ messages, keys, submits: 0 },
    submit: async (submissions: readonly Submission[]): Promise<readonly Queued[]> => {
      recording.submits++
      return submissions.map(take)
    },
  }
  return recording
}

export function setUpCollector(options: Partial<CollectorOptions> = {}) {
  const clock: ManualClock = manualClock()
  const destination = recorder()
  const errors: HooklineError[] = []
  const collector = createCollector({
    sources: [{ name: 'shop', writeKey, kind: 'web', destinations: [destination] }],
    clock,
    onError: (error) => errors.push(error),
    ...options,
  })
  return { collector, destination, clock, errors, post: poster(collector) }
}

export function request(path: string, body: unknown, changes: Partial<EndpointRequest> = {}): EndpointRequest {
  const bytes = body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', authorization: basic(writeKey) },
    query: '',
    remoteAddress: '192.0.2.1',
    readBody: async () => ({ bytes, source: 'stream' }),
    ...changes,
  }
}

export function basic(user: string, password = ''): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

function poster(collector: { handle(request: EndpointRequest): Promise<EndpointAnswer> | undefined }) {
  return async (path: string, body: unknown, changes: Partial<EndpointRequest> = {}) => {
    const answer = await collector.handle(request(path, body, changes))
    if (answer === undefined) throw new Error(`nobody answers ${path}`)
    return { ...answer, json: answer.body === '' ? undefined : JSON.parse(answer.body) }
  }
}
