/** A queue in memory: first in, first out, of any length. */

export interface Fifo<T> {
  readonly size: number
  push(item: T): void
  shift(): T | undefined
  peek(): T | undefined
  filter(stays: (item: T) => boolean): void
}

/** Creates an empty queue. Each method is O(1) on average, unlike `Array.prototype.shift`, which moves all later items. */
export function createFifo<T>(): Fifo<T> {
  let incoming: T[] = []
  let outgoing: T[] = [] // Reversed: the first item comes last.

  return {
    get size() {
      return incoming.length + outgoing.length
    },
    push(item) {
      incoming.push(item)
    },
    shift() {
      if (outgoing.length === 0) {
        outgoing = incoming.reverse()
        incoming = []
      }
      return outgoing.pop()
    },
    peek: () => outgoing.at(-1) ?? incoming[0],
    filter(stays) {
      incoming = incoming.filter(stays)
      outgoing = outgoing.filter(stays)
    },
  }
}
