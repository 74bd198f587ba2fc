/** A list whose slots are reused. */

/**
 * Creates an empty list. It replaces a Set or a Map on a hot path: each table that a Set or a Map has outgrown keeps its contents and the
 * next table alive (bench/METHOD.md).
 */
export function createSlots<T>() {
  const items: (T | undefined)[] = []
  const free: number[] = []

  return {
    get size(): number {
      return items.length - free.length
    },
    /** Adds an item, and returns its slot, which `remove` needs. */
    add(item: T): number {
      const slot = free.pop() ?? items.length
      items[slot] = item
      return slot
    },
    remove(slot: number): void {
      items[slot] = undefined
      free.push(slot)
    },
    list: (): T[] => items.filter((item) => item !== undefined),
  }
}
