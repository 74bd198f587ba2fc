/** Things that come and go, each in a place that another one uses afterwards. */

/** Hot path: each table that a Set or a Map outgrows keeps alive what was in it, and the next one (bench/METHOD.md). */
export function createSlots<T>() {
  const items: (T | undefined)[] = []
  const free: number[] = []

  return {
    get size(): number {
      return items.length - free.length
    },
    add(item: T): number {
      const place = free.pop() ?? items.length
      items[place] = item
      return place
    },
    remove(place: number): void {
      items[place] = undefined
      free.push(place)
    },
    list: (): T[] => items.filter((item) => item !== undefined),
  }
}
