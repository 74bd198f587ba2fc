/** Functions of yours that say which messages a destination sends, and what it sends in their place. */

import { kindOf } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { TIMED_OUT, within } from '../kit/timeout.ts'
import { RESPONSE_TIME_MS } from '../protocol/limits.ts'
import type { Message } from '../protocol/message.ts'
import { composeMessage } from './compose-call.ts'
import { messageBytes, readMessage, readSource } from './stored-submission.ts'

/** What a destination knows of a message beside its fields. */
export interface MessageContext {
  /** The source of the collector that accepted it, or the `source` of its submission. */
  readonly source: string | undefined
}

/** Functions of a message, which get a copy each. They may return promises, for up to 5 seconds. */
export interface MessageFunctions {
  /** Returns whether the message is sent. */
  readonly filter?: ((message: Message, context: MessageContext) => boolean | Promise<boolean>) | undefined
  /** Returns the message to send in its place. */
  readonly transform?: ((message: Message, context: MessageContext) => Message | Promise<Message>) | undefined
}

export type Functions = ReturnType<typeof createFunctions>

export function createFunctions({ filter, transform }: MessageFunctions, clock: Clock) {
  let failures = 0

  async function run(stored: Uint8Array): Promise<Uint8Array | undefined> {
    const context = { source: readSource(stored) }
    if (filter !== undefined && !requireAnswer(await filter(readMessage(stored), context))) return undefined
    if (transform === undefined) return messageBytes(stored)
    return composeMessage(await transform(readMessage(stored), context), clock).bytes
  }

  return {
    isEmpty: filter === undefined && transform === undefined,
    /** How often they failed. */
    get failures(): number {
      return failures
    },
    /** Returns what is posted for a stored message; undefined when the filter leaves it out. Rejects with what a function throws. */
    async apply(stored: Uint8Array): Promise<Uint8Array | undefined> {
      try {
        const made = await within(run(stored), RESPONSE_TIME_MS, clock)
        if (made !== TIMED_OUT) return made
        throw new Error(`A \`filter\` or \`transform\` must end within ${RESPONSE_TIME_MS} ms. Got no result.`)
      } catch (error) {
        failures += 1
        throw error
      }
    },
  }
}

function requireAnswer(answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer
  throw new TypeError(`\`filter\` must return true or false. Got ${kindOf(answer)}. Return true for what is sent.`)
}
