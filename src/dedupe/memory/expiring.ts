/** Keys in memory with the time when each ends. They must be added in the order in which they end. */

interface Entry {
  readonly key: string
  /** When it ends. */
  readonly until: number
}

export interface Expiring {
  /** How many keys, including those that ended and are not removed yet. */
  readonly size: number
  /** The entry of a key, unless it has ended. */
  get(key: string, now: number): Entry | undefined
  /** The entry that was added first, ended or not. */
  oldest(): Entry | undefined
  /** Adds a key and removes its older entry. */
  add(key: string, until: number): Entry
  /** Has no effect for an entry whose key has a newer one. */
  remove(entry: Entry): void
  clear(): void
}

export function createExpiring(): Expiring {
  const entries = new Map<string, Entry>()
  // Kept between calls: a new iterator would step over every entry removed since the Map was last compacted.
  let iterator = entries.values()
  let first: Entry | undefined

  return {
    get size() {
      return entries.size
    },
    get(key, now) {
      const entry = entries.get(key)
      return entry !== undefined && entry.until > now ? entry : undefined
    },
    oldest() {
      if (first !== undefined && entries.get(first.key) === first) return first
      let next = iterator.next()
      if (next.done) {
        iterator = entries.values()
        next = iterator.next()
      }
      first = next.value
      return first
    },
    add(key, until) {
      const entry = { key, until }
      entries.delete(key) // The new entry goes to the end.
      entries.set(key, entry)
      return entry
    },
    remove(entry) {
      if (entries.get(entry.key) === entry) entries.delete(entry.key)
    },
    clear() {
      entries.clear()
    },
  }
}
