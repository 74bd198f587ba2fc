/** Things that come and go, each in a place that another one uses afterwards. */

/**
 * Creates places that are all free. Hot path: a Set or a Map whose items come and go makes a new table now and then, and the outgrown one,
 * once the garbage collector has moved it to its old generation, keeps alive all that was in it, and the next table.
 */
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
