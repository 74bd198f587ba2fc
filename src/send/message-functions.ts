/** Runs the functions `filter` and `transform` of a destination. */

import { kindOf } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { TIMED_OUT, withTimeout } from '../kit/timeout.ts'
import { RESPONSE_TIME_MS } from '../protocol/limits.ts'
import type { Message } from '../protocol/message.ts'
import { composeMessage } from './compose-call.ts'
import { messageBytes, readMessage, readSource } from './stored-submission.ts'

/** The second argument of `filter` and `transform`: facts about a message that are not among its fields. */
export interface MessageContext {
  /** The name of the collector's source from which the message came, or the `source` that was passed to `submit`. */
  readonly source: string | undefined
}

/** Functions that each get a copy of a message. They may return promises. Together, the functions must finish within 5 seconds. */
export interface MessageFunctions {
  /** Returns whether to send the message. */
  readonly filter?: ((message: Message, context: MessageContext) => boolean | Promise<boolean>) | undefined
  /** Returns the message to send in place of the given message. */
  readonly transform?: ((message: Message, context: MessageContext) => Message | Promise<Message>) | undefined
}

export type Functions = ReturnType<typeof createFunctions>

export function createFunctions({ filter, transform }: MessageFunctions, clock: Clock) {
  let failures = 0

  async function filterAndTransform(stored: Uint8Array): Promise<Uint8Array | undefined> {
    const context = { source: readSource(stored) }
    if (filter !== undefined && !requireBooleanResult(await filter(readMessage(stored), context))) return undefined
    if (transform === undefined) return messageBytes(stored)
    return composeMessage(await transform(readMessage(stored), context), clock).bytes
  }

  return {
    isEmpty: filter === undefined && transform === undefined,
    /** How often `filter` or `transform` failed. */
    get failures(): number {
      return failures
    },
    /**
     * Returns the bytes to post for a stored message; undefined when `filter` leaves the message out. Rejects with whatever a function
     * throws.
     */
    async apply(stored: Uint8Array): Promise<Uint8Array | undefined> {
      try {
        const result = await withTimeout(filterAndTransform(stored), RESPONSE_TIME_MS, clock)
        if (result !== TIMED_OUT) return result
        throw new Error(`\`filter\` and \`transform\` did not finish within ${RESPONSE_TIME_MS} ms. Make them faster.`)
      } catch (error) {
        failures += 1
        throw error
      }
    },
  }
}

function requireBooleanResult(result: unknown): boolean {
  if (typeof result === 'boolean') return result
  throw new TypeError(`\`filter\` must return true or false. Got ${kindOf(result)}. Return true for messages to send.`)
}
