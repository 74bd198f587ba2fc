/** Batching: joins many small writes into few. What arrives while others are sent goes out together afterwards. */

export interface BatcherOptions<Item> {
  send(items: readonly Item[]): Promise<void>
  weigh(item: Item): number
  readonly maxWeight: number
  readonly concurrency: number
  /** Whether an item caused the error. Each item of the batch is then sent alone, so that only the faulty one fails. */
  isFaultOfItems(error: unknown): boolean
}

interface Entry<Item> {
  readonly item: Item
  resolve(): void
  reject(error: unknown): void
}

/** Creates an idle batcher. The first batch starts after the code that is running, so that it holds what that code adds. */
export function createBatcher<Item>({ send, weigh, maxWeight, concurrency, isFaultOfItems }: BatcherOptions<Item>) {
  const waiting: Entry<Item>[] = []
  let sending = 0
  let isPlanned = false

  function plan(): void {
    if (isPlanned || sending >= concurrency || waiting.length === 0) return
    isPlanned = true
    queueMicrotask(start)
  }

  function start(): void {
    isPlanned = false
    let weight = 0
    const end = waiting.findIndex(({ item }) => {
      weight += weigh(item)
      return weight > maxWeight
    })
    void sendBatch(waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end)))
    plan()
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
    plan()
  }

  return {
    add(item: Item): Promise<void> {
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        plan()
      })
    },
  }
}
