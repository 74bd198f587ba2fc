/** Keeps the messages of an inspector in two request logs. Watchers of the parts write the messages, and the endpoint reads them. */

import { type Clock, type EndpointHeaders, type Message, parse } from 'hookline'
import { readUsers, requireInteger, requireOptions, systemClock, usersOf } from '../../../src/internals.ts'
import { tryParse } from '../../json.ts'
import type { KeepOptions } from './api.ts'
import {
  addStep,
  canExplain,
  createLogged,
  detailOf,
  type LoggedHead,
  type LoggedMessage,
  rowOf,
  sizeOf,
} from './logged-message.ts'
import { cut, SHORT } from './redact.ts'
import { createRequestLog } from './request-log.ts'
import type { Detail, Row, Step } from './wire.ts'

/**
 * Checks the limits, and adds the defaults.
 *
 * @throws TypeError that names the invalid option.
 */
export function readKeep(keep: KeepOptions = {}): Required<KeepOptions> {
  requireOptions('keep', keep, ['messages', 'bytes', 'refused', 'refusedBytes'])
  const { messages = 2_000, bytes = 64_000_000, refused = 200, refusedBytes = 4_000_000 } = keep
  requireInteger('keep.messages', messages, 1, MAX_MESSAGES)
  requireInteger('keep.bytes', bytes, MIN_BYTES)
  requireInteger('keep.refused', refused, 1, MAX_MESSAGES)
  requireInteger('keep.refusedBytes', refusedBytes, MIN_BYTES)
  return { messages, bytes, refused, refusedBytes }
}

const MAX_MESSAGES = 100_000
/** The smallest allowed limit in bytes. The largest body that a receiver accepts by default fits within this limit. */
const MIN_BYTES = 1_000_000

/** The time for which a call to `forget` is remembered, in milliseconds. During this time, deleted messages may still be in progress. */
const UNDER_WAY_MS = 600_000
/** The maximum number of calls to `forget` to remember. */
const MAX_CALLS = 1_000

/** A call to `forget`. */
interface Forgotten {
  readonly wanted: ReadonlySet<unknown>
  readonly source: string | undefined
  readonly at: number
  readonly until: number
}

interface Changes {
  readonly version: number
  /** Whether `rows` contains all rows, so that any other row of the page is gone. */
  readonly isReset: boolean
  readonly rows: readonly Row[]
}

/** A kept request whose signature was refused. */
export interface Refused {
  readonly part: string
  readonly path: string
  readonly headers: EndpointHeaders
  readonly bytes: Uint8Array
}

export type Journal = ReturnType<typeof createJournal>

