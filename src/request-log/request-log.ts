/**
 * The request log: a bounded list of plain objects in memory, and the same in one table of a SQLite file.
 *
 *     const file = openLogFile<Entry>(path, { … })                    // Optional: without one, the log ends with the process.
 *     const log = createRequestLog<Entry>({ bounds, sizeOf, file })   // Begins with what the file holds.
 *     const entry = { id: log.nextId(), body, … }
 *     log.put(entry)                                                  // Again after each change of its fields.
 *     log.list()                                                      // The newest first.
 */

import type { LogEntry, LogFile } from './log-file.ts'

export interface LogBounds {
  readonly messages: number
  readonly bytes: number
  readonly refused: number
  readonly refusedBytes: number
}

export interface RequestLogOptions<Entry extends LogEntry> {
  readonly bounds: LogBounds
  /** Estimates how many bytes an entry takes. */
  readonly sizeOf: (entry: Entry) => number
  readonly onDrop?: (entry: Entry) => void
  readonly file?: LogFile<Entry> | undefined
}

export interface RequestLog<Entry extends LogEntry> {
  readonly version: number
  nextId(): number
  put(entry: Entry): void
  get(id: number): Entry | undefined
  /** Lists the entries that were added or changed after a version, the newest first. Default: all. */
  list(since?: number): Entry[]
  versionOf(entry: Entry): number
  /** Deletes entries, and leaves nothing of them in the file. */
  delete(entries: readonly Entry[]): void
  /** Writes what the file does not hold yet, and closes it. */
  close(): void
}

interface Pool<Entry> {
  readonly most: number
  readonly mostBytes: number
  bytes: number
  readonly kept: Map<number, { readonly entry: Entry; readonly size: number; readonly version: number }>
}

export function createRequestLog<Entry extends LogEntry>(options: RequestLogOptions<Entry>): RequestLog<Entry> {
  const { bounds, sizeOf, onDrop, file } = options
  const messages: Pool<Entry> = { most: bounds.messages, mostBytes: bounds.bytes, bytes: 0, kept: new Map() }
  const refused: Pool<Entry> = { most: bounds.refused, mostBytes: bounds.refusedBytes, bytes: 0, kept: new Map() }
  let version = 0
  let lastId = 0

  const poolOf = ({ isRefused }: LogEntry): Pool<Entry> => (isRefused ? refused : messages)

  function insert(entry: Entry): void {
    const pool = poolOf(entry)
    const size = sizeOf(entry)
    pool.bytes += size - (pool.kept.get(entry.id)?.size ?? 0)
    version += 1
    lastId = Math.max(lastId, entry.id)
    pool.kept.set(entry.id, { entry, size, version })
    // One stays, however large it is.
    for (const oldest of pool.kept.values()) {
      const count = pool.kept.size
      if (count <= pool.most && (pool.bytes <= pool.mostBytes || count === 1)) break
      drop(oldest.entry)
    }
  }

  function drop(entry: Entry): void {
    const pool = poolOf(entry)
    pool.bytes -= pool.kept.get(entry.id)?.size ?? 0
    pool.kept.delete(entry.id)
    file?.drop(entry)
    onDrop?.(entry)
  }

  for (const entry of file?.load() ?? []) insert(entry)

  return {
    get version() {
      return version
    },
    nextId() {
      lastId += 1
      return lastId
    },
    put(entry) {
      file?.put(entry)
      insert(entry)
    },
    get: (id) => (messages.kept.get(id) ?? refused.kept.get(id))?.entry,
    list(since = -1) {
      const kept = [...messages.kept.values(), ...refused.kept.values()].filter((each) => each.version > since)
      return kept.map(({ entry }) => entry).sort((one, other) => other.id - one.id)
    },
    versionOf: (entry) => poolOf(entry).kept.get(entry.id)?.version ?? 0,
    delete(entries) {
      for (const entry of entries) drop(entry)
      version += 1
      file?.write({ leavesNothing: true })
    },
    close: () => file?.close(),
  }
}
