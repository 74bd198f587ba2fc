/** Keys in memory with the time when each ends. They must be added in the order in which they end. */

interface Entry {
  readonly key: string
  readonly until: number
}

export type Expiring = ReturnType<typeof createExpiring>

export function createExpiring() {
  const entries = new Map<string, Entry>()
  // Kept between calls: a new iterator would step over every entry removed since the Map was last compacted.
  let iterator = entries.values()
  let first: Entry | undefined

  return {
    get size() {
      return entries.size
    },
    get(key: string, now: number): Entry | undefined {
      const entry = entries.get(key)
      return entry !== undefined && entry.until > now ? entry : undefined
    },
    oldest(): Entry | undefined {
      if (first !== undefined && entries.get(first.key) === first) return first
      let next = iterator.next()
      if (next.done) {
        iterator = entries.values()
        next = iterator.next()
      }
      first = next.value
      return first
    },
    add(key: string, until: number): Entry {
      const entry = { key, until }
      entries.delete(key) // The new entry goes to the end.
      entries.set(key, entry)
      return entry
    },
    remove(entry: Entry): void {
      if (entries.get(entry.key) === entry) entries.delete(entry.key)
    },
    clear: () => entries.clear(),
  }
}
