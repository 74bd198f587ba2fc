/** What the tests of the inspector share: requests without sockets, servers with them, and a journal that a test fills. */

import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { bodyTooLarge } from '../../../src/host/body.ts'
import type { Endpoint, EndpointHeaders } from '../../../src/host/endpoint.ts'
import { type Clock, systemClock } from '../../../src/kit/clock.ts'
import { createLog, type Log } from '../../../src/kit/log.ts'
import { listen } from '../../../src/testing/server.ts'
import { createEndpoint, type EndpointOptions, type InspectorEndpoint } from '../src/endpoint/endpoint.ts'
import { createHandler, type PageAnswer, type PageRequest } from '../src/endpoint/listener.ts'
import type { Inspector, KeepOptions } from '../src/index.ts'
import { createJournal, readKeep } from '../src/journal.ts'
import { createSeries } from '../src/series.ts'

export function closeLater(close: () => unknown): void {
  onTestFinished(async () => void (await close()))
}

export function logged(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = []
  const note = (_fields: object, text: string): unknown => lines.push(text)
  return { lines, log: createLog({ error: note, warn: note, info: note }, undefined, systemClock) }
}

/** A journal in memory with the plots, and how to read them. */
export function keptBy(clock: Clock, keep: KeepOptions = { messages: 20, refused: 5 }) {
  const journal = createJournal(readKeep(keep), clock, clock)
  const series = createSeries(clock)
  const rows = () => journal.changesSince(undefined).rows
  const detail = (id = rows()[0]?.id ?? 0) => journal.detail(id)
  const steps = (id?: number) => detail(id)?.steps.map(({ what }) => what)
  /** How often the plots count a success and a failure. */
  const counts = (part: string) => {
    const { done, failed } = series.readPart(part, 60)
    return [done, failed].map((each) => each.reduce((sum, count) => sum + count, 0))
  }
  return { journal, series, rows, detail, steps, counts }
}

export async function start(listener: RequestListener): Promise<string> {
  const { origin, close } = await listen(createServer(listener), 0)
  closeLater(close)
  return origin
}

export function serve({ handle }: Pick<InspectorEndpoint, 'handle'>): Promise<string> {
  return start(createHandler(handle, systemClock))
}

type Given = Partial<Pick<PageRequest, 'method' | 'query' | 'headers' | 'originalPath' | 'signal'>>
export type Asked = Given & { readonly remoteAddress?: string | undefined; readonly body?: unknown }

type AnyEndpoint = Endpoint | InspectorEndpoint | Inspector

/** Asks an endpoint without a socket, from this machine unless the request says otherwise; an inspector over one. */
export async function ask(endpoint: AnyEndpoint, path: string, request: Asked = {}): Promise<PageAnswer> {
  if ('handler' in endpoint) return askOverSocket(endpoint, path, request)
  const { method = 'GET', query = '', headers, body, signal = new AbortController().signal } = request
  const { originalPath = path } = request
  const answer = endpoint.handle({
    method,
    path,
    query,
    headers: { host: 'localhost:3000', ...headers },
    remoteAddress: 'remoteAddress' in request ? request.remoteAddress : '127.0.0.1',
    originalPath,
    signal,
    async readBody(limit) {
      const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
      if (bytes.length > limit) throw bodyTooLarge(limit)
      return { bytes, source: 'stream' }
    },
  })
  if (answer === undefined) throw new Error(`${path} is no route`)
  return answer as Promise<PageAnswer>
}

async function askOverSocket({ handler }: Inspector, path: string, request: Asked): Promise<PageAnswer> {
  const { method = 'GET', query = '', body } = request
  const headers = { host: 'localhost:3000', ...(request.headers as Record<string, string>) }
  const sent = httpRequest(`${await start(handler)}${path}?${query}`, { method, headers })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.setEncoding('utf8').on('error', () => {}) // The server of the test ends before the stream.
  const { statusCode: status = 0, headers: answered } = response
  const isStream = answered['content-type'] === 'text/event-stream'
  return { status, headers: answered as Record<string, string>, body: isStream ? response : await text(response) }
}

/** The header that lets the page in; without a token, the one that a POST needs. */
export function headerOf(inspector: Pick<Inspector, 'url'>): { readonly 'x-hookline-inspector': string } {
  try {
    const { hash } = new URL(inspector.url('http://localhost:3000'))
    return { 'x-hookline-inspector': hash.replace('#token=', '') }
  } catch {
    return { 'x-hookline-inspector': '1' } // `authorize` decides.
  }
}

export async function get(inspector: InspectorEndpoint | Inspector, path: string, query = ''): Promise<PageAnswer> {
  return ask(inspector, path, { query, headers: headerOf(inspector) })
}

export const OWN_HEADERS: EndpointHeaders = {
  ...{ 'x-hookline-inspector': '1', 'content-type': 'application/json' },
  ...{ origin: 'http://localhost:3000', 'sec-fetch-site': 'same-origin' },
}

export async function post(inspector: InspectorEndpoint | Inspector, path: string, body: unknown) {
  const headers = { ...OWN_HEADERS, ...headerOf(inspector) }
  const answer = await ask(inspector, path, { method: 'POST', headers, body })
  return { status: answer.status, body: JSON.parse(answer.body as string) as unknown }
}

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimeout(resolve, ms))
}

/** An endpoint over an empty journal, without parts unless they are given. Closed after the test. */
export function endpointOf(given: Partial<EndpointOptions> = {}): InspectorEndpoint {
  const { journal, series } = keptBy(systemClock)
  const clocks = { clock: systemClock, machine: systemClock }
  const options = { journal, series, parts: [], keep: { messages: 10, refused: 10 }, log: logged().log }
  const endpoint = createEndpoint({ ...options, ...clocks, ...given })
  closeLater(() => endpoint.close())
  return endpoint
}
