/** Limits how many POSTs to one origin are under way at a time; the others wait. */

import { createFifo } from '../collections/fifo.ts'
import { type DispatcherLike, type PendingPost, type PostRequest, type PostTiming, post } from '../http/post.ts'
import type { Attempt } from './api.ts'
import { toAttempt } from './attempt.ts'
import type { Target } from './webhooks.ts'

/** What an attempt sends. */
export type AttemptRequest = Pick<PostRequest, 'headers' | 'body'>

/** Posts to one origin. */
export interface OriginLimiter {
  /** Makes an attempt. It begins, and its timeout with it, when fewer than the limit are under way. Never rejects. */
  post(target: Target, request: AttemptRequest): Promise<Attempt>
  /** Ends every attempt under way with the error `closed`. */
  abort(): void
  /** Resolves when no attempt is under way or waiting. */
  drain(): Promise<void>
}

/** Creates the limiter of an origin. */
export function createOriginLimiter(dispatcher: DispatcherLike, limit: number, timing: PostTiming): OriginLimiter {
  const { clock } = timing
  const pending = new Set<PendingPost>()
  const waiting = createFifo<() => void>()
  const drains: (() => void)[] = []
  let active = 0

  function start(target: Target, { headers, body }: AttemptRequest, resolve: (attempt: Attempt) => void): void {
    const at = clock.now()
    const startedAt = clock.monotonic()
    const { origin, path } = target
    const underWay = post(dispatcher, { origin, path, headers, body }, timing, (outcome) => {
      pending.delete(underWay)
      startNext()
      resolve(toAttempt(target, outcome, new Date(at), Math.round(clock.monotonic() - startedAt)))
    })
    pending.add(underWay)
  }

  function startNext(): void {
    const next = waiting.shift()
    if (next !== undefined) {
      queueMicrotask(next) // Not at once: undici may be in the middle of its work.
    } else {
      active -= 1
      if (active === 0) for (const resolve of drains.splice(0)) resolve()
    }
  }

  return {
    post: (target, request) =>
      new Promise((resolve) => {
        if (active >= limit) return waiting.push(() => start(target, request, resolve))
        active += 1
        start(target, request, resolve)
      }),
    abort() {
      for (const underWay of pending) underWay.stop(CLOSED)
    },
    async drain() {
      if (active > 0) await new Promise<void>((resolve) => drains.push(resolve))
    },
  }
}

const CLOSED = Object.assign(new Error('a sender that was closed'), { code: 'UND_ERR_CLOSED' })
