/** The messages that an inspector keeps, in two request logs: written by what watches the parts, read by the endpoint. */

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
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
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
/** Holds the largest body that a receiver takes by default. */
const MIN_BYTES = 1_000_000

/** For how long `forget` is remembered: a message may be under way. And how many calls are. */
const UNDER_WAY_MS = 600_000
const MAX_CALLS = 1_000

/** A call of `forget`. */
interface Forgotten {
  readonly wanted: ReadonlySet<unknown>
  readonly source: string | undefined
  readonly at: number
  readonly until: number
}

interface Changes {
  readonly version: number
  /** Whether what is not among the rows is gone. */
  readonly isReset: boolean
  readonly rows: readonly Row[]
}

/** The bytes of a kept request whose signature was refused. */
export interface Refused {
  readonly part: string
  readonly path: string
  readonly headers: EndpointHeaders
  readonly bytes: Uint8Array
}

export type Journal = ReturnType<typeof createJournal>

export function createJournal(keep: Required<KeepOptions>, clock: Clock, machine: Clock = systemClock) {
  const messages = createRequestLog<LoggedMessage>(keep.messages, keep.bytes, onDrop)
  /** What strangers sent pushes nothing else out. */
  const refused = createRequestLog<LoggedMessage>(keep.refused, keep.refusedBytes, onDrop)
  const byDelivery = new Map<string, LoggedMessage>()
  const listeners = new Set<() => void>()
  let [lastId, version, resetAt] = [0, 0, 0]
  /** The events of messages that were under way would bring them back. */
  let forgotten: readonly Forgotten[] = []

  const get = (id: number): LoggedMessage | undefined => messages.get(id) ?? refused.get(id)
  const logOf = ({ isRefused }: LoggedMessage) => (isRefused ? refused : messages)
  const keyOf = (part: string, deliveryId: string): string => `${part}\n${deliveryId}`
  const find = (part: string, deliveryId: string): LoggedMessage | undefined => byDelivery.get(keyOf(part, deliveryId))

  function onDrop(logged: LoggedMessage): void {
    const { part, deliveryId = '' } = logged
    if (find(part, deliveryId) === logged) byDelivery.delete(keyOf(part, deliveryId))
  }

  /** The newest first. */
  function list(): LoggedMessage[] {
    return [...messages.list(), ...refused.list()].sort((one, other) => other.id - one.id)
  }

  function callListeners(): void {
    for (const listener of listeners) listener()
  }

  /** Notes what has changed of a message, and its steps. */
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
    /** The time, by the clock of the app. */
    now: (): number => clock.now(),
    /** The message of a delivery, when it is kept. */
    find,
    /** Creates a message. Call `update` once it is filled, and after each change. */
    add(part: string, head: LoggedHead): LoggedMessage {
      lastId += 1
      const logged = createLogged(lastId, part, head)
      if (head.deliveryId !== undefined) byDelivery.set(keyOf(part, head.deliveryId), logged)
      return logged
    },
    update,
    /** Whether a message was forgotten since it arrived, while it was under way: nothing of it may be added. */
    isForgotten(at: number, body: Uint8Array, source?: string): boolean {
      const now = machine.monotonic()
      const since = forgotten.filter((call) => at <= call.at && now < call.until && isOf(call.source, source))
      return since.length > 0 && usersOf(tryParse(body)).some((id) => since.some(({ wanted }) => wanted.has(id)))
    },
    /** Lists the rows that are new or changed since a version, the newest first. Undefined: all. */
    changesSince(since = -1): Changes {
      const isReset = since < resetAt || since > version
      const changed = list().filter((logged) => isReset || logged.version > since)
      return { version, isReset, rows: changed.map(rowOf) }
    },
    /** Calls `listener` after each change. Returns what stops that. */
    onChange(listener: () => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    /** Everything about a message; undefined when it is not kept any more. */
    detail(id: number): Detail | undefined {
      const logged = get(id)
      return logged && detailOf(logged)
    },
    /**
     * The message that a row holds, to be sent again; undefined when it is not kept, and for what strangers may have sent.
     *
     * @throws HooklineError for a body that is no message.
     */
    messageOf(id: number): Message | undefined {
      const logged = messages.get(id)
      return logged && parse(logged.body)
    },
    /** What explains a refused signature; undefined for any other message. */
    refused(id: number): Refused | undefined {
      const logged = refused.get(id)
      if (logged === undefined || !canExplain(logged)) return undefined
      const { part, path, headers, body: bytes } = logged
      return { part, path, headers, bytes }
    },
    /**
     * Notes that dead letters were redriven or dropped from the page.
     *
     * @param since The version before it: one that has failed again since, perhaps at the same time, is still dead.
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
    /** Deletes what is about one of the users. Returns how many messages that were. */
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

/** How many bytes are parsed at most, for what nobody has parsed before: a stranger chose them. */
const MAX_PARSED = 250_000

/** What would take long to parse, and may be about one of these users, is taken to be. */
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
