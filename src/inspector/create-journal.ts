/** createJournal(): messages by their ids, in the order of their changes, within bounds. */

import { matchUser } from '../message/identity.ts'
import type { Log } from '../options/log.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { Entry, type EntryHead, type Home } from './entry.ts'
import { createForgotten, detailOf, type JournalWriter, type Keep } from './journal.ts'
import { openJournalFile } from './journal-file.ts'
import { bodiesOf } from './lines.ts'
import { Pool } from './pool.ts'

/**
 * Creates a journal: in memory, or with `keep.path` in a file, from which it reads what earlier processes kept.
 *
 * @param log Receives a line when the file cannot be written or read: messages are kept in memory then.
 * @throws TypeError for a file that cannot be used.
 */
export function createJournal(keep: Keep, clock: Clock, log: Log, machine: Clock = systemClock): JournalWriter {
  const file = keep.path === undefined ? undefined : openJournalFile(keep.path, log, machine)
  const homes = new Map<string, Home>()
  const forgotten = createForgotten(machine)
  const listeners = new Set<() => void>()
  // Versions that are shown are greater than those of earlier processes, which a page may know. Here they are small integers.
  const base = Date.now() * 1_000
  let version = 0
  let resetAt = 0
  let lastId = 0
  let hasCalled = false

  function dropped(entry: Entry): void {
    const { home, key, jobId } = entry
    if (key !== undefined && home.byKey.get(key) === entry) home.byKey.delete(key)
    if (jobId !== undefined && home.byJob.get(jobId) === entry) home.byJob.delete(jobId)
    file?.dropped(entry)
    entry.release()
  }

  const messages = new Pool(keep.messages, keep.bytes, dropped)
  const refused = new Pool(keep.refused, keep.refusedBytes, dropped)

  function find(id: number): Entry | undefined {
    return messages.find(id) ?? refused.find(id)
  }

  function callListeners(): void {
    if (hasCalled) return
    hasCalled = true
    for (const listener of listeners) listener()
  }

  /** Creates an entry in its pool, where the events of its message find it. */
  function add(head: EntryHead, fields: Partial<Entry> = {}): Entry {
    const pool = head.isRefused ? refused : messages
    const entry = Object.assign(new Entry(head, pool.slabs), fields)
    const { id, key, jobId, home } = entry
    lastId = id
    pool.add(entry)
    if (key !== undefined) home.byKey.set(key, entry)
    if (jobId !== undefined) home.byJob.set(jobId, entry)
    return entry
  }

  function note(entry: Entry): void {
    version += 1
    const pool = entry.isRefused ? refused : messages
    pool.note(entry, version)
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
    note(add({ id, at, kind, home: home(part), key, isRefused }, { ...fields, isStored: true }))
  }

  return {
    get version() {
      return version
    },
    now: () => clock.now(),
    home,
    update,
    add: (home, kind, at, key, isRefused) => add({ id: lastId + 1, at, kind, home, key, isRefused }),
    addExchange(home, handled, answered) {
      const { delivery } = handled
      const { id: key, bytes, source } = delivery
      if (file !== undefined || home.byKey.has(key)) return false // A file is written entry by entry.
      if (!forgotten.isEmpty && forgotten.has('received', delivery.receivedAt.getTime(), bytes, source)) return false
      if (!messages.addExchange(lastId + 1, version + 1, home, key, handled, answered, clock.now())) return false
      lastId += 1
      version += 1
      callListeners()
      return true
    },
    find: (home, key) => home.byKey.get(key) ?? messages.findExchange(home, key),
    isForgotten: forgotten.has,
    setJob(entry, jobId) {
      entry.jobId = jobId
      entry.home.byJob.set(jobId, entry)
    },
    changesSince(shown) {
      hasCalled = false
      const since = shown === undefined ? -1 : shown - base
      const isReset = since < resetAt || since > version
      const from = isReset ? 0 : since
      const rows = [...messages.rowsSince(from), ...refused.rowsSince(from)]
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
      return { part: entry.home.name, path: entry.ownPath, headers, bytes: new Uint8Array(body) }
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
        } else if (state === 'dead' && (endedAt < at || (endedAt === at && messages.versionOf(entry) <= since))) {
          entry.state = 'waiting'
          entry.code = undefined
        }
        update(entry)
      }
    },
    forget(ids, source) {
      const isAbout = matchUser(ids)
      forgotten.note({ isAbout, source, at: clock.now() })
      const goes = (entry: Entry): boolean => {
        if (source !== undefined && entry.source !== source) return false
        // What cannot be read may be theirs.
        const stored = entry.isStored ? file?.read(entry) : entry
        return stored === undefined || bodiesOf(stored.body, entry.kind).some(isAbout)
      }
      const count = messages.dropWhere(goes) + refused.dropWhere(goes)
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
