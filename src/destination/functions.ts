/** Functions of yours that say which messages a destination sends, and what it sends in their place. */

import { RESPONSE_TIME_MS } from '../message/limits.ts'
import type { Message } from '../message/message.ts'
import { invalidOption, kindOf, show } from '../options/checks.ts'
import { type Composed, composeMessage } from '../sender/compose-call.ts'
import type { Clock } from '../time/clock.ts'
import { TIMED_OUT, within } from '../time/timeout.ts'
import { type Needs, readOriginal, writeOriginal } from './stored.ts'

/** Functions of a message, which get a copy each. They may return promises, for up to 5 seconds. */
export interface MessageFunctions {
  /** Returns whether the message is sent. */
  readonly filter?: ((message: Message) => boolean | Promise<boolean>) | undefined
  /** Returns the message to send in its place. */
  readonly transform?: ((message: Message) => Message | Promise<Message>) | undefined
}

/** The functions of a source of a collector. */
export interface SourceFunctions {
  readonly source: string
  readonly functions: MessageFunctions
}

export type Functions = ReturnType<typeof createFunctions>

export function hasAny(functions: MessageFunctions | undefined): boolean {
  return functions?.filter !== undefined || functions?.transform !== undefined
}

/** @param own The functions of the destination, which run after those of a source. */
export function createFunctions(own: MessageFunctions, clock: Clock) {
  const ofSources = new Map<string, { readonly owner: object; readonly functions: MessageFunctions }>()
  let failures = 0

  async function run(given: Message, ...all: readonly MessageFunctions[]): Promise<Composed | undefined> {
    let message = given
    for (const { filter, transform } of all) {
      if (filter !== undefined && !requireAnswer(await filter(structuredClone(message)))) return undefined
      if (transform !== undefined) message = await transform(message)
    }
    return composeMessage(message, clock)
  }

  /** Nothing else ends a call that hangs. */
  async function inTime(running: Promise<Composed | undefined>): Promise<Composed | undefined> {
    const made = await within(running, RESPONSE_TIME_MS, clock)
    if (made !== TIMED_OUT) return made
    throw new Error(`A \`filter\` or \`transform\` must end within ${RESPONSE_TIME_MS} ms. Got no result.`)
  }

  /** What failed for a message that has no functions now may have been there to keep it, or a part of it, from being sent. */
  function find({ own: needsOwn, source }: Needs): readonly [MessageFunctions, MessageFunctions] {
    const functions = source === null ? {} : (ofSources.get(source)?.functions ?? {})
    const missing =
      source !== null && !hasAny(functions) ? `those of the source ${show(source)}` : 'those of its destination'
    if ((source === null || hasAny(functions)) && (!needsOwn || hasAny(own))) return [functions, own]
    const advice = 'Redrive it in a process that has them. To send it unchanged, pass a `transform` that returns it.'
    throw new Error(`A message needs the functions that failed for it. Got a process without ${missing}. ${advice}`)
  }

  return {
    /** How often functions failed for a message that was queued. */
    get failures(): number {
      return failures
    },
    /** Returns what is queued in place of a message: undefined for nothing, and the original when a function fails. */
    async apply(composed: Composed, from: SourceFunctions | undefined): Promise<Composed | undefined> {
      const { message, bytes, at, id } = composed
      try {
        const made = await inTime(run(readOriginal(bytes).message, from?.functions ?? {}, own))
        return made && { ...made, at, id }
      } catch {
        const needs = { own: hasAny(own), source: from !== undefined && hasAny(from.functions) ? from.source : null }
        return { ...composed, bytes: writeOriginal(message, needs) }
      }
    },
    /** Calls the functions of an original again. Rejects with what they throw. */
    async retry(original: Uint8Array): Promise<Composed | undefined> {
      try {
        const { message, needs } = readOriginal(original)
        return await inTime(run(message, ...find(needs)))
      } catch (error) {
        failures += 1
        throw error
      }
    },
    /** Refuses functions of a source whose name another collector uses: a redrive would call those of the other. */
    check({ source, functions }: SourceFunctions, owner: object): void {
      const known = ofSources.get(source)
      if (known === undefined || known.owner === owner || !(hasAny(known.functions) || hasAny(functions))) return
      const rule = 'must be the only source of its name that has functions for its destination'
      throw invalidOption('sources', rule, `${show(source)} of two collectors`, 'Give one of the two another name.')
    },
    /** Keeps the functions of a source for what is redriven. */
    set({ source, functions }: SourceFunctions, owner: object): void {
      ofSources.set(source, { owner, functions })
    },
  }
}

function requireAnswer(answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer
  throw new TypeError(`\`filter\` must return true or false. Got ${kindOf(answer)}. Return true for what is sent.`)
}
