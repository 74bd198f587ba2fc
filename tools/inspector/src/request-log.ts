/** Keeps a request log in memory. When there are too many entries or bytes, drops the oldest entries, but never the newest entry. */

export function createRequestLog<Entry extends { readonly id: number }>(
  count: number,
  bytes: number,
  onDrop: (entry: Entry) => void,
) {
  const kept = new Map<number, { readonly entry: Entry; readonly size: number }>()
  let total = 0

  function remove(entry: Entry): void {
    total -= kept.get(entry.id)?.size ?? 0
    kept.delete(entry.id)
    onDrop(entry)
  }

  return {
    /** Appends an entry, or updates the size of an existing entry. */
    append(entry: Entry, size: number): void {
      total += size - (kept.get(entry.id)?.size ?? 0)
      kept.set(entry.id, { entry, size })
      for (const oldest of kept.values()) {
        if (kept.size === 1 || (kept.size <= count && total <= bytes)) break
        remove(oldest.entry)
      }
    },
    list: (): readonly Entry[] => Array.from(kept.values(), ({ entry }) => entry),
    get: (id: number): Entry | undefined => kept.get(id)?.entry,
    remove,
  }
}
