/** Runs the cases: listens, says what it waits for, and judges what arrived once nothing more is to come. */

import { EventEmitter, once } from 'node:events'
import type { Result } from '../cases.ts'
import { escaped, note, UsageError } from '../terminal.ts'
import type { SenderCase } from './cases.ts'
import { type Handshake, PATH, type Place, startEndpoint, startSecureEndpoint } from './endpoint.ts'
import { type Arrival, createLedger, type Ledger, SCENARIOS, type Scenario } from './messages.ts'
import type { Finding } from './requests.ts'
import { findWaits, type WaitSettings } from './waits.ts'

/** How to run. */
export interface RunSettings {
  readonly place: Place
  /** The longest time in which nothing happens. */
  readonly waitMs: number
  /** Ends the run with what was seen so far. */
  readonly signal: AbortSignal
  /** Called with the URL. */
  readonly onListening?: (url: string) => void
}

/**
 * Listens, and judges a sender by every message that arrives.
 *
 * @throws UsageError when no request came.
 */
export async function runCases(
  cases: readonly SenderCase[],
  secret: string,
  { place, waitMs, signal, onListening }: RunSettings,
): Promise<readonly Result[]> {
  const needed = new Set(cases.flatMap(({ scenarios }) => scenarios))
  const names = Object.keys(SCENARIOS) as readonly Scenario[]
  const scenarios = needed.size === 0 ? (['taken'] as const) : names.filter((name) => needed.has(name))
  const ledger = createLedger(scenarios, PATH)
  const news = new EventEmitter()
  const endpoint = await startEndpoint(place, {
    add(request) {
      const arrival = ledger.add(request)
      describe(arrival, ledger)
      news.emit('news')
      return arrival
    },
    onEnd: () => void news.emit('news'),
  })
  const count = scenarios.length === 1 ? '1 message' : `${scenarios.length} messages`
  note(`Listening at ${endpoint.url}`)
  note(`Send ${count} to it, each with a messageId or a timestamp of its own.`)
  onListening?.(endpoint.url)
  await waitUntilOver(ledger, { scenarios, startedAt: performance.now(), waitMs }, news, signal)
  const seen = { ledger, secret, path: PATH }
  // Judged first: closing ends what is under way.
  const results = cases.map(({ id, section, judge }) => {
    const [result, sentence] = judge(seen)
    return { id, section, result, sentence }
  })
  await endpoint.close()
  if (ledger.arrivals.length === 0 && !signal.aborted) throw nothingCame('request', waitMs)
  return results
}

function describe(arrival: Arrival, ledger: Ledger): void {
  const { method, path, bytes, answer } = arrival
  const message = ledger.messageOf(arrival)
  const attempt = message?.arrivals.length ?? 0
  const what =
    message === undefined
      ? escaped(`${method} ${path}`)
      : `Message ${message.number}${attempt > 1 ? `, attempt ${attempt}` : ''}`
  const delay = answer.delayMs === undefined ? '' : ` after ${answer.delayMs / 1000} s`
  note(`${what}, ${bytes.length} bytes: ${answer.status === undefined ? 'not answered' : `${answer.status}${delay}`}.`)
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
  settings: WaitSettings,
  news: EventEmitter,
  signal: AbortSignal,
): Promise<void> {
  let [said, isQuiet] = ['', true]
  while (!signal.aborted) {
    const now = performance.now()
    const waits = findWaits(ledger, settings, now)
    if (waits.length === 0) return
    const names = waits.map(({ what }) => what).join(', ')
    if (isQuiet && names !== said) {
      const end = Math.max(...waits.map(({ until }) => until))
      note(`Waiting for ${names}: ${Math.ceil((end - now) / 1000)} s at most.`)
      said = names
    }
    const rest = Math.min(...waits.map(({ until }) => until)) - now
    isQuiet = await isQuietFor(Math.min(rest, NEWS_MS), news, signal)
  }
}

/** How long after a handshake that was refused no request must come. */
const QUIET_MS = 2_000

/**
 * Listens with a self-signed certificate, and judges what a sender does.
 *
 * @throws UsageError when no connection came.
 */
export async function runHandshake({ place, waitMs, signal }: RunSettings): Promise<Finding> {
  const outcomes: Handshake[] = []
  const news = new EventEmitter()
  const endpoint = await startSecureEndpoint(place, (outcome) => {
    outcomes.push(outcome)
    news.emit('news')
  })
  note(`Listening at ${endpoint.url}`)
  note('Its certificate is self-signed. Send 1 message to it.')
  await isQuietFor(waitMs, news, signal)
  const end = performance.now() + Math.min(waitMs, QUIET_MS)
  while (outcomes.includes('refused') && !outcomes.includes('sent') && !signal.aborted && performance.now() < end) {
    await isQuietFor(end - performance.now(), news, signal)
  }
  await endpoint.close()
  if (outcomes.includes('sent')) {
    return [
      'fail',
      'A self-signed certificate must be refused. The sender sent its request. Let it verify certificates.',
    ]
  }
  if (outcomes.includes('plain')) return ['fail', 'The URL is https. The sender spoke http.']
  if (outcomes.includes('refused')) return ['pass', 'The sender ended the connection and sent no request.']
  if (!signal.aborted) throw nothingCame('connection', waitMs)
  return ['skip', 'No connection came.']
}

function nothingCame(what: string, waitMs: number): UsageError {
  return new UsageError(
    `No ${what} came within ${waitMs / 1_000} s. Send it to the URL above, or pass a longer --wait.`,
  )
}
