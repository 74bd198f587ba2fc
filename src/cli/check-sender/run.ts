/** Runs the cases: listens, says what it waits for, and judges what arrived once nothing more is to come. */

import { EventEmitter, once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { readStream } from '../../http/read-stream.ts'
import { createCertificate } from '../../testing/certificates.ts'
import { joinHeaders } from '../../testing/recorder.ts'
import { listenOn } from '../arguments.ts'
import type { Result } from '../report.ts'
import { counted, escaped, note, UsageError } from '../terminal.ts'
import type { Finding, SenderCase } from './cases.ts'
import { type Arrival, createLedger, findWaits, type Ledger, listScenarios, SILENCE_MS } from './messages.ts'

export interface RunSettings {
  readonly host: string
  readonly port: number
  readonly waitMs: number
  readonly signal: AbortSignal
  readonly onListening?: (url: string) => void
}

const PATH = '/webhooks'
const LIMIT = 5_000_000

/**
 * Listens, and judges a sender by every message that arrives.
 *
 * @throws UsageError when no request came, and for an address that cannot be listened at.
 */
export async function runCases(
  cases: readonly SenderCase[],
  secret: string,
  { host, port, waitMs, signal, onListening }: RunSettings,
): Promise<readonly Result[]> {
  const scenarios = listScenarios(cases.flatMap(({ scenarios }) => scenarios))
  const ledger = createLedger(scenarios, PATH)
  const news = new EventEmitter()
  const server = createServer(async (request, response) => {
    const at = performance.now()
    const body = await readStream(request, LIMIT, request.headers['content-length']).catch(() => undefined)
    if (body === undefined) return void response.destroy()
    const { method = '', url = '', rawHeaders } = request
    const [path = ''] = url.split('?', 1)
    const arrival = ledger.add({ method, path, headers: joinHeaders(rawHeaders), bytes: body.bytes, at })
    note(describe(arrival))
    news.emit('news')
    respond(arrival, response, () => void news.emit('news'))
  })
  const { origin, close } = await listenOn('--port', server, port, host)
  note(`Listening at ${origin}${PATH}`)
  note(`Send ${counted(scenarios.length, 'message')} to it, each with a messageId or a timestamp of its own.`)
  onListening?.(origin + PATH)
  await waitUntilOver(ledger, { count: scenarios.length, startedAt: performance.now(), waitMs }, news, signal)
  // Judged first: closing ends what is under way.
  const results = cases.map(({ id, section, judge }) => {
    const [result, sentence] = judge({ ledger, secret })
    return { id, section, result, sentence }
  })
  await close()
  if (ledger.arrivals.length === 0 && !signal.aborted) throw nothingCame('request', waitMs)
  return results
}

function respond(arrival: Arrival, response: ServerResponse, onEnd: () => void): void {
  const { status, delayMs = status === undefined ? SILENCE_MS : 0 } = arrival.answer
  const timer = setTimeout(() => {
    if (status === undefined) response.destroy()
    else response.writeHead(status, { 'content-length': '0' }).end()
  }, delayMs)
  response.on('close', () => {
    clearTimeout(timer)
    arrival.endedAt = performance.now()
    arrival.isAnswered = response.writableFinished
    onEnd()
  })
}

function describe({ method, path, bytes, answer, message }: Arrival): string {
  const attempt = message?.arrivals.length ?? 0
  const what = message && `Message ${message.number}${attempt > 1 ? `, attempt ${attempt}` : ''}`
  const delay = answer.delayMs === undefined ? '' : ` after ${answer.delayMs / 1000} s`
  const answered = answer.status === undefined ? 'not answered' : `${answer.status}${delay}`
  return `${what ?? escaped(`${method} ${path}`)}, ${bytes.length} bytes: ${answered}.`
}

/** Waits for news, or an interruption. Resolves to true when none came within this time. */
async function isQuietFor(ms: number, news: EventEmitter, signal: AbortSignal): Promise<boolean> {
  const end = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(Math.max(0, ms)))])
  return once(news, 'news', { signal: end }).then(
    () => false,
    () => !signal.aborted,
  )
}

