/** Joins many small writes into a few. Items that arrive while others are being sent are sent together afterwards. */

export interface BatcherOptions<Item> {
  send(items: readonly Item[]): Promise<void>
  weigh(item: Item): number
  readonly maxWeight: number
  readonly concurrency: number
  /** Returns whether an item caused the error. If so, each item of the batch is sent alone, so that only the item at fault fails. */
  isFaultOfItems(error: unknown): boolean
}

interface Entry<Item> {
  readonly item: Item
  resolve(): void
  reject(error: unknown): void
}

/** Creates a batcher. A batch starts in a microtask, so it contains all items that the running code adds synchronously. */
export function createBatcher<Item>({ send, weigh, maxWeight, concurrency, isFaultOfItems }: BatcherOptions<Item>) {
  const waiting: Entry<Item>[] = []
  let sending = 0
  let isPlanned = false

  function planBatch(): void {
    if (isPlanned || sending >= concurrency || waiting.length === 0) return
    isPlanned = true
    queueMicrotask(startBatch)
  }

  /** Sends the first waiting items: as many as `maxWeight` allows, but at least one. */
  function startBatch(): void {
    isPlanned = false
    let weight = 0
    const end = waiting.findIndex(({ item }) => {
      weight += weigh(item)
      return weight > maxWeight
    })
    void sendBatch(waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end)))
    planBatch()
  }

  async function sendBatch(batch: readonly Entry<Item>[]): Promise<void> {
    sending += 1
    try {
      await send(batch.map(({ item }) => item))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      if (batch.length > 1 && isFaultOfItems(error)) {
        await Promise.all(batch.map(({ item, resolve, reject }) => send([item]).then(resolve, reject)))
      } else for (const { reject } of batch) reject(error)
    }
    sending -= 1
    planBatch()
  }

  return {
    /** Resolves when the item has been sent. */
    add(item: Item): Promise<void> {
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        planBatch()
      })
    },
  }
}
