/** The messages that an inspector keeps: written by what watches the parts, read by the endpoint; and how many there may be. */

import type { EndpointHeaders } from '../http/endpoint.ts'
import { requireOptions, requireText, requireWhole } from '../options/checks.ts'
import type { Log } from '../options/log.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { KeepOptions } from './api.ts'
import { createForgotten } from './forgotten.ts'
import { openJournalFile } from './journal-file.ts'
import { bodiesOf } from './lines.ts'
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
import type { Detail, Row } from './wire.ts'

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

/** Where the messages of one part are found: by the id of a delivery, and by that of a job. */
export interface PartIndex {
  readonly name: string
  readonly byKey: Map<string, LoggedMessage>
  readonly byJob: Map<string, LoggedMessage>
}

/** What those who watch the parts write. */
export interface JournalWriter extends Journal {
  /** The time, by the clock of the app. */
  now(): number
  /** Where the messages of a part are found. */
  part(name: string): PartIndex
  /** Adds a message. Call {@link update} once it is filled. */
  add(part: PartIndex, head: LoggedHead): LoggedMessage
  /** Whether a message was forgotten since it arrived, while it was under way: nothing of it may be added. */
  isForgotten(kind: Row['kind'], at: number, body: Uint8Array, source?: string): boolean
  /** Says which job a message has become. */
  setJob(logged: LoggedMessage, jobId: string): void
  /** Tells that a message has changed. */
  update(logged: LoggedMessage): void
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
  requireWhole('keep.messages', messages, 1, MAX_MESSAGES)
  requireWhole('keep.bytes', bytes, MIN_BYTES)
  requireWhole('keep.refused', refused, 1, MAX_MESSAGES)
  requireWhole('keep.refusedBytes', refusedBytes, MIN_BYTES)
  if (path !== undefined) requireText('keep.path', path, 'inspector.sqlite')
  return { messages, bytes, refused, refusedBytes, ...(path !== undefined && { path }) }
}

/** A page lists all of them. */
const MAX_MESSAGES = 100_000
/** Holds the largest body that a receiver takes by default. */
const MIN_BYTES = 1_000_000

/** Messages within bounds, the oldest first. */
interface Bounded {
  readonly most: number
  readonly mostBytes: number
  bytes: number
  readonly kept: Map<number, Kept>
}

/** A message with the version of its latest change, 0 before the first, and its size at that time. */
interface Kept {
  readonly logged: LoggedMessage
  version: number
  size: number
}

/**
 * Creates a journal in memory. With `keep.path` it writes all to a file, too, and begins with what earlier processes wrote there.
 *
 * @param log Receives a line when the file cannot be written or read: messages are kept in memory then.
 * @throws TypeError for a file that cannot be used.
 */
