/** Runs the cases against an endpoint, one at a time, within a minute. Stops after two timeouts or two 429 answers. */

import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { createPoster, type Exchange } from '../../../../src/internals.ts'
import type { Report } from '../report.ts'
import { type EndpointCase, PLAIN } from './cases.ts'
import { judge, kindOf, type Sent } from './judge.ts'
import { type Base, type CaseRequest, DEFAULT_FORM } from './message.ts'
import { findCulprit } from './mistakes.ts'
import { findPlain } from './plain.ts'

export interface Target extends Omit<Base, 'form'> {
  readonly url: URL
  readonly signal: AbortSignal
}

/** The latest time to start a case, in milliseconds after the run started. */
const LAST_START_MS = 50_000
/** The time to end the run, in milliseconds after the run started. */
const END_MS = 58_000
/** After this many timeouts or 429 answers, further cases would prove nothing. */
const LIMIT = 2
const UNPROVEN = 'Not sent: no plain message was accepted. See plain-message.'
const LATE = 'Not sent: a run takes at most a minute. Pass --only to run selected cases.'

export async function runCases(cases: readonly EndpointCase[], target: Target, report: Report): Promise<void> {
  const { url, secret, request } = target
  const started = performance.now()
  const signal = AbortSignal.any([target.signal, AbortSignal.timeout(END_MS)])
  let [timeouts, limited, isDown] = [0, 0, false]
  const count = (exchanges: readonly Exchange[]): void => {
    if (exchanges.some((exchange) => kindOf(exchange) === 'timeout')) timeouts += 1
    if (exchanges.some(({ status }) => status === 429)) limited += 1
  }

  let last: Exchange | undefined
  const { form, isGood, forgedStatus, sentence, exchange } = await findPlain(async (request) => {
    if (last === undefined || timeouts < LIMIT) {
      last = await postAlone(url, request, signal)
      count([last])
    }
    return last
  }, target)
  if (signal.aborted) return
  if (form === undefined || !isGood || cases.includes(PLAIN)) {
    const durationMs = Math.round(exchange.durationMs)
    report.add({ id: PLAIN.id, result: isGood ? 'pass' : 'fail', section: PLAIN.section, sentence, durationMs })
  }

  /**
   * Cases that are not judged yet. Cases about exact bytes are judged together, because the refused ones show how the endpoint changes the
   * body.
   */
  const held: Sent[] = []
  const release = (): void => {
    const samples = held.flatMap(({ found, requests: [request], exchanges: [exchange] }) => {
      if (!found.isExact || request === undefined || exchange === undefined) return []
      return { text: String(request.body), isRefused: kindOf(exchange) === 'refusal' }
    })
    const known = { secret, forgedStatus, culprit: findCulprit(samples) }
    for (const sent of held.splice(0)) report.add(judge(sent, known))
  }

  for (const found of cases) {
    if (found === PLAIN) continue
    let reason = reasonToSkip(found)
    if (reason === undefined) {
      const requests = found.requests({ ...target, form: form ?? { ...DEFAULT_FORM, fields: request.fields } })
      const exchanges = await send(url, found, requests, signal)
      if (target.signal.aborted) break
      count(exchanges)
      if (exchanges.some((exchange) => kindOf(exchange) === 'broken')) {
        await delay(100) // A process that exits closes its connections first and stops listening a little later.
        isDown = (await createPoster(url).reach()) !== undefined
      }
      if (signal.aborted) reason = LATE
      else held.push({ found, requests, exchanges, isDown })
    }
    if (!found.isExact || reason !== undefined) release()
    if (reason === undefined) continue
    // Where the behaviour of the endpoint prevents the case from running, the case fails.
    const result = reason === UNPROVEN ? 'skip' : 'fail'
    report.add({ id: found.id, result, section: found.section, sentence: reason })
  }
  release()

  function reasonToSkip({ expectation }: EndpointCase): string | undefined {
    if (isDown) return 'Not sent: the endpoint no longer responds.'
    if (timeouts >= LIMIT) return 'Not sent: two requests got no complete answer within 5 s.'
    if (limited >= LIMIT) return 'Not sent: the endpoint limits the rate of requests. Raise the limit for checks.'
    if (form === undefined && expectation !== 'answered') return UNPROVEN
    return performance.now() - started < LAST_START_MS ? undefined : LATE
  }
}

async function send(
  url: URL,
  { how }: EndpointCase,
  requests: readonly CaseRequest[],
  signal: AbortSignal,
): Promise<readonly Exchange[]> {
  if (how === 'at_once') return Promise.all(requests.map((request) => postAlone(url, request, signal)))
  const poster = createPoster(url)
  const exchanges: Exchange[] = []
  for (const request of requests) {
    const exchange = await (how === 'kept_alive' ? post(poster, request, signal) : postAlone(url, request, signal))
    exchanges.push(exchange)
    if (exchange.error !== undefined) break
  }
  await poster.close()
  return exchanges
}

/** Sends one request on its own connection, so that the state of the connection cannot affect the next case. */
async function postAlone(url: URL, request: CaseRequest, signal: AbortSignal): Promise<Exchange> {
  const poster = createPoster(url)
  const exchange = await post(poster, request, signal)
  await poster.close()
  return exchange
}

function post(poster: ReturnType<typeof createPoster>, request: CaseRequest, signal: AbortSignal): Promise<Exchange> {
  const { body, headers, method = 'POST', isInPieces = false } = request
  if (!isInPieces) return poster.post(body, headers, { signal, method })
  const all = { ...headers, 'Content-Length': String(body.length) }
  return poster.post(Readable.from(halves(body)), all, { signal, method })
}

async function* halves(body: Buffer): AsyncGenerator<Buffer> {
  const middle = Math.floor(body.length / 2)
  yield body.subarray(0, middle)
  await delay(100)
  yield body.subarray(middle)
}
