/** A queue in memory: first in, first out, of any length. */

export type Fifo<T> = ReturnType<typeof createFifo<T>>

/** Creates an empty queue. Each method is O(1) on average, unlike `Array.prototype.shift`, which moves all later items. */
export function createFifo<T>() {
  let incoming: T[] = []
  let outgoing: T[] = [] // In reverse: the first item comes last.

  return {
    get size(): number {
      return incoming.length + outgoing.length
    },
    push(item: T): void {
      incoming.push(item)
    },
    shift(): T | undefined {
      if (outgoing.length === 0) {
        outgoing = incoming.reverse()
        incoming = []
      }
      return outgoing.pop()
    },
    peek: (): T | undefined => outgoing.at(-1) ?? incoming[0],
    /** Removes all items for which `isKept` returns false. */
    filter(isKept: (item: T) => boolean): void {
      incoming = incoming.filter(isKept)
      outgoing = outgoing.filter(isKept)
    },
  }
}
