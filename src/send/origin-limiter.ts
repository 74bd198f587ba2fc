/** Limits how many POSTs to one origin are under way at a time; the others wait. */

import { createFifo } from '../kit/fifo.ts'
import { type DispatcherLike, type PendingPost, type PostRequest, type PostTiming, post } from '../kit/post.ts'
import type { Attempt } from './sender-types.ts'
import { toAttempt } from './url-attempt.ts'
import type { Target } from './webhooks.ts'

export type AttemptRequest = Pick<PostRequest, 'headers' | 'body'>

export interface Connection extends DispatcherLike {
  /** Closes the connection. Its promise never rejects. */
  destroy?(): Promise<void>
}

export type OriginLimiter = ReturnType<typeof createOriginLimiter>

/** A place for one attempt at a time. There are as many as were ever needed at once: nothing comes and goes with an attempt. */
interface Slot {
  connection: Connection | undefined
  underWay: PendingPost | undefined
}

export function createOriginLimiter(open: () => Connection, limit: number, timing: PostTiming) {
  const { clock } = timing
  const slots: Slot[] = []
  const idle: Slot[] = [] // The one that was used last on top: its connection is the least likely to have gone.
  const waiting = createFifo<(slot: Slot) => void>()
  const drains: (() => void)[] = []

  function start(
    slot: Slot,
    target: Target,
    { headers, body }: AttemptRequest,
    done: (attempt: Attempt) => void,
  ): void {
    const at = clock.now()
    const startedAt = clock.monotonic()
    const { origin, path } = target
    slot.connection ??= open()
    slot.underWay = post(slot.connection, { origin, path, headers, body }, timing, (outcome) => {
      slot.underWay = undefined
      if (outcome.error !== undefined) close(slot)
      startNext(slot)
      done(toAttempt(target, outcome, new Date(at), Math.round(clock.monotonic() - startedAt)))
    })
  }

  /** A connection that failed may still be about to fail: it would take the next attempt with it. */
  function close(slot: Slot): void {
    const { connection } = slot
    slot.connection = undefined
    queueMicrotask(() => void connection?.destroy?.()) // Not at once: undici may be in the middle of its work.
  }

  function startNext(slot: Slot): void {
    const next = waiting.shift()
    if (next !== undefined) {
      queueMicrotask(() => next(slot)) // For the same reason.
    } else {
      idle.push(slot)
      if (idle.length === slots.length) for (const resolve of drains.splice(0)) resolve()
    }
  }

  function findSlot(): Slot | undefined {
    if (idle.length > 0 || slots.length === limit) return idle.pop()
    const slot: Slot = { connection: undefined, underWay: undefined }
    slots.push(slot)
    return slot
  }

  return {
    /** Makes an attempt. It begins, and its timeout with it, when fewer than the limit are under way. */
    post(target: Target, request: AttemptRequest, done: (attempt: Attempt) => void): void {
      const slot = findSlot()
      if (slot === undefined) waiting.push((free) => start(free, target, request, done))
      else start(slot, target, request, done)
    },
    abort(): void {
      for (const { underWay } of slots) underWay?.stop(CLOSED)
    },
    /** Resolves when no attempt is under way or waiting. */
    async drain(): Promise<void> {
      if (idle.length < slots.length) await new Promise<void>((resolve) => drains.push(resolve))
    },
    async destroy(): Promise<void> {
      await Promise.all(slots.map(({ connection }) => connection?.destroy?.()))
    },
  }
}

const CLOSED = Object.assign(new Error('a sender that was closed'), { code: 'UND_ERR_CLOSED' })
