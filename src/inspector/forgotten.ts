/** Calls of `forget`, remembered for messages that are under way meanwhile: the events that still follow would bring them back. */

import { matchUser } from '../message/identity.ts'
import type { Clock } from '../time/clock.ts'
import { bodiesOf } from './lines.ts'
import type { Row } from './wire.ts'

/** A call of `forget`. */
interface Forgotten {
  readonly isAbout: (body: Uint8Array) => boolean
  readonly source: string | undefined
  readonly at: number
  readonly until: number
}

/** How long a message may be under way, and how many calls are remembered for that. */
const UNDER_WAY_MS = 600_000
const MAX_CALLS = 1_000

/** Creates an empty memory of calls. */
export function createForgotten(machine: Clock): {
  /** Notes a call. Returns what says whether a body is about one of the users. */
  note(ids: string | readonly string[], source: string | undefined, at: number): (body: Uint8Array) => boolean
  /** Whether a message was forgotten since it arrived. */
  has(kind: Row['kind'], at: number, body: Uint8Array, source?: string): boolean
} {
  let calls: Forgotten[] = []
  return {
    note(ids, source, at) {
      const isAbout = matchUser(ids)
      const now = machine.monotonic()
      const current = calls.filter(({ until }) => until > now)
      calls = [...current, { isAbout, source, at, until: now + UNDER_WAY_MS }].slice(-MAX_CALLS)
      return isAbout
    },
    has(kind, at, body, source) {
      if (calls.length === 0) return false
      const now = machine.monotonic()
      const since = calls.filter(
        (call) => call.until > now && at <= call.at && (call.source === undefined || call.source === source),
      )
      return since.length > 0 && bodiesOf(body, kind).some((each) => since.some(({ isAbout }) => isAbout(each)))
    },
  }
}
