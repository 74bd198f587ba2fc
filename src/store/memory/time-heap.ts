/**
 * Items that wait for their time, in a binary heap. The item with the earliest time is on top. If several items have this time, the one
 * that was pushed first is on top.
 */

interface Node<T> {
  readonly item: T
  readonly at: number
  readonly order: number
}

export function createTimeHeap<T>() {
  let nodes: Node<T>[] = []
  let order = 0

  function isBefore(one: number, other: number): boolean {
    const [a, b] = [nodes[one], nodes[other]]
    return a !== undefined && (b === undefined || a.at < b.at || (a.at === b.at && a.order < b.order))
  }

  function swap(one: number, other: number): void {
    const [a, b] = [nodes[one] as Node<T>, nodes[other] as Node<T>]
    nodes[one] = b
    nodes[other] = a
  }

  return {
    get size() {
      return nodes.length
    },
    push(item: T, at: number): void {
      let index = nodes.push({ item, at, order: order++ }) - 1
      for (let parent = (index - 1) >> 1; index > 0 && isBefore(index, parent); parent = (index - 1) >> 1) {
        swap(index, parent)
        index = parent
      }
    },
    nextAt: () => nodes[0]?.at,
    peek: () => nodes[0]?.item,
    pop(): T | undefined {
      swap(0, nodes.length - 1)
      const top = nodes.pop()
      for (let index = 0; ; ) {
        const left = 2 * index + 1
        const child = isBefore(left + 1, left) ? left + 1 : left
        if (!isBefore(child, index)) return top?.item
        swap(child, index)
        index = child
      }
    },
    filter(keep: (item: T) => boolean): void {
      nodes = nodes.filter(({ item }) => keep(item)).sort((a, b) => a.at - b.at || a.order - b.order) // A sorted list is a valid heap.
    },
  }
}
