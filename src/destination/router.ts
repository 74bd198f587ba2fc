/** What a destination leaves out and changes: functions of yours, called before a message is queued. */

import type { Message } from '../message/message.ts'
import { kindOf } from '../options/checks.ts'
import { type Composed, composeMessage } from '../sender/compose-call.ts'
import type { Clock } from '../time/clock.ts'
import { readMessage, sourceOf, writeOriginal } from './stored.ts'

/** Functions of a message, which get a copy: `transform` may change it. They may return promises. */
export interface Route {
  /** Returns whether the message is sent. */
  readonly filter?: ((message: Message) => boolean | Promise<boolean>) | undefined
  /** Returns the message to send in its place. */
  readonly transform?: ((message: Message) => Message | Promise<Message>) | undefined
}

export type Router = ReturnType<typeof createRouter>

/** @param own The functions of the destination, which run after those of a source. */
export function createRouter(own: Route, clock: Clock) {
  const ofSources = new Map<string, Route>()
  let failures = 0

  async function run(given: Message, source: string | undefined): Promise<Composed | undefined> {
    let message = given
    for (const { filter, transform } of [routeOf(source), own]) {
      if (filter !== undefined && !requireAnswer(await filter(message))) return undefined
      if (transform !== undefined) message = await transform(message)
    }
    return composeMessage(message, clock)
  }

  function routeOf(source: string | undefined): Route {
    const route = source === undefined ? {} : ofSources.get(source)
    if (route !== undefined) return route
    const advice = 'Redrive it in a process whose collector has this source.'
    throw new Error(`A message needs the functions of its source '${source}'. Got a process without them. ${advice}`)
  }

  return {
    get failures(): number {
      return failures
    },
    setRoute: (source: string, route: Route): void => void ofSources.set(source, route),
    /** Whether functions have to be called for the messages of a source. */
    isFor: (source: string | undefined): boolean =>
      [own, ofSources.get(source ?? '') ?? {}].some(({ filter, transform }) => filter ?? transform),
    /** Returns what is queued in place of a message: undefined for nothing, and the original when a function fails. */
    async route(composed: Composed, source: string | undefined): Promise<Composed | undefined> {
      const { message, bytes, at, id } = composed
      try {
        const routed = await run(readMessage(bytes), source)
        return routed && { ...routed, at, id }
      } catch {
        return { ...composed, bytes: writeOriginal(message, source) }
      }
    },
    /** Calls the functions of an original again. Rejects with what they throw. */
    async retry(original: Uint8Array): Promise<Composed | undefined> {
      try {
        return await run(readMessage(original), sourceOf(original))
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
