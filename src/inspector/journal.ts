/** The messages that an inspector keeps: written by what watches the parts, read by the endpoint; and how many there may be. */

import type { AnsweredEvent, ObservedHandled } from '../handling/observer.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { RETRY_WINDOW_MS } from '../message/limits.ts'
import { requireOptions, requireText, requireWhole } from '../options/checks.ts'
import type { Clock } from '../time/clock.ts'
import type { KeepOptions } from './api.ts'
import type { Entry, Home } from './entry.ts'
import type { Stored } from './journal-file.ts'
import { bodiesOf, linesOf, showBody } from './lines.ts'
import type { Detail, RequestLine, Row } from './wire-message.ts'

/** What has changed since a version of the journal. */
interface Changes {
  /** The version now. */
  readonly version: number
  /** Whether `rows` are all that are kept: the version was unknown, or messages were forgotten since. */
  readonly isReset: boolean
  readonly rows: readonly Row[]
}

/** The bytes of a kept request whose signature was refused. */
export interface Refused {
  readonly part: string
  readonly path: string
  readonly headers: EndpointHeaders
  /** A copy: the journal may drop the request before it is explained. */
  readonly bytes: Uint8Array
}

/** What the endpoint reads. */
export interface Journal {
  /**
   * Lists the rows that are new or changed, the newest first.
   *
   * @param version Undefined: all.
   */
  changesSince(version: number | undefined): Changes
  /** Calls `listener` after a change, at most once until `changesSince` is called again. Returns what stops that. */
  onChange(listener: () => void): () => void
  /** Everything about a message; undefined when it is not kept any more. */
  detail(id: number): Detail | undefined
  /** Of a message whose signature was refused; undefined for any other. */
  refused(id: number): Refused | undefined
  /** The message of a job, when it is kept. */
  rowOfJob(part: string, jobId: string): number | undefined
  /** That of the latest change. */
  readonly version: number
  /**
   * Notes that dead letters were redriven or dropped from the page.
   *
   * @param version That before it: one that has failed again since, perhaps at the same time, is still dead.
   */
  changed(part: string, jobIds: readonly string[], what: 'redriven' | 'dropped', at: number, version: number): void
  /** Deletes the messages of users. Returns how many. */
  forget(ids: string | readonly string[], source?: string): number
  close(): void
}

/** What those who watch the parts write. */
export interface JournalWriter extends Journal {
  /** The time, by the clock of the app. */
  now(): number
  /** Where the entries of a part are found by the ids of their deliveries and jobs. */
  home(part: string): Home
  /**
   * Adds an entry. Call {@link update} once it is filled.
   *
   * @param key The id of its delivery; undefined when no other event belongs to it.
   * @param isRefused Whether strangers may have sent it: it pushes out refused requests alone.
   */
  add(home: Home, kind: Row['kind'], at: number, key: string | undefined, isRefused: boolean): Entry
  /** Adds a message that arrived alone, and was done at once. Returns false when it is known, or cannot be kept so. Hot path. */
  addExchange(home: Home, handled: ObservedHandled, answered: AnsweredEvent): boolean
  /** The entry of a delivery. */
  find(home: Home, key: string): Entry | undefined
  /** Whether a message was forgotten since it arrived, while it was under way: nothing of it may be added. */
  isForgotten(kind: Row['kind'], at: number, body: Uint8Array, source?: string): boolean
  /** Says which job an entry has become. */
  setJob(entry: Entry, jobId: string): void
  /** Tells that an entry has changed. */
  update(entry: Entry): void
}

/** The options of what is kept, checked and complete. */
export type Keep = Required<Omit<KeepOptions, 'path'>> & Pick<KeepOptions, 'path'>

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readKeep(keep: KeepOptions = {}): Keep {
  requireOptions('keep', keep, ['messages', 'bytes', 'refused', 'refusedBytes', 'path'])
  const { messages = 2_000, bytes = 64_000_000, refused = 200, refusedBytes = 4_000_000, path } = keep
  requireWhole('keep.messages', messages, 1, MOST_MESSAGES)
  requireWhole('keep.bytes', bytes, LEAST_BYTES)
  requireWhole('keep.refused', refused, 1, MOST_MESSAGES)
  requireWhole('keep.refusedBytes', refusedBytes, LEAST_BYTES)
  if (path !== undefined) requireText('keep.path', path, 'inspector.sqlite')
  return { messages, bytes, refused, refusedBytes, ...(path !== undefined && { path }) }
}

/** A page lists all of them. */
const MOST_MESSAGES = 100_000
/** Holds the largest body that a receiver takes by default. */
const LEAST_BYTES = 1_000_000

/** Everything about a message. `stored`: what is in the file alone. */
export function detailOf(entry: Entry, stored: Stored | undefined): Detail {
  const { kind, method, path, remoteAddress, jobId, startedAt, steps, bytes, canExplain } = entry
  const { headers = {}, body } = stored ?? entry
  const address = remoteAddress === undefined ? {} : { remoteAddress }
  const request: RequestLine = { method, path, ...address, headers: linesOf(headers) }
  return {
    row: entry.row(),
    ...(kind !== 'sent' && { request }),
    body: showBody(body, bytes, kind === 'collected'),
    steps,
    ...(jobId !== undefined && { jobId }),
    canExplain,
    ...(startedAt !== undefined && { window: { startedAt, endsAt: startedAt + RETRY_WINDOW_MS } }),
  }
}

/** A call of `forget`. */
interface Forgotten {
  readonly isAbout: (body: Uint8Array) => boolean
  readonly source: string | undefined
  readonly at: number
}

/** How long a message may be under way, and how many calls are remembered for that. */
const UNDER_WAY_MS = 600_000
const MOST_FORGOTTEN = 1_000

/** Remembers calls of `forget` for messages that are under way meanwhile: the events that still follow would bring them back. */
export function createForgotten(machine: Clock): {
  note(call: Forgotten): void
  readonly isEmpty: boolean
  has: JournalWriter['isForgotten']
} {
  let calls: (Forgotten & { readonly until: number })[] = []
  return {
    note(call) {
      const now = machine.monotonic()
      calls = [...calls.filter(({ until }) => until > now), { ...call, until: now + UNDER_WAY_MS }].slice(
        -MOST_FORGOTTEN,
      )
    },
    get isEmpty() {
      return calls.length === 0
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
