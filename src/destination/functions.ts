/** Functions of yours that say which messages a destination sends, and what it sends in their place. */

import { RESPONSE_TIME_MS } from '../message/limits.ts'
import type { Message } from '../message/message.ts'
import { kindOf } from '../options/checks.ts'
import { type Composed, composeMessage } from '../sender/compose-call.ts'
import type { Clock } from '../time/clock.ts'
import { TIMED_OUT, within } from '../time/timeout.ts'
import { readMessage, writeOriginal } from './stored.ts'

/** Functions of a message, which get a copy each. They may return promises, for up to 5 seconds. */
export interface MessageFunctions {
  /** Returns whether the message is sent. */
  readonly filter?: ((message: Message) => boolean | Promise<boolean>) | undefined
  /** Returns the message to send in its place. */
  readonly transform?: ((message: Message) => Message | Promise<Message>) | undefined
}

export type Functions = ReturnType<typeof createFunctions>

export function hasAny(functions: MessageFunctions | undefined): boolean {
  return functions?.filter !== undefined || functions?.transform !== undefined
}

export function createFunctions(own: MessageFunctions, clock: Clock) {
  let failures = 0

  async function run(given: Message): Promise<Composed | undefined> {
    const { filter, transform } = own
    if (filter !== undefined && !requireAnswer(await filter(structuredClone(given)))) return undefined
    return composeMessage(transform === undefined ? given : await transform(given), clock)
  }

  /** Nothing else ends a call that hangs. */
  async function inTime(running: Promise<Composed | undefined>): Promise<Composed | undefined> {
    const made = await within(running, RESPONSE_TIME_MS, clock)
    if (made !== TIMED_OUT) return made
    throw new Error(`A \`filter\` or \`transform\` must end within ${RESPONSE_TIME_MS} ms. Got no result.`)
  }

  /** What failed for a message may have been there to keep it, or a part of it, from being sent. */
  function requireOwn(): void {
    if (hasAny(own)) return
    const advice = 'Redrive it in a process that has them. To send it unchanged, pass a `transform` that returns it.'
    throw new Error(`A message needs the functions that failed for it. Got a process without them. ${advice}`)
  }

  return {
    /** How often functions failed for a message that was queued. */
    get failures(): number {
      return failures
    },
    /** Returns what is queued in place of a message: undefined for nothing, and the original when a function fails. */
    async apply(composed: Composed): Promise<Composed | undefined> {
      const { message, bytes, at, id } = composed
      try {
        const made = await inTime(run(readMessage(bytes)))
        return made && { ...made, at, id }
      } catch {
        return { ...composed, bytes: writeOriginal(message) }
      }
    },
    /** Calls the functions of an original again. Rejects with what they throw. */
    async retry(original: Uint8Array): Promise<Composed | undefined> {
      try {
        requireOwn()
        return await inTime(run(readMessage(original)))
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
