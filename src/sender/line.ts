/** The way to one origin: so many POSTs at a time, the others wait for their turn. */

import type { Pool } from 'undici'
import type { DispatcherLike, PendingPost, PostRequest, PostTiming } from '../protocol/post.ts'
import { createFifo } from '../queues/fifo.ts'
import type { Attempt } from './api.ts'
import { attempt } from './attempt.ts'
import type { Target } from './webhooks.ts'

/** The way to one origin. */
export interface Line {
  /** Posts, as soon as it is its turn; the time of an attempt begins then. */
  post(target: Target, request: Pick<PostRequest, 'headers' | 'body'>): Promise<Attempt>
  /** Ends every POST that is under way: their attempts read `closed`. */
  abort(): void
  /** Waits until nothing is under way, and lets go of the connections. */
  close(): Promise<void>
}

/** Opens one, over a pool of its own or a dispatcher of somebody else. */
export function createLine(
  pool: Pool | undefined,
  dispatcher: DispatcherLike,
  most: number,
  { clock, deadlines }: PostTiming,
): Line {
  const underWay = new Set<PendingPost>()
  const waiting = createFifo<() => void>()
  let resume: (() => void) | undefined
  const transport = {
    dispatcher,
    clock,
    deadlines,
    begin: (post: PendingPost) => void underWay.add(post),
    end(post: PendingPost) {
      underWay.delete(post)
      const next = waiting.shift()
      if (next !== undefined) queueMicrotask(next)
      else if (underWay.size === 0) resume?.()
    },
  }

  return {
    post(target, request) {
      if (underWay.size < most) return attempt(transport, target, request)
      return new Promise((resolve) => waiting.push(() => resolve(attempt(transport, target, request))))
    },
    abort() {
      for (const post of underWay) post.stop(CLOSED)
    },
    async close() {
      if (underWay.size > 0) {
        await new Promise<void>((resolve) => {
          resume = resolve
        })
      }
      await pool?.destroy()
    },
  }
}

const CLOSED = Object.assign(new Error('The sender was closed.'), { code: 'UND_ERR_CLOSED' })
