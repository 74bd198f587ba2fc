/** Uses a queue of each place in turn, for an inbox or for a destination: pushes a job, and works until none is left. */

import { randomUUID } from 'node:crypto'
import type { QueueUse } from '../../../src/store/queue-types.ts'
import { openQueue, type Place } from '../place.ts'
import { answerQuestions, readSettings, sayReady } from './answers.ts'

export interface UserSettings {
  readonly places: readonly Place[]
  readonly use: QueueUse
}

const { places, use } = readSettings<UserSettings>()
const left = [...places]

answerQuestions({
  /** The bodies that it got, or why it got none. */
  async next() {
    const queue = await openQueue(left.shift() as Place)
    const got: string[] = []
    try {
      queue.reserve?.(use)
      await queue.push([{ id: randomUUID(), body: Buffer.from(use) }])
      const handle = async ({ body }: { readonly body: Uint8Array }) => {
        got.push(`${Buffer.from(body)}`)
        return { complete: true } as const
      }
      queue.work(handle, { concurrency: 1 })
      await queue.drain()
      return got
    } catch (error) {
      return (error as Error).message
    } finally {
      await queue.close({ graceMs: 0 })
    }
  },
  close: () => process.disconnect(),
})
sayReady()
