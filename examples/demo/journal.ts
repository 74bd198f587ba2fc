/**
 * Records which stations each message of the demo has passed, and when. After `follow` it also prints them. What made-up users do
 * is not here: it would scroll for ever, and is on the page.
 */

import type { Message } from 'hookline'
import { isFromLastTime, nameOf, type Outcome, type Station } from './expectations.ts'
import { isOfLife } from './life.ts'
import { toFailure, toPassing } from './table.ts'

/** What is known of the messages so far, by their names. */
export interface Journal {
  /** A call is about to be made: its milliseconds count from here. */
  begin(name: string): void
  /**
   * A message, or the call that one is to be made of, passed a station; the receiver says what its handler saw. One from
   * last time gets a line and nothing else.
   */
  pass(station: Station, what: Message | string, saw?: string): void
  /** A message failed, or has to be retried. */
  fail(station: Station, what: Message | string, reason: string): void
  /** A station refused a request of which the name is not known. */
  refuse(station: Station, reason: string): void
  /** The outcome of a message so far. */
  outcome(name: string): Outcome
  /** Resolves when each of these is handled and delivered or has failed, or else after so many milliseconds. */
  settled(names: readonly string[], timeoutMs: number): Promise<void>
  /** Prints a line for whatever happens from now on. */
  follow(): void
}

interface Entry {
  readonly begunAt: number
  readonly passed: Map<Station, number>
  saw: string
  isSettled: boolean
}

/** Starts an empty one. `startedAt`: what is older is from last time. */
export function createJournal(startedAt: number): Journal {
  const entries = new Map<string, Entry>()
  let changed = (): void => {}
  let print = (_line: string): void => {}

  function begin(name: string): Entry {
    const entry = { begunAt: performance.now(), passed: new Map(), saw: 'nothing', isSettled: false }
    entries.set(name, entry)
    return entry
  }

  function find(name: string): Entry {
    return entries.get(name) ?? begin(name)
  }

  /** Undefined for a message from last time. */
  function toName(what: Message | string): string | undefined {
    if (typeof what === 'string') return what
    return isFromLastTime(what, startedAt) ? undefined : nameOf(what)
  }

  return {
    begin: (name) => void begin(name),
    pass(station, what, saw) {
      if (typeof what !== 'string' && isOfLife(what)) return
      const name = toName(what)
      if (name === undefined)
        return console.log(toPassing(station, `${saw ?? nameOf(what as Message)}, from last time`))
      const entry = find(name)
      entry.passed.set(station, performance.now() - entry.begunAt)
      if (saw !== undefined) entry.saw = saw
      entry.isSettled ||= entry.passed.has('destination') && entry.passed.has('receiver')
      changed()
      print(toPassing(station, saw ?? name))
    },
    fail(station, what, reason) {
      if (typeof what !== 'string' && isOfLife(what)) return
      const name = toName(what)
      if (name === undefined)
        return console.log(toFailure(station, `${nameOf(what as Message)}, from last time: ${reason}`))
      Object.assign(find(name), { saw: reason, isSettled: true })
      changed()
      print(toFailure(station, `${name}: ${reason}`))
    },
    refuse: (station, reason) => print(toFailure(station, reason)),
    outcome: find,
    settled: (names, timeoutMs) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, timeoutMs)
        changed = () => {
          if (!names.every((name) => find(name).isSettled)) return
          clearTimeout(timer)
          resolve()
        }
        changed()
      }),
    follow() {
      print = console.log
    },
  }
}
