/** The whole path in one process and on one clock: client → collector → destination → what arrived. No sockets. */

import type { Dispatcher } from 'undici'
import { onTestFinished } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import type { ClientOptions } from '../../src/client/options.ts'
import type { Collector } from '../../src/collector/api.ts'
import { createCollector } from '../../src/collector/collector.ts'
import type { CollectorOptions } from '../../src/collector/options.ts'
import type { DeliveryReport } from '../../src/destination/api.ts'
import { createDestination } from '../../src/destination/destination.ts'
import type { DestinationOptions } from '../../src/destination/options.ts'
import type { EndpointAnswer } from '../../src/http/endpoint.ts'
import { capture, manualClock, type Script } from '../../src/testing.ts'

/** The address that the client has, as the collector sees it. */
export const CLIENT_ADDRESS = '203.0.113.7'

/** A request that a client made of a collector. */
interface ClientRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly answer: EndpointAnswer
}

/** What the path is made of. */
export interface PathOptions {
  readonly client?: Partial<ClientOptions>
  readonly collector?: Partial<CollectorOptions>
  readonly destination?: Partial<DestinationOptions>
  /** What the customer's endpoint answers. Default: 200 to everything. */
  readonly script?: Script
}

/** Lays the path. */
export function layPath(options: PathOptions = {}) {
  const {
    client: clientOptions,
    collector: collectorOptions,
    destination: destinationOptions,
    script = [200],
  } = options
  const clock = manualClock()
  const captured = capture({ script })
  const reports: DeliveryReport[] = []
  const destination = createDestination({
    webhooks: [{ url: 'https://shop.example/webhooks' }],
    dispatcher: captured.dispatcher,
    clock,
    random: () => 0.5,
    onAttempt: (report) => reports.push(report),
    ...destinationOptions,
  })
  const collector = createCollector({
    sources: [{ name: 'shop', writeKey: 'key', kind: 'web', destinations: [destination] }],
    clock,
    ...collectorOptions,
  })
  const requests: ClientRequest[] = []
  const client = createClient('key', {
    endpoint: 'https://collector.example/v1/batch',
    dispatcher: { dispatch: toCollector(collector, requests) },
    clock,
    ...clientOptions,
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
    /** What the client sent to the collector. */
    requests,
    /** What arrived at the customer's endpoint. */
    captured,
    reports,
    /** Posts a call straight to the collector, and takes what comes of it all the way. */
    async post(type: string, call: object) {
      const body = Buffer.from(JSON.stringify({ ...call, writeKey: 'key' }))
      const answer = await collector.handle({
        method: 'POST',
        path: `/v1/${type}`,
        headers: { 'content-type': 'application/json' },
        query: '',
        signal: new AbortController().signal,
        remoteAddress: CLIENT_ADDRESS,
        readBody: () => ({ bytes: body, source: 'stream' }),
      })
      await clock.advance(0)
      return answer
    },
    /** Sends what is recorded all the way. */
    async arrive() {
      const flushed = client.flush()
      await clock.advance(0)
      await flushed
      await clock.advance(0)
      return captured.messages
    },
  }
}

/** Carries requests of undici's kind to a collector. */
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
        signal: new AbortController().signal,
        remoteAddress: CLIENT_ADDRESS,
        readBody: () => ({ bytes, source: 'stream' }),
      })
      ?.then((answer) => {
        requests.push({ path, headers: named, body: bytes, answer })
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
