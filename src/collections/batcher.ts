/** Batching: joins many small writes into few. What arrives while others are sent goes out together afterwards. */

export interface Batcher<Item> {
  add(item: Item): Promise<void>
}

export interface BatcherOptions<Item> {
  send(items: readonly Item[]): Promise<void>
  weigh(item: Item): number
  /** The most that one batch weighs. A heavier item goes alone. */
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
export function createBatcher<Item>(options: BatcherOptions<Item>): Batcher<Item> {
  const { send, weigh, maxWeight, concurrency, isFaultOfItems } = options
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
    void sendBatch(take())
    plan()
  }

  function take(): readonly Entry<Item>[] {
    let weight = 0
    const end = waiting.findIndex(({ item }) => {
      weight += weigh(item)
      return weight > maxWeight
    })
    return waiting.splice(0, end === -1 ? waiting.length : Math.max(1, end))
  }

  async function sendBatch(batch: readonly Entry<Item>[]): Promise<void> {
    sending += 1
    try {
      await send(batch.map(({ item }) => item))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      if (batch.length > 1 && isFaultOfItems(error)) await Promise.all(batch.map(sendAlone))
      else for (const { reject } of batch) reject(error)
    }
    sending -= 1
    plan()
  }

  async function sendAlone({ item, resolve, reject }: Entry<Item>): Promise<void> {
    await send([item]).then(resolve, reject)
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        plan()
      })
    },
  }
}