/** What is waited for is said when nothing has happened for so long. */
const NEWS_MS = 1_000

async function waitUntilOver(
  ledger: Ledger,
  settings: Parameters<typeof findWaits>[1],
  news: EventEmitter,
  signal: AbortSignal,
): Promise<void> {
  let [said, isQuiet] = ['', true]
  while (!signal.aborted) {
    const now = performance.now()
    const waits = findWaits(ledger, settings, now)
    if (waits.length === 0) return
    const names = waits.map(({ what }) => what).join(', ')
    const ends = waits.map(({ until }) => until - now)
    if (isQuiet && names !== said) {
      note(`Waiting for ${names}: ${Math.ceil(Math.max(...ends) / 1000)} s at most.`)
      said = names
    }
    isQuiet = await isQuietFor(Math.min(NEWS_MS, ...ends), news, signal)
  }
}

/** How long after a handshake that was refused no request must come. */
const QUIET_MS = 2_000
/** The beginning of a handshake is longer. What is shorter is no sender: a probe of the port. */
const HELLO_BYTES = 50

/**
 * Listens with a self-signed certificate for `localhost` and 127.0.0.1, and judges what a sender does.
 *
 * @throws UsageError when no connection came, and for an address that cannot be listened at.
 */
export async function runHandshake({ host, port, waitMs, signal }: RunSettings): Promise<Finding> {
  /** `refused`: it began the handshake, and ended the connection without a request. `plain`: it spoke http. */
  type Outcome = 'refused' | 'sent' | 'plain'
  const outcomes = new Set<Outcome>()
  const news = new EventEmitter()
  const add = (outcome: Outcome): void => {
    outcomes.add(outcome)
    news.emit('news')
  }
  const sent = new Set<number | undefined>() // The socket of TLS and the one below it have the same remote port.
  const server = createSecureServer(createCertificate('self_signed').server, ({ socket }, response) => {
    sent.add(socket.remotePort)
    add('sent')
    response.writeHead(200, { 'content-length': '0', connection: 'close' }).end()
  })
  server.on('connection', (socket: Socket) => {
    const { remotePort } = socket
    // Some clients end the handshake with an alert; others just close.
    socket.on('close', () => !sent.delete(remotePort) && socket.bytesRead > HELLO_BYTES && add('refused'))
  })
  server.on('tlsClientError', ({ code }: NodeJS.ErrnoException) => code === 'ERR_SSL_HTTP_REQUEST' && add('plain'))
  const { origin, close } = await listenOn('--port', server, port, host)
  note(`Listening at ${origin}${PATH}`)
  note('Its certificate is self-signed. Send 1 message to it.')
  await isQuietFor(waitMs, news, signal)
  const end = performance.now() + Math.min(waitMs, QUIET_MS)
  while (outcomes.has('refused') && !outcomes.has('sent') && !signal.aborted && performance.now() < end) {
    await isQuietFor(end - performance.now(), news, signal)
  }
  await close()
  if (outcomes.has('sent')) {
    const found = 'The sender sent its request. Let it verify certificates.'
    return ['fail', `A self-signed certificate must be refused. ${found}`]
  }
  if (outcomes.has('plain')) return ['fail', 'The URL is https. The sender spoke http.']
  if (outcomes.has('refused')) return ['pass', 'The sender ended the connection and sent no request.']
  if (!signal.aborted) throw nothingCame('connection', waitMs)
  return ['skip', 'No connection came.']
}

function nothingCame(what: string, waitMs: number): UsageError {
  return new UsageError(
    `No ${what} came within ${waitMs / 1_000} s. Send it to the URL above, or pass a longer --wait.`,
  )
}
