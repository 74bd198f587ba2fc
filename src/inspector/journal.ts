/** The messages that an inspector keeps: written by what watches the parts, read by the endpoint. */

import type { EndpointHeaders } from '../http/endpoint.ts'
import { matchUser } from '../message/identity.ts'
import type { Clock } from '../time/clock.ts'
import { createPool, Entry, type Home, type Pool } from './entry.ts'
import type { Keep } from './journal-file.ts'
import { bodiesOf } from './lines.ts'
import type { Detail, Row } from './wire-message.ts'

/** What has changed since a version of the journal. */
export interface Changes {
  /** The version now. */
  readonly version: number
  /** Whether `rows` are all that are kept: the version was unknown, or too much has gone since. */
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
  /** Notes that dead letters were redriven or dropped from the page. */
  changed(part: string, jobIds: readonly string[], what: 'redriven' | 'dropped', at: number): void
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
  /** Says which job an entry has become. */
  setJob(entry: Entry, jobId: string): void
  /** Tells that an entry has changed. */
  update(entry: Entry): void
}

/** Creates a journal in memory. */
export function createJournal(keep: Keep, clock: Clock): JournalWriter {
  const homes = new Map<string, Home>()
  const entries = new Map<number, Entry>()
  const pools = [createPool(keep.messages, keep.bytes), createPool(keep.refused, keep.refusedBytes)] as const
  const listeners = new Set<() => void>()
  /** The entry that changed last. Each knows the one before: what has changed since a version is read from here back. */
  let latest: Entry | undefined
  // Greater than that of any journal of an earlier process, which a page may know.
  let version = Date.now() * 1_000
  let resetAt = version
  let lastId = 0
  let hasCalled = false

  function poolOf(entry: Entry): Pool {
    return pools[entry.isRefused ? 1 : 0]
  }

  function unlink(entry: Entry): void {
    const { before, after } = entry
    if (before !== undefined) before.after = after
    if (after !== undefined) after.before = before
    else if (latest === entry) latest = before
    entry.before = entry.after = undefined
  }

  /** Of an entry that its pool holds no more. */
  function drop(entry: Entry): void {
    const { home, key, jobId } = entry
    poolOf(entry).bytes -= entry.counted
    entries.delete(entry.id)
    if (key !== undefined && home.byKey.get(key) === entry) home.byKey.delete(key)
    if (jobId !== undefined && home.byJob.get(jobId) === entry) home.byJob.delete(jobId)
    unlink(entry)
  }

  function callListeners(): void {
    if (hasCalled) return
    hasCalled = true
    for (const listener of listeners) listener()
  }

  function update(entry: Entry): void {
    const pool = poolOf(entry)
    pool.bytes += entry.size - entry.counted
    entry.counted = entry.size
    entry.version = version += 1
    if (latest !== entry) {
      unlink(entry)
      entry.before = latest
      if (latest !== undefined) latest.after = entry
      latest = entry
    }
    while (pool.entries.size > pool.most || (pool.bytes > pool.mostBytes && pool.entries.size > 1)) {
      drop(pool.entries.shift() as Entry)
    }
    callListeners()
  }

  function home(part: string): Home {
    const known = homes.get(part)
    if (known !== undefined) return known
    const created: Home = { name: part, byKey: new Map(), byJob: new Map() }
    homes.set(part, created)
    return created
  }

  return {
    now: () => clock.now(),
    home,
    update,
    add(home, kind, at, key, isRefused) {
      lastId += 1
      const entry = new Entry(lastId, at, kind, home, key, isRefused)
      entries.set(entry.id, entry)
      poolOf(entry).entries.push(entry)
      if (key !== undefined) home.byKey.set(key, entry)
      return entry
    },
    setJob(entry, jobId) {
      entry.jobId = jobId
      entry.home.byJob.set(jobId, entry)
    },
    changesSince(since) {
      hasCalled = false
      const isReset = since === undefined || since < resetAt || since > version
      const rows: Row[] = []
      for (let entry = latest; entry && (isReset || entry.version > since); entry = entry.before) rows.push(entry.row())
      return { version, isReset, rows: rows.sort((one, other) => other.id - one.id) }
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    detail: (id) => entries.get(id)?.detail(undefined),
    refused(id) {
      const entry = entries.get(id)
      if (!entry?.canExplain) return undefined
      return { part: entry.home.name, path: entry.path, headers: entry.headers ?? {}, bytes: entry.body }
    },
    rowOfJob: (part, jobId) => homes.get(part)?.byJob.get(jobId)?.id,
    changed(part, jobIds, what, at) {
      for (const jobId of jobIds) {
        const entry = homes.get(part)?.byJob.get(jobId)
        if (entry === undefined) continue
        entry.change(what, at)
        if (what === 'dropped') entry.home.byJob.delete(jobId)
        update(entry)
      }
    },
    forget(ids, source) {
      const isAbout = matchUser(ids)
      let count = 0
      for (const { entries } of pools) {
        entries.filter((entry) => {
          if (source !== undefined && entry.source !== source) return true
          if (!bodiesOf(entry.body, entry.kind).some(isAbout)) return true
          drop(entry)
          count += 1
          return false
        })
      }
      if (count > 0) {
        resetAt = version += 1
        callListeners()
      }
      return count
    },
    close: () => listeners.clear(),
  }
}
