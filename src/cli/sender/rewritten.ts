/** Which new messages are retries in truth: the sender gave them another `messageId` or `timestamp`. */

import { isObject } from '../../message/json.ts'
import type { Ledger, SeenMessage } from './messages.ts'

/** What senders write anew for each attempt, by mistake. */
const CHANGING = ['messageId', 'timestamp', 'originalTimestamp', 'sentAt', 'receivedAt', 'attempt']

/**
 * Finds a message that came again as a new one, with the same content. Undefined when contents were repeated anyway, or when a
 * message that must be retried did not come again in any form.
 */
export function findRewritten({ messages }: Ledger): SeenMessage | undefined {
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
