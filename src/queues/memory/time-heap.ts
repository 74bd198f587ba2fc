/** Things that wait for their time: a binary heap, the earliest on top. */

interface Node<T> {
  readonly item: T
  readonly at: number
  readonly order: number
}

/** Creates an empty heap. */
export function createTimeHeap<T>() {
  let nodes: Node<T>[] = []
  let order = 0

  return {
    get size() {
      return nodes.length
    },
    push(item: T, at: number): void {
      order += 1
      rise(nodes, { item, at, order })
    },
    nextAt: () => nodes[0]?.at,
    /** Of several at one time, the one that was put in first. Undefined when nothing waits. */
    pop(): T | undefined {
      const [top] = nodes
      const last = nodes.pop()
      if (top !== undefined && last !== undefined && top !== last) sink(nodes, last)
      return top?.item
    },
    /** Removes the items for which it returns false. */
    filter(stays: (item: T) => boolean): void {
      // Sorted, a list is a heap.
      nodes = nodes.filter(({ item }) => stays(item)).sort((one, other) => (isBefore(one, other) ? -1 : 1))
    },
  }
}

/** Puts a node in at the bottom, and lets later parents down past it. */
function rise<T>(nodes: Node<T>[], node: Node<T>): void {
  let index = nodes.length
  while (index > 0) {
    const above = (index - 1) >> 1
    const parent = nodes[above] as Node<T>
    if (!isBefore(node, parent)) break
    nodes[index] = parent
    index = above
  }
  nodes[index] = node
}

/** Puts a node in at the top, and lets earlier children up past it. */
function sink<T>(nodes: Node<T>[], node: Node<T>): void {
  let index = 0
  for (;;) {
    const below = earlierChild(nodes, index)
    const child = nodes[below]
    if (child === undefined || !isBefore(child, node)) break
    nodes[index] = child
    index = below
  }
  nodes[index] = node
}

function earlierChild<T>(nodes: readonly Node<T>[], parent: number): number {
  const index = 2 * parent + 1
  const [left, right] = [nodes[index], nodes[index + 1]]
  return left !== undefined && right !== undefined && isBefore(right, left) ? index + 1 : index
}

function isBefore(a: Node<unknown>, b: Node<unknown>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
