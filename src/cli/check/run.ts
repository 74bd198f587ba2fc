/** Runs the cases against an endpoint: one at a time, within a minute, and not on after two timeouts. */

import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Result } from '../cases.ts'
import { createPoster, type Exchange, reach } from '../exchange.ts'
import type { Report } from '../report.ts'
import { type Found, findBase } from './base.ts'
import type { Base, EndpointCase, Shot } from './endpoint-case.ts'
import { judge, kindOf } from './judge.ts'
import { DEFAULT_FORM } from './message.ts'
import { PLAIN } from './message-cases.ts'
import { findCulprit, type Sample } from './mistakes.ts'

/** What to check. */
export interface Target extends Omit<Base, 'form'> {
  readonly url: URL
  /** Fires when the user ends the run. */
  readonly signal: AbortSignal
}

/** No case begins later, and none goes on after the end. */
const LAST_START_MS = 50_000
const END_MS = 58_000
/** After so many cases without an answer in time, or with a 429, the rest would say nothing. */
const LIMIT = 2

/** A case that was sent. */
interface Sent {
  readonly found: EndpointCase
  readonly shots: readonly Shot[]
  readonly exchanges: readonly Exchange[]
}

/** Runs the cases. */
export async function run(cases: readonly EndpointCase[], target: Target, report: Report): Promise<void> {
  const started = performance.now()
  const signal = AbortSignal.any([target.signal, AbortSignal.timeout(END_MS)])
  let [timeouts, limited] = [0, 0]
  const count = (exchanges: readonly Exchange[]): void => {
    if (exchanges.some((exchange) => kindOf(exchange) === 'timeout')) timeouts += 1
    if (exchanges.some(({ status }) => status === 429)) limited += 1
  }

  let last: Exchange | undefined
  const base = await findBase(async (shot) => {
    if (last === undefined || timeouts < LIMIT) {
      last = await post(target.url, shot, signal)
      count([last])
    }
    return last
  }, target)
  if (signal.aborted) return
  const { form, isGood, forgedStatus } = base
  if (form === undefined || !isGood || cases.includes(PLAIN)) report.add(resultOfPlain(base))

  let isDown = false
  /** Cases of exact bytes, to be judged together: which of them are refused says what changes bodies. */
  const held: Sent[] = []
  const release = (): void => {
    const culprit = findCulprit(held.map(toSample))
    for (const { found, shots, exchanges } of held.splice(0)) {
      report.add(judge(found, shots, exchanges, { forgedStatus, culprit }))
    }
  }

  for (const found of cases) {
    if (found === PLAIN) continue
    if (found.group === undefined) release()
    let reason = reasonToSkip(found)
    if (reason === undefined) {
      const shots = found.shots({ ...target, form: form ?? DEFAULT_FORM })
      const exchanges = await send(target.url, found, shots, signal)
      if (target.signal.aborted) break
      count(exchanges)
      isDown = exchanges.some(isBroken) && (await reach(target.url)) !== undefined
      if (signal.aborted) reason = LATE
      else if (found.group === undefined || isDown) report.add(judge(found, shots, exchanges, { forgedStatus, isDown }))
      else held.push({ found, shots, exchanges })
    }
    if (reason === undefined) continue
    release()
    report.add({ id: found.id, result: 'skip', section: found.section, sentence: reason })
  }
  release()

  function reasonToSkip({ expectation }: EndpointCase): string | undefined {
    if (isDown) return 'Not sent: nothing responds at the address any more.'
    if (timeouts >= LIMIT) return 'Not sent: two requests got no complete answer within 5 s.'
    if (limited >= LIMIT) return 'Not sent: it limits how many requests it takes. Let it take those of a check.'
    if (form === undefined && expectation !== 'answered')
      return 'Not sent: no plain message is taken. See plain-message.'
    return performance.now() - started < LAST_START_MS ? undefined : LATE
  }
}

function isBroken(exchange: Exchange): boolean {
  return kindOf(exchange) === 'broken'
}

const LATE = 'Not sent: a run ends within a minute. Pass --only for some cases alone.'

function toSample({ shots: [shot], exchanges: [exchange] }: Sent): Sample {
  return { text: String(shot?.body), isRefused: exchange !== undefined && kindOf(exchange) === 'refusal' }
}

function resultOfPlain({ isGood, sentence, exchange }: Found): Result {
  const durationMs = Math.round(exchange.durationMs)
  return { id: PLAIN.id, result: isGood ? 'pass' : 'fail', section: PLAIN.section, sentence, durationMs }
}

async function send(url: URL, { how }: EndpointCase, shots: readonly Shot[], signal: AbortSignal): Promise<Exchange[]> {
  if (how === 'at_once') return Promise.all(shots.map((shot) => post(url, shot, signal)))
  const poster = createPoster(url)
  try {
    const exchanges: Exchange[] = []
    for (const shot of shots) {
      const exchange =
        how === 'kept_alive'
          ? await poster.post(shot.body, shot.headers, { signal })
          : await post(url, shot, signal, how === 'in_pieces')
      exchanges.push(exchange)
      if (exchange.error !== undefined) break
    }
    return exchanges
  } finally {
    await poster.close()
  }
}

/** Sends one request on a connection of its own: the next case must not depend on what this one leaves on it. */
async function post(
  url: URL,
  { body, headers, method }: Shot,
  signal: AbortSignal,
  inPieces = false,
): Promise<Exchange> {
  const poster = createPoster(url)
  try {
    const length = { 'Content-Length': String(body.length) }
    const options = { signal, ...(method === undefined ? {} : { method }) }
    if (!inPieces) return await poster.post(body, headers, options)
    return await poster.post(Readable.from(halves(body)), { ...headers, ...length }, options)
  } finally {
    await poster.close()
  }
}

/** The body in two parts, the second 100 ms later. */
async function* halves(body: Buffer): AsyncGenerator<Buffer> {
  const middle = Math.floor(body.length / 2)
  yield body.subarray(0, middle)
  await delay(100)
  yield body.subarray(middle)
}