export function createJournal(keep: Required<KeepOptions>, clock: Clock, machine: Clock = systemClock) {
  const messages = createRequestLog<LoggedMessage>(keep.messages, keep.bytes, onDrop)
  /** Refused requests have their own log, so that strangers cannot displace messages. */
  const refused = createRequestLog<LoggedMessage>(keep.refused, keep.refusedBytes, onDrop)
  const byDelivery = new Map<string, LoggedMessage>()
  const listeners = new Set<() => void>()
  let [lastId, version, resetAt] = [0, 0, 0]
  /** The latest calls to `forget`. Without this list, later events of messages in progress would restore deleted messages. */
  let forgotten: readonly Forgotten[] = []

  const get = (id: number): LoggedMessage | undefined => messages.get(id) ?? refused.get(id)
  const logOf = ({ isRefused }: LoggedMessage) => (isRefused ? refused : messages)
  const keyOf = (part: string, deliveryId: string): string => `${part}\n${deliveryId}`
  const find = (part: string, deliveryId: string): LoggedMessage | undefined => byDelivery.get(keyOf(part, deliveryId))

  function onDrop(logged: LoggedMessage): void {
    const { part, deliveryId = '' } = logged
    if (find(part, deliveryId) === logged) byDelivery.delete(keyOf(part, deliveryId))
  }

  /** Lists the messages, newest first. */
  function list(): LoggedMessage[] {
    return [...messages.list(), ...refused.list()].sort((one, other) => other.id - one.id)
  }

  function callListeners(): void {
    for (const listener of listeners) listener()
  }

  /** Changes fields of a message, and adds steps. */
  function update(logged: LoggedMessage, fields: Partial<LoggedMessage> = {}, ...steps: readonly Step[]): void {
    Object.assign(logged, fields)
    for (const step of steps) addStep(logged, step)
    version += 1
    logged.version = version
    logOf(logged).append(logged, sizeOf(logged))
    callListeners()
  }

  return {
    get version(): number {
      return version
    },
    /** Returns the current time, according to the app's clock. */
    now: (): number => clock.now(),
    /** Returns the message of a delivery; undefined if the message is not kept. */
    find,
    /** Creates a message. Call `update` once its fields are set, and after each change. */
    addMessage(part: string, head: LoggedHead): LoggedMessage {
      lastId += 1
      const logged = createLogged(lastId, part, head)
      if (head.deliveryId !== undefined) byDelivery.set(keyOf(part, head.deliveryId), logged)
      return logged
    },
    update,
    /** Returns whether `forget` was called for the user of a message after its arrival. If so, the message must not be added again. */
    isForgotten(at: number, body: Uint8Array, source?: string): boolean {
      const now = machine.monotonic()
      const since = forgotten.filter((call) => at <= call.at && now < call.until && isOf(call.source, source))
      return since.length > 0 && usersOf(tryParse(body)).some((id) => since.some(({ wanted }) => wanted.has(id)))
    },
    /** Lists the rows that are new or have changed since a version, newest first; all rows if there is no version. */
    changesSince(since = -1): Changes {
      const isReset = since < resetAt || since > version
      const changed = list().filter((logged) => isReset || logged.version > since)
      return { version, isReset, rows: changed.map(rowOf) }
    },
    /** Calls `listener` after each change. Returns a function that removes the listener. */
    onChange(listener: () => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    /** Returns all details of a message; undefined when the message is no longer kept. */
    detail(id: number): Detail | undefined {
      const logged = get(id)
      return logged && detailOf(logged)
    },
    /**
     * Returns the message of a row, for sending it again; undefined if the message is not kept or the request was refused.
     *
     * @throws HooklineError for a body that is not a message.
     */
    messageOf(id: number): Message | undefined {
      const logged = messages.get(id)
      return logged && parse(logged.body)
    },
    /** Returns a request whose signature was refused, for an explanation of the signature; undefined for any other message. */
    refused(id: number): Refused | undefined {
      const logged = refused.get(id)
      if (logged === undefined || !canExplain(logged)) return undefined
      const { part, path, headers, body: bytes } = logged
      return { part, path, headers, bytes }
    },
    /**
     * Records that the page redrove or dropped dead letters.
     *
     * @param since The version of the journal before the change. A message that has failed again since then is still a dead letter.
     */
    changed(part: string, ids: readonly string[], what: 'redriven' | 'dropped', at: number, since: number): void {
      for (const id of ids) {
        const logged = find(part, id)
        if (logged === undefined) continue
        const { state, endedAt = 0 } = logged
        const wasDead = state === 'dead' && (endedAt < at || (endedAt === at && logged.version <= since))
        const redriven = wasDead ? ({ state: 'waiting', code: undefined } as const) : {}
        update(logged, what === 'dropped' ? { isStored: false } : redriven, { at, what })
      }
    },
    /** Deletes the messages of these users. Returns the number of deleted messages. */
    forget(ids: string | readonly string[], source?: string): number {
      const wanted = readUsers(ids)
      const [at, now] = [clock.now(), machine.monotonic()]
      const call = { wanted, at, until: now + UNDER_WAY_MS, source }
      forgotten = [...forgotten.filter(({ until }) => until > now), call].slice(-MAX_CALLS)
      const isAbout = matcherOf(wanted)
      const about = list().filter((logged) => isOf(source, logged.source) && isAbout(logged))
      if (about.length === 0) return 0
      for (const logged of about) logOf(logged).remove(logged)
      version += 1
      resetAt = version
      callListeners()
      return about.length
    },
  }
}

/** The maximum number of bytes to parse in one call to `forget`, because the bytes are untrusted. */
const MAX_PARSED = 250_000

/** Returns a function that matches the messages of these users. Beyond `MAX_PARSED` bytes, any message that may concern a user matches. */
function matcherOf(wanted: ReadonlySet<unknown>): (logged: LoggedMessage) => boolean {
  const written = [...wanted].map((id) => String(id))
  const beginnings = new Set(written.map((id) => cut(id, SHORT)))
  let parsed = 0
  return ({ users, body }) => {
    if (users !== undefined) return users.some((id) => beginnings.has(id))
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    if (!bytes.includes('\\') && !written.some((id) => bytes.includes(id))) return false
    parsed += bytes.length
    return parsed > MAX_PARSED || usersOf(tryParse(bytes)).some((id) => wanted.has(id))
  }
}

function isOf(wanted: string | undefined, source: string | undefined): boolean {
  return wanted === undefined || wanted === source
}
