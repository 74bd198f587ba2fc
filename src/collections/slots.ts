/** Things that come and go, each in a place that another one uses afterwards. */

/** The places. */
export interface Slots<T> {
  readonly size: number
  /** Puts an item into a free place, and returns the place. */
  add(item: T): number
  /** Frees a place that is taken. */
  remove(place: number): void
  /** Every item, in any order. */
  list(): T[]
}

/**
 * Creates places that are all free. Hot path: a Set or a Map whose items come and go makes a new table now and then, and the outgrown one,
 * once the garbage collector has moved it to its old generation, keeps alive all that was in it, and the next table.
 */
export function createSlots<T>(): Slots<T> {
  const items: (T | undefined)[] = []
  const free: number[] = []

  return {
    get size() {
      return items.length - free.length
    },
    add(item) {
      const place = free.pop() ?? items.length
      items[place] = item
      return place
    },
    remove(place) {
      items[place] = undefined
      free.push(place)
    },
    list: () => items.filter((item) => item !== undefined),
  }
}
