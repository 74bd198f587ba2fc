/** The messages that an inspector keeps: written by what watches the parts, read by the endpoint. */

import type { EndpointHeaders } from '../http/endpoint.ts'
import { shownHeader } from '../http/shown.ts'
import { readUsers, usersIn } from '../message/identity.ts'
import { requireInteger, requireOptions, requireText } from '../options/checks.ts'
import type { Log } from '../options/log.ts'
import { type LogFile, openLogFile } from '../request-log/log-file.ts'
import { createRequestLog, type LogBounds } from '../request-log/request-log.ts'
import { cannotUse } from '../sqlite/advice.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { KeepOptions } from './api.ts'
import {
  addStep,
  canExplain,
  createLogged,
  detailOf,
  isVerified,
  type LoggedHead,
  type LoggedMessage,
  rowOf,
  sizeOf,
} from './logged-message.ts'
import type { Detail, Row } from './wire.ts'

interface Changes {
  readonly version: number
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

export interface Journal {
  /**
   * Lists the rows that are new or changed, the newest first.
   *
   * @param version Undefined: all.
   */
  changesSince(version: number | undefined): Changes
  /** Calls `listener` after each change. Returns what stops that. */
  onChange(listener: () => void): () => void
  /** Everything about a message; undefined when it is not kept any more. */
  detail(id: number): Detail | undefined
  /** What explains a refused signature; undefined for any other message. */
  refused(id: number): Refused | undefined
  /** The message of a delivery, when it is kept. */
  rowOf(part: string, deliveryId: string): number | undefined
  readonly version: number
  /**
   * Notes that dead letters were redriven or dropped from the page.
   *
   * @param version That before it: one that has failed again since, perhaps at the same time, is still dead.
   */
  changed(part: string, ids: readonly string[], what: 'redriven' | 'dropped', at: number, version: number): void
  forget(ids: string | readonly string[], source?: string): number
  close(): void
}

/** Where the messages of one part are found by the ids of their deliveries. */
export interface PartIndex {
  readonly name: string
  readonly byId: Map<string, LoggedMessage>
}

export interface JournalWriter extends Journal {
  /** The time, by the clock of the app. */
  now(): number
  part(name: string): PartIndex
  /** Adds a message. Call {@link update} once it is filled. */
  add(part: PartIndex, head: LoggedHead): LoggedMessage
  /** Whether a message was forgotten since it arrived, while it was under way: nothing of it may be added. */
  isForgotten(at: number, body: Uint8Array, source?: string): boolean
  update(logged: LoggedMessage): void
}

export type Keep = LogBounds & Pick<KeepOptions, 'path'>

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readKeep(keep: KeepOptions = {}): Keep {
  requireOptions('keep', keep, ['messages', 'bytes', 'refused', 'refusedBytes', 'path'])
  const { messages = 2_000, bytes = 64_000_000, refused = 200, refusedBytes = 4_000_000, path } = keep
  requireInteger('keep.messages', messages, 1, MAX_MESSAGES)
  requireInteger('keep.bytes', bytes, MIN_BYTES)
  requireInteger('keep.refused', refused, 1, MAX_MESSAGES)
  requireInteger('keep.refusedBytes', refusedBytes, MIN_BYTES)
  if (path !== undefined) requireText('keep.path', path, 'inspector.sqlite')
  return { messages, bytes, refused, refusedBytes, ...(path !== undefined && { path }) }
}

const MAX_MESSAGES = 100_000
/** Holds the largest body that a receiver takes by default. */
const MIN_BYTES = 1_000_000

/** For how long `forget` is remembered: a message may be under way. And how many calls are. */
const UNDER_WAY_MS = 600_000
const MAX_CALLS = 1_000

/**
 * Creates a journal in memory. With `keep.path` it writes all to a file, too, and begins with what earlier processes wrote there.
 *
 * @param log Receives a line when the file cannot be written or read: messages are kept in memory then.
 * @throws TypeError for a file that cannot be used.
 */
export function createJournal(keep: Keep, clock: Clock, log: Log, machine: Clock = systemClock): JournalWriter {
  const parts = new Map<string, PartIndex>()
  const listeners = new Set<() => void>()
  const file = keep.path === undefined ? undefined : openFile(keep.path, log, machine)
  const messages = createRequestLog<LoggedMessage>({ bounds: keep, sizeOf, onDrop, file })
  let resetAt = 0
  /** Calls of `forget`: the events of messages that were under way would bring them back. */
  let forgotten: readonly { wanted: ReadonlySet<unknown>; source?: string; at: number; until: number }[] = []

  function part(name: string): PartIndex {
    const known = parts.get(name) ?? { name, byId: new Map() }
    parts.set(name, known)
    return known
  }

  function index(logged: LoggedMessage): LoggedMessage {
    if (logged.deliveryId !== undefined) part(logged.part).byId.set(logged.deliveryId, logged)
    return logged
  }

  function onDrop(logged: LoggedMessage): void {
    const { byId } = part(logged.part)
    const { deliveryId = '' } = logged
    if (byId.get(deliveryId) === logged) byId.delete(deliveryId)
  }

  function callListeners(): void {
    for (const listener of listeners) listener()
  }

  function update(logged: LoggedMessage): void {
    messages.put(logged)
    callListeners()
  }

  for (const logged of messages.list().reverse()) index(logged)

  return {
    get version() {
      return messages.version
    },
    now: () => clock.now(),
    part,
    update,
    add: ({ name }, head) => index(createLogged(messages.nextId(), name, head)),
    isForgotten(at, body, source) {
      const since = forgotten.filter(
        (call) => at <= call.at && machine.monotonic() < call.until && isOf(call.source, source),
      )
      return since.length > 0 && usersIn(body).some((id) => since.some(({ wanted }) => wanted.has(id)))
    },
    changesSince(since = -1) {
      const { version } = messages
      const isReset = since < resetAt || since > version
      return { version, isReset, rows: messages.list(isReset ? -1 : since).map(rowOf) }
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    detail(id) {
      const logged = messages.get(id)
      return logged && detailOf(logged)
    },
    refused(id) {
      const logged = messages.get(id)
      if (logged === undefined || !canExplain(logged)) return undefined
      const { part, ownPath: path, headers, body: bytes } = logged
      return { part, path, headers, bytes }
    },
    rowOf: (name, deliveryId) => parts.get(name)?.byId.get(deliveryId)?.id,
    changed(name, ids, what, at, since) {
      const { byId } = part(name)
      for (const id of ids) {
        const logged = byId.get(id)
        if (logged === undefined) continue
        const { state, endedAt = 0 } = logged
        addStep(logged, { at, what })
        if (what === 'dropped') {
          logged.isStored = false
        } else if (state === 'dead' && (endedAt < at || (endedAt === at && messages.versionOf(logged) <= since))) {
          logged.state = 'waiting'
          logged.code = undefined
        }
        update(logged)
      }
    },
    forget(ids, source) {
      const wanted = readUsers(ids)
      const [at, now] = [clock.now(), machine.monotonic()]
      const call = { wanted, at, until: now + UNDER_WAY_MS, ...(source !== undefined && { source }) }
      forgotten = [...forgotten.filter(({ until }) => until > now), call].slice(-MAX_CALLS)
      const isAbout = matcherOf(wanted)
      const about = messages.list().filter((logged) => isOf(source, logged.source) && isAbout(logged))
      if (about.length === 0) return 0
      messages.delete(about)
      resetAt = messages.version
      callListeners()
      return about.length
    },
    close() {
      listeners.clear()
      messages.close()
    },
  }
}

/** How many bytes are parsed at most, for what nobody has parsed before: a stranger chose them. */
const MAX_PARSED = 250_000

/** What would take long to parse, and may be about one of these users, is taken to be. */
function matcherOf(wanted: ReadonlySet<unknown>): (logged: LoggedMessage) => boolean {
  const written = [...wanted].map((id) => String(id))
  let parsed = 0
  return ({ users, body }) => {
    if (users !== undefined) return users.some((id) => wanted.has(id))
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    if (!bytes.includes('\\') && !written.some((id) => bytes.includes(id))) return false
    parsed += bytes.length
    return parsed > MAX_PARSED || usersIn(bytes).some((id) => wanted.has(id))
  }
}

function isOf(wanted: string | undefined, source: string | undefined): boolean {
  return wanted === undefined || wanted === source
}

function openFile(path: string, log: Log, machine: Clock): LogFile<LoggedMessage> {
  try {
    return openLogFile<LoggedMessage>(path, {
      application: 0x686b_696e, // "hkin"
      writer: 'an inspector',
      toStored: withoutSecrets,
      isEntry: ({ part, steps }) => typeof part === 'string' && Array.isArray(steps),
      onFailure(error) {
        const text = `${cannotUse('The inspector', path, error)} Messages are kept in memory meanwhile.`
        log.write({ level: 'error', code: 'inspector_file', text, fields: { path } })
      },
      machine,
    })
  } catch (error) {
    throw new TypeError(cannotUse('`keep.path`: the inspector', path, error))
  }
}

/** Only the names of secret headers are written. */
function withoutSecrets(logged: LoggedMessage): LoggedMessage {
  const headers = Object.entries(logged.headers).map(([name, value]) => {
    const values = [value ?? []].flat().map((each) => shownHeader(name, each, isVerified(logged)) ?? '')
    return [name, Array.isArray(value) ? values : values[0]]
  })
  return { ...logged, headers: Object.fromEntries(headers) }
}
