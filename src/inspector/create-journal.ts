/** createJournal(): messages by their ids, in the order of their changes, within bounds. */

import { matchUser } from '../message/identity.ts'
import type { Log } from '../options/log.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { Entry, type Home } from './entry.ts'
import { createForgotten, createPools, detailOf, type JournalWriter, type Keep, type Pool, settle } from './journal.ts'
import { openJournalFile } from './journal-file.ts'
import { bodiesOf } from './lines.ts'
import type { Row } from './wire-message.ts'

/**
 * Creates a journal: in memory, or with `keep.path` in a file, from which it reads what earlier processes kept.
 *
 * @param log Receives a line when the file cannot be written or read: messages are kept in memory then.
 * @throws TypeError for a file that cannot be used.
 */
export function createJournal(keep: Keep, clock: Clock, log: Log, machine: Clock = systemClock): JournalWriter {
  const file = keep.path === undefined ? undefined : openJournalFile(keep.path, log, machine)
  const homes = new Map<string, Home>()
  const pools = createPools(keep)
  const forgotten = createForgotten(machine)
  const listeners = new Set<() => void>()
  /** The entry that changed last. Each knows the one before: what has changed since a version is read from here back. */
  let latest: Entry | undefined
  // Versions that are shown are greater than those of earlier processes, which a page may know. Here they are small integers.
  const base = Date.now() * 1_000
  let version = 0
  let resetAt = 0
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

  /** Drops an entry that its pool holds no more. */
  function drop(entry: Entry): void {
    const { home, key, jobId } = entry
    if (key !== undefined && home.byKey.get(key) === entry) home.byKey.delete(key)
    if (jobId !== undefined && home.byJob.get(jobId) === entry) home.byJob.delete(jobId)
    unlink(entry)
    file?.dropped(entry)
    entry.release()
  }

  /** Whoever looks at a message can wait for that; a map would cost each message more. */
  function find(id: number): Entry | undefined {
    let entry = latest
    while (entry !== undefined && entry.id !== id) entry = entry.before
    return entry
  }

  function callListeners(): void {
    if (hasCalled) return
    hasCalled = true
    for (const listener of listeners) listener()
  }

  /** Adds an entry to its pool, and to where the events of its message find it. */
  function insert(entry: Entry): Entry {
    const { key, jobId, home } = entry
    lastId = entry.id
    poolOf(entry).entries.push(entry)
    if (key !== undefined) home.byKey.set(key, entry)
    if (jobId !== undefined) home.byJob.set(jobId, entry)
    return entry
  }

  function note(entry: Entry): void {
    entry.version = version += 1
    if (latest !== entry) {
      unlink(entry)
      entry.before = latest
      if (latest !== undefined) latest.after = entry
      latest = entry
    }
    for (const oldest of settle(poolOf(entry), entry)) drop(oldest)
  }

  function update(entry: Entry): void {
    file?.changed(entry)
    note(entry)
    callListeners()
  }

  function home(part: string): Home {
    const known = homes.get(part)
    if (known !== undefined) return known
    const created: Home = { name: part, byKey: new Map(), byJob: new Map() }
    homes.set(part, created)
    return created
  }

  for (const [id, { part, at, kind, key, isRefused, ...fields }] of file?.load() ?? []) {
    const entry = new Entry(id, at, kind, home(part), key, isRefused)
    note(insert(Object.assign(entry, fields, { isStored: true })))
  }

  return {
    get version() {
      return version
    },
    now: () => clock.now(),
    home,
    update,
    add: (home, kind, at, key, isRefused) => insert(new Entry(lastId + 1, at, kind, home, key, isRefused)),
    isForgotten: forgotten.has,
    setJob(entry, jobId) {
      entry.jobId = jobId
      entry.home.byJob.set(jobId, entry)
    },
    changesSince(shown) {
      hasCalled = false
      const since = shown === undefined ? -1 : shown - base
      const isReset = since < resetAt || since > version
      const rows: Row[] = []
      for (let entry = latest; entry && (isReset || entry.version > since); entry = entry.before) rows.push(entry.row())
      return { version: base + version, isReset, rows: rows.sort((one, other) => other.id - one.id) }
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    detail(id) {
      const entry = find(id)
      return entry && detailOf(entry, file?.read(entry))
    },
    refused(id) {
      const entry = find(id)
      if (!entry?.canExplain) return undefined
      const { headers = {}, body } = file?.read(entry) ?? entry
      return { part: entry.home.name, path: entry.ownPath, headers, bytes: body }
    },
    rowOfJob: (part, jobId) => homes.get(part)?.byJob.get(jobId)?.id,
    changed(part, jobIds, what, at, since) {
      for (const jobId of jobIds) {
        const entry = homes.get(part)?.byJob.get(jobId)
        if (entry === undefined) continue
        const { state, endedAt = 0 } = entry
        entry.add({ at, what })
        if (what === 'dropped') {
          entry.jobId = undefined
          entry.home.byJob.delete(jobId)
        } else if (state === 'dead' && (endedAt < at || (endedAt === at && entry.version <= since))) {
          entry.state = 'waiting'
          entry.code = undefined
        }
        update(entry)
      }
    },
    forget(ids, source) {
      const isAbout = matchUser(ids)
      forgotten.note({ isAbout, source, at: clock.now() })
      let count = 0
      for (const pool of pools) {
        pool.entries.filter((entry) => {
          if (source !== undefined && entry.source !== source) return true
          // What cannot be read may be theirs.
          const stored = entry.isStored ? file?.read(entry) : entry
          if (stored !== undefined && !bodiesOf(stored.body, entry.kind).some(isAbout)) return true
          pool.bytes -= entry.counted
          drop(entry)
          count += 1
          return false
        })
      }
      if (count > 0) {
        file?.purge()
        resetAt = version += 1
        callListeners()
      }
      return count
    },
    close() {
      listeners.clear()
      file?.close()
    },
  }
}