export function createJournal(keep: Keep, clock: Clock, log: Log, machine: Clock = systemClock): JournalWriter {
  const file = keep.path === undefined ? undefined : openJournalFile(keep.path, log, machine)
  const parts = new Map<string, PartIndex>()
  const messages: Bounded = { most: keep.messages, mostBytes: keep.bytes, bytes: 0, kept: new Map() }
  const refused: Bounded = { most: keep.refused, mostBytes: keep.refusedBytes, bytes: 0, kept: new Map() }
  const forgotten = createForgotten(machine)
  const listeners = new Set<() => void>()
  // Versions that are shown are greater than those of earlier processes, which a page may know.
  const base = Date.now() * 1_000
  let version = 0
  let resetAt = 0
  let lastId = 0
  let hasCalled = false

  const listOf = ({ isRefused }: LoggedMessage): Bounded => (isRefused ? refused : messages)
  const find = (id: number): LoggedMessage | undefined => (messages.kept.get(id) ?? refused.kept.get(id))?.logged
  const all = (): Kept[] => [...messages.kept.values(), ...refused.kept.values()]

  function callListeners(): void {
    if (hasCalled) return
    hasCalled = true
    for (const listener of listeners) listener()
  }

  function part(name: string): PartIndex {
    const known = parts.get(name)
    if (known !== undefined) return known
    const created: PartIndex = { name, byKey: new Map(), byJob: new Map() }
    parts.set(name, created)
    return created
  }

  function insert(logged: LoggedMessage): LoggedMessage {
    const { id, key, jobId } = logged
    const { byKey, byJob } = part(logged.part)
    lastId = id
    if (key !== undefined) byKey.set(key, logged)
    if (jobId !== undefined) byJob.set(jobId, logged)
    listOf(logged).kept.set(id, { logged, version: 0, size: 0 })
    trim(listOf(logged))
    return logged
  }

  function drop(list: Bounded, { logged, size }: Kept): void {
    const { id, key, jobId } = logged
    const { byKey, byJob } = part(logged.part)
    if (key !== undefined && byKey.get(key) === logged) byKey.delete(key)
    if (jobId !== undefined && byJob.get(jobId) === logged) byJob.delete(jobId)
    list.kept.delete(id)
    list.bytes -= size
    file?.dropped(logged)
  }

  /** Drops the oldest for which there is no room. One stays, however large it is. */
  function trim(list: Bounded): void {
    for (const kept of list.kept.values()) {
      const { size } = list.kept
      if (size <= list.most && (list.bytes <= list.mostBytes || size === 1)) return
      drop(list, kept)
    }
  }

  function note(logged: LoggedMessage): void {
    const list = listOf(logged)
    const kept = list.kept.get(logged.id) as Kept
    const size = sizeOf(logged)
    list.bytes += size - kept.size
    kept.size = size
    version += 1
    kept.version = version
    trim(list)
  }

  function update(logged: LoggedMessage): void {
    if (find(logged.id) !== logged) return // It was dropped meanwhile.
    file?.changed(logged)
    note(logged)
    callListeners()
  }

  for (const logged of file?.load() ?? []) note(insert(logged))

  return {
    get version() {
      return version
    },
    now: () => clock.now(),
    part,
    update,
    add: ({ name }, head) => insert(createLogged(lastId + 1, name, head)),
    isForgotten: forgotten.has,
    setJob(logged, jobId) {
      logged.jobId = jobId
      part(logged.part).byJob.set(jobId, logged)
    },
    changesSince(shown) {
      hasCalled = false
      const since = shown === undefined ? -1 : shown - base
      const isReset = since < resetAt || since > version
      const from = isReset ? 0 : since
      const rows = all().flatMap((kept) => (kept.version > from ? [rowOf(kept.logged)] : []))
      return { version: base + version, isReset, rows: rows.sort((one, other) => other.id - one.id) }
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    detail(id) {
      const logged = find(id)
      return logged && detailOf(logged)
    },
    refused(id) {
      const logged = find(id)
      if (logged === undefined || !canExplain(logged)) return undefined
      const { part, ownPath: path, headers, body: bytes } = logged
      return { part, path, headers, bytes }
    },
    rowOfJob: (name, jobId) => parts.get(name)?.byJob.get(jobId)?.id,
    changed(name, jobIds, what, at, since) {
      const { byJob } = part(name)
      for (const jobId of jobIds) {
        const logged = byJob.get(jobId)
        if (logged === undefined) continue
        const { id, state, endedAt = 0 } = logged
        const changedAt = messages.kept.get(id)?.version ?? 0
        addStep(logged, { at, what })
        if (what === 'dropped') {
          logged.jobId = undefined
          byJob.delete(jobId)
        } else if (state === 'dead' && (endedAt < at || (endedAt === at && changedAt <= since))) {
          logged.state = 'waiting'
          logged.code = undefined
        }
        update(logged)
      }
    },
    forget(ids, source) {
      const isAbout = forgotten.note(ids, source, clock.now())
      const about = all().filter(({ logged: { body, kind, ...logged } }) => {
        return (source === undefined || logged.source === source) && bodiesOf(body, kind).some(isAbout)
      })
      for (const kept of about) drop(listOf(kept.logged), kept)
      if (about.length > 0) {
        file?.purge()
        resetAt = version += 1
        callListeners()
      }
      return about.length
    },
    close() {
      listeners.clear()
      file?.close()
    },
  }
}
