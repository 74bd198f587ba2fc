/** Runs the cases against an endpoint: one at a time, within a minute, and not on after two timeouts. */

import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { createPoster, type Exchange } from '../exchange.ts'
import type { Report } from '../report.ts'
import { type Found, findBase } from './base.ts'
import type { Base, EndpointCase, Shot } from './endpoint-case.ts'
import { judge, kindOf } from './judge.ts'
import { DEFAULT_FORM } from './message.ts'
import { PLAIN } from './message-cases.ts'
import { findCulprit } from './reserialised.ts'

/** What to check. */
export interface Target extends Omit<Base, 'form'> {
  readonly url: URL
  /** Fires when the user ends the run. */
  readonly signal: AbortSignal
}

/** No case begins later; the longest takes 5 s. */
const LAST_START_MS = 50_000
const END_MS = 58_000
const TIMEOUTS_LIMIT = 2

/**
 * Runs the cases.
 *
 * @param exactCount How many cases of the group `exact` exist.
 */
export async function run(
  cases: readonly EndpointCase[],
  target: Target,
  report: Report,
  exactCount: number,
): Promise<void> {
  const started = performance.now()
  const signal = AbortSignal.any([target.signal, AbortSignal.timeout(END_MS)])
  const fire = (shot: Shot): Promise<Exchange> => post(target.url, shot, signal)

  const found = await findBase(fire, target)
  if (target.signal.aborted) return
  if (cases.includes(PLAIN) || found.form === undefined || !found.isGood) report.add(resultOfPlain(found))
  let timeouts = kindOf(found.exchange) === 'timeout' ? 1 : 0
  const base: Base = { ...target, form: found.form ?? DEFAULT_FORM }
  const known = { forgedStatus: found.forgedStatus }

  const held: Run[] = []
  /** The cases of exact bytes are judged together: which are refused says what changes bodies. */
  const release = (): void => {
    const samples = held.map(({ shots, exchanges: [exchange] }) => ({
      text: String(shots[0]?.body),
      isRefused: exchange !== undefined && kindOf(exchange) === 'refusal',
    }))
    // A few bodies fit too many serialisers.
    const culprit = samples.length === exactCount ? findCulprit(samples) : undefined
    for (const { found, shots, exchanges } of held.splice(0))
      report.add(judge(found, shots, exchanges, { ...known, culprit }))
  }

  for (const each of cases) {
    if (each === PLAIN) continue
    if (each.group === undefined) release()
    const reason = reasonToSkip(each)
    if (reason !== undefined) {
      release()
      report.add({ id: each.id, result: 'skip', section: each.section, sentence: reason })
      continue
    }
    const shots = each.shots(base)
    const exchanges = await send(target.url, each, shots, signal)
    if (target.signal.aborted) break
    if (exchanges.some((exchange) => kindOf(exchange) === 'timeout')) timeouts += 1
    if (each.group === 'exact') held.push({ found: each, shots, exchanges })
    else report.add(judge(each, shots, exchanges, known))
  }
  release()

  function reasonToSkip({ expectation }: EndpointCase): string | undefined {
    if (timeouts >= TIMEOUTS_LIMIT) return 'Not sent: two requests got no complete answer within 5 s.'
    if (found.form === undefined && expectation !== 'answered')
      return 'Not sent: no plain message is taken. See plain-message.'
    if (performance.now() - started < LAST_START_MS) return undefined
    return 'Not sent: the run took a minute before. Pass --only for this case alone.'
  }
}

/** A case that was sent. */
interface Run {
  readonly found: EndpointCase
  readonly shots: readonly Shot[]
  readonly exchanges: readonly Exchange[]
}

function resultOfPlain({ isGood, sentence, exchange }: Found): Parameters<Report['add']>[0] {
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
