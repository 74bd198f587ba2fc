/** A line: first in, first out, however long it is. */

/** What stands in line. */
export interface Fifo<T> {
  readonly size: number
  push(item: T): void
  /** Takes the first, or undefined when nobody stands in line. */
  shift(): T | undefined
  /** The first, left where it is. */
  peek(): T | undefined
}

/** Makes a line. Every step costs the same on average; `Array.prototype.shift` moves all that stand behind. */
export function createFifo<T>(): Fifo<T> {
  let arriving: T[] = []
  let leaving: T[] = [] // The first in line is last here.

  return {
    get size() {
      return arriving.length + leaving.length
    },
    push(item) {
      arriving.push(item)
    },
    shift() {
      if (leaving.length === 0) {
        leaving = arriving.reverse()
        arriving = []
      }
      return leaving.pop()
    },
    peek: () => leaving.at(-1) ?? arriving[0],
  }
}
