/** Keys in memory that each end at a time. They are added in the order in which they end. */

/** One key. */
interface Entry {
  readonly key: string
  /** When it ends. */
  readonly until: number
}

/** The keys. */
export interface Expiring {
  /** How many, those included that ended and were not forgotten yet. */
  readonly size: number
  /** The key's entry, unless it ended. */
  get(key: string, now: number): Entry | undefined
  /** The one that was added first, ended or not. */
  oldest(): Entry | undefined
  /** Adds a key, in place of its older entry. */
  add(key: string, until: number): Entry
  /** Does nothing for an entry whose key has a newer one. */
  remove(entry: Entry): void
  clear(): void
}

/** Makes it, empty. */
export function createExpiring(): Expiring {
  const entries = new Map<string, Entry>()
  // Goes on from where it stood: one made anew would walk over all that was removed since the Map last tidied up.
  let line = entries.values()
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
      let next = line.next()
      if (next.done) {
        line = entries.values()
        next = line.next()
      }
      first = next.value
      return first
    },
    add(key, until) {
      const entry = { key, until }
      entries.delete(key) // So that it stands last.
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
