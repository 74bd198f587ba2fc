/** The whole path in one process and on one clock: client → collector → destination → what arrived. No sockets. */

import type { Dispatcher } from 'undici'
import { onTestFinished } from 'vitest'
import type { ClientOptions } from '../../src/collect/client-options.ts'
import type { CollectorOptions } from '../../src/collect/collector-options.ts'
import type { Collector, CollectorDestination } from '../../src/collect/collector-types.ts'
import { createClient } from '../../src/collect/create-client.ts'
import { createCollector } from '../../src/collect/create-collector.ts'
import { bodyTooLarge } from '../../src/host/body.ts'
import type { EndpointAnswer, EndpointRequest } from '../../src/host/endpoint.ts'
import type { CallType } from '../../src/protocol/type-table.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { type CapturedStep, capture, manualClock, type Script } from '../../src/testing.ts'

export const CLIENT_ADDRESS = '203.0.113.7'

export const CALLS = {
  page: { userId: 'u' },
  screen: { userId: 'u' },
  identify: { userId: 'u' },
  track: { userId: 'u', event: 'E' },
  alias: { userId: 'u', previousId: 'p' },
  group: { userId: 'u', groupId: 'g' },
} as const satisfies Record<CallType, object>

interface ClientRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly answer: EndpointAnswer
}

export interface PathOptions {
  /** The key of the client. Default: that of a source with the destination. `other key` is that of one without. */
  readonly writeKey?: string
  readonly others?: readonly CollectorDestination[]
  readonly client?: Partial<ClientOptions>
  readonly collector?: Partial<CollectorOptions>
  readonly destination?: Partial<DestinationOptions>
  /** What the customer's endpoint answers. Default: 200 to everything. */
  readonly script?: Script<CapturedStep>
}

export function layPath(options: PathOptions = {}) {
  const { writeKey = 'key', others = [], script = [200] } = options
  const clock = manualClock()
  const captured = capture({ script, clock })
  const reports: DeliveryReport[] = []
  const destination = createDestination({
    webhooks: [{ url: 'https://shop.example/webhooks' }],
    dispatcher: captured.dispatcher,
    clock,
    random: () => 0.5,
    onAttempt: (report) => reports.push(report),
    ...options.destination,
  })
  const collector = createCollector({
    sources: [
      { name: 'shop', writeKey: 'key', kind: 'web', destinations: [destination, ...others] },
      { name: 'other', writeKey: 'other key', destinations: [] },
    ],
    clock,
    ...options.collector,
  })
  const requests: ClientRequest[] = []
  const client = createClient(writeKey, {
    endpoint: 'https://collector.example/v1/batch',
    dispatcher: { dispatch: toCollector(collector, requests) },
    clock,
    ...options.client,
  })
  onTestFinished(async () => {
    await client.close({ timeoutMs: 0 })
    await destination.close({ graceMs: 0 })
  })

  return {
    clock,
    client,
    collector,
    destination,
    requests,
    captured,
    reports,
    async post(type: string, call: object, key = 'key') {
      const body = Buffer.from(JSON.stringify({ ...call, writeKey: key }))
      const answer = await collector.handle({
        method: 'POST',
        path: `/v1/${type}`,
        headers: { 'content-type': 'application/json' },
        query: '',
        remoteAddress: CLIENT_ADDRESS,
        readBody: readBody(body),
      })
      await clock.advance(0)
      return answer
    },
    async arrive() {
      const flushed = client.flush()
      await clock.advance(0)
      await flushed
      await clock.advance(0)
      return captured.messages
    },
  }
}

function readBody(bytes: Buffer): EndpointRequest['readBody'] {
  return (limit) => {
    if (bytes.length > limit) throw bodyTooLarge(limit)
    return { bytes, source: 'stream' }
  }
}

function toCollector(collector: Collector, requests: ClientRequest[]): Dispatcher['dispatch'] {
  return ({ path, method, headers, body }, handler) => {
    const controller = { abort() {}, aborted: false, paused: false, reason: null, pause() {}, resume() {} }
    handler.onRequestStart?.(controller as never, null)
    const bytes = Buffer.from(body as Uint8Array)
    const named = nameHeaders(headers)
    void collector
      .handle({
        method,
        path: path.replace(/\?.*$/, ''),
        headers: named,
        query: '',
        remoteAddress: CLIENT_ADDRESS,
        readBody: readBody(bytes),
      })
      ?.then((answer) => {
        requests.push({ headers: named, body: bytes, answer })
        handler.onResponseStart?.(controller as never, answer.status, answer.headers, '')
        handler.onResponseData?.(controller as never, Buffer.from(answer.body))
        handler.onResponseEnd?.(controller as never, {})
      })
    return true
  }
}

function nameHeaders(headers: unknown): Record<string, string> {
  const pairs = Array.isArray(headers)
    ? headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]]] : []))
    : Object.entries(headers as object)
  return Object.fromEntries(pairs.map(([name, value]) => [String(name).toLowerCase(), String(value)]))
}
