/** What a sender must do after each kind of answer. */

import { isObject } from '../../message/json.ts'
import { SILENCE_MS } from './endpoint.ts'
import type { Arrival, Ledger, Scenario, SeenMessage } from './messages.ts'
import type { Finding, Judge, Seen } from './requests.ts'

/** The message of a scenario. */
function find({ ledger }: Seen, scenario: Scenario): SeenMessage | undefined {
  return ledger.messages.find((message) => message.scenario === scenario)
}

const NONE: Finding = ['skip', 'No message came for it. Send as many as the command says.']

/** Judges whether a message came again after its attempt number `attempt`. */
export function retried(scenario: Scenario, attempt: number, what: string): Judge {
  return (seen) => {
    const message = find(seen, scenario)
    if (message === undefined) return NONE
    const [before, after] = [message.arrivals[attempt - 1], message.arrivals[attempt]]
    if (before?.endedAt === undefined)
      return ['skip', `No attempt ended before the end of the run: see the cases before it.`]
    if (after === undefined) {
      if (findRewritten(seen.ledger) !== undefined)
        return ['skip', 'It came again as another message. See identical-retry.']
      const waited = seconds(performance.now() - before.endedAt)
      return [
        'fail',
        `${what} must be retried. It did not come again within ${waited}. If it would later, pass a longer --wait.`,
      ]
    }
    return ['pass', `Retried after ${seconds(after.at - before.endedAt)}.`]
  }
}

/** Judges whether a message that was answered for good stayed away. */
export function left(scenarios: readonly Scenario[], what: string): Judge {
  return (seen) => {
    const messages = scenarios.flatMap((scenario) => find(seen, scenario) ?? [])
    for (const { arrivals } of messages) {
      const [first, again] = arrivals
      if (first?.isAnswered !== true || again === undefined) continue
      const after = `${seconds(again.at - (first.endedAt ?? first.at))} after it was answered ${first.answer.status}`
      return ['fail', `${what} must not be retried. It came again ${after}.`]
    }
    if (messages.length < scenarios.length) return NONE
    return [
      'pass',
      `Not sent again after ${scenarios.map((_, index) => messages[index]?.arrivals[0]?.answer.status).join(', ')}.`,
    ]
  }
}

/** Nothing that was taken comes again, also after its retries. */
export const takenOnce: Judge = (seen) => {
  for (const { number, arrivals } of seen.ledger.messages) {
    const taken = arrivals.findIndex(({ answer, isAnswered }) => answer.status === 200 && isAnswered === true)
    const again = arrivals[taken + 1]
    if (taken === -1 || again === undefined) continue
    const after = seconds(again.at - (arrivals[taken]?.endedAt ?? 0))
    return [
      'fail',
      `A message that was answered 200 must not be sent again. Message ${number} came again after ${after}. If that was another message, give each a messageId of its own.`,
    ]
  }
  return find(seen, 'taken') === undefined ? NONE : ['pass', 'No message came again after a 200.']
}

/** How early or late a timeout may be seen here: connecting and busy machines take their part. */
const TOO_EARLY_MS = 4_200
const TOO_LATE_MS = 7_000

export const timesOut: Judge = (seen) => {
  const message = find(seen, 'silent')
  const [first, second] = message?.arrivals ?? []
  if (first === undefined) return NONE
  const end = Math.min(first.endedAt ?? Number.POSITIVE_INFINITY, second?.at ?? Number.POSITIVE_INFINITY)
  if (end === Number.POSITIVE_INFINITY) return ['skip', 'The run ended before the sender gave up.']
  const gaveUp = end - first.at
  const rule = 'An attempt without a response must be given up after 5 s.'
  if (gaveUp < TOO_EARLY_MS) return ['fail', `${rule} The sender waited ${seconds(gaveUp)} only: endpoints have 5 s.`]
  if (gaveUp >= SILENCE_MS - 100) return ['fail', `${rule} After ${seconds(gaveUp)} the sender still waited.`]
  if (gaveUp > TOO_LATE_MS) return ['fail', `${rule} The sender waited ${seconds(gaveUp)}.`]
  return ['pass', `Gave up after ${seconds(gaveUp)}.`]
}

export const waitsForSlow: Judge = (seen) => {
  const first = find(seen, 'slow')?.arrivals[0]
  if (first === undefined) return NONE
  if (first.endedAt === undefined) return ['skip', 'The run ended before it was answered.']
  if (first.isAnswered) return ['pass', 'Waited for an answer that took 4 s.']
  return ['fail', `An endpoint has 5 s to answer. The sender gave up after ${seconds(first.endedAt - first.at)}.`]
}

export const identical: Judge = ({ ledger }) => {
  const rewritten = findRewritten(ledger)
  if (rewritten !== undefined) {
    const rule = `A retry must carry the identical bytes. Message ${rewritten.number} came again as a new one`
    return ['fail', `${rule}, with another messageId or timestamp. Serialise it once, and keep the bytes.`]
  }
  const retries = ledger.messages.filter(({ arrivals }) => arrivals.length > 1)
  for (const { arrivals, number } of retries) {
    const [first, ...rest] = arrivals as [Arrival, ...Arrival[]]
    if (rest.some(({ bytes }) => !bytes.equals(first.bytes))) {
      const rule = 'A retry must carry the identical bytes. Message'
      return ['fail', `${rule} ${number} came again with others. Serialise it once, and keep the bytes.`]
    }
    if (rest.some(({ headers }) => headers['x-signature'] !== first.headers['x-signature'])) {
      return ['fail', `A retry must carry the identical signature. Message ${number} came again with another one.`]
    }
  }
  return retries.length === 0
    ? ['skip', 'No message came again.']
    : ['pass', 'Each retry had the bytes and the signature of the first attempt.']
}

function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(ms < 1_000 ? 2 : 1))} s`
}

/** What senders write anew for each attempt, by mistake. */
const CHANGING = ['messageId', 'timestamp', 'originalTimestamp', 'sentAt', 'receivedAt', 'attempt']

/**
 * Finds a message that came again as a new one, with the same content. Undefined when contents were repeated anyway, or when a
 * message that must be retried did not come again in any form.
 */
function findRewritten({ messages }: Ledger): SeenMessage | undefined {
  const contents = new Map(messages.map((message) => [message, contentOf(message)]))
  const due = messages.filter(isDue)
  const isRewritten = due.every((message) => {
    const content = contents.get(message)
    const same = messages.filter((other) => other !== message && contents.get(other) === content)
    const [earlier, later] = [same.filter(isBefore), same.filter((other) => !isBefore(other))]
    return content !== undefined && later.length > 0 && earlier.every((other) => due.includes(other))

    function isBefore({ number }: SeenMessage): boolean {
      return number < message.number
    }
  })
  return isRewritten && new Set(contents.values()).size > 1 ? due[0] : undefined
}

/** Whether a retry of it never came. */
function isDue({ scenario, arrivals }: SeenMessage): boolean {
  const [first, again] = arrivals
  return scenario !== undefined && again === undefined && (first?.answer.status ?? 500) >= 500
}

/** A message without what tells its attempts apart; undefined when it is not an object. */
function contentOf({ arrivals: [first] }: SeenMessage): string | undefined {
  try {
    const message: unknown = JSON.parse(String(first?.bytes))
    if (!isObject(message)) return undefined
    return JSON.stringify(Object.entries(message).filter(([name]) => !CHANGING.includes(name)))
  } catch {
    return undefined
  }
}
