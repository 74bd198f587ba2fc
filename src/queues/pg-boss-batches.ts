/** What arrives while a round trip is under way goes out together on the next. */

/** Gathers. */
export interface Batches<Item> {
  /** Settles as the round trip that takes the item. */
  add(item: Item): Promise<void>
}

/** How to send. */
export interface BatchesOptions<Item> {
  /** Sends items together, at least one. */
  send(items: readonly Item[]): Promise<void>
  /** How much an item weighs. */
  weigh(item: Item): number
  /** How much goes out together at most; an item that weighs more goes alone. */
  readonly most: number
  /** Whether the items are at fault: each is sent alone then, so that one of them fails no other. */
  isFaultOfItems(error: unknown): boolean
}

interface Entry<Item> {
  readonly item: Item
  resolve(): void
  reject(error: unknown): void
}

/** Makes it; one round trip at a time. */
export function createBatches<Item>({ send, weigh, most, isFaultOfItems }: BatchesOptions<Item>): Batches<Item> {
  let entries: Entry<Item>[] = []
  let isSending = false

  async function run(): Promise<void> {
    while (entries.length > 0) {
      const batch = take()
      try {
        await send(batch.map(({ item }) => item))
        for (const { resolve } of batch) resolve()
      } catch (error) {
        if (batch.length > 1 && isFaultOfItems(error)) await Promise.all(batch.map(sendAlone))
        else for (const { reject } of batch) reject(error)
      }
    }
    isSending = false
  }

  async function sendAlone({ item, resolve, reject }: Entry<Item>): Promise<void> {
    await send([item]).then(resolve, reject)
  }

  function take(): Entry<Item>[] {
    let weight = 0
    const fits = entries.findIndex(({ item }) => {
      weight += weigh(item)
      return weight > most
    })
    const batch = fits === -1 ? entries : entries.slice(0, Math.max(1, fits))
    entries = entries.slice(batch.length)
    return batch
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        entries.push({ item, resolve, reject })
        if (isSending) return
        isSending = true
        queueMicrotask(run) // After those that come in this turn.
      })
    },
  }
}
