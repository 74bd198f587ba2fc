/** One batch on its way: sent, and sent again, until it is delivered or given up. */

import type { PendingPost, PostOutcome } from '../protocol/post.ts'
import { isTransient } from '../protocol/transient.ts'
import { DeliveryError } from './delivery-error.ts'
import { log } from './log.ts'
import { describe, postBatch, type Route } from './post.ts'
import { backoff } from './retry.ts'
import type { Timers } from './timers.ts'

/** How batches are delivered. */
export interface Carrier {
  readonly route: Route
  readonly timers: Timers
  readonly maxRetries: number
  readonly random: () => number
}

/** How it ended: with an answer that took the batch, or with why it was given up. */
export type Ending = { readonly body: string; readonly attempts: number } | DeliveryError

/** A batch on its way. */
export interface Delivery {
  /** Ends it. Its ending is not told any more. */
  stop(): void
}

/**
 * Sends the bytes, the same at each attempt.
 *
 * @param name Names the batch in the debug log.
 * @param done Called once, never before this returns.
 */
export function deliver(carrier: Carrier, name: string, body: Buffer, done: (ending: Ending) => void): Delivery {
  const { route, timers, maxRetries, random } = carrier
  let attempts = 0
  let stopped = false
  let underWay: PendingPost | undefined
  let timer: object | undefined

  function send(): void {
    timer = undefined
    attempts++
    underWay = postBatch(route, body, attempts, settle)
  }

  function settle(outcome: PostOutcome): void {
    if (stopped) return
    const { status } = outcome
    if (log.enabled) log('%s: attempt %d: %s', name, attempts, describe(outcome))
    if (status !== undefined && status >= 200 && status < 300) done({ body: outcome.body.toString(), attempts })
    else if (status !== undefined && !isTransient(status)) giveUp('batch_refused', outcome)
    else if (attempts > maxRetries) giveUp('out_of_retries', outcome)
    else retry(outcome.retryAfterMs)
  }

  function retry(askedMs: number | undefined): void {
    const ms = backoff(attempts, askedMs, random)
    if (log.enabled) log('%s: retried in %d ms', name, ms)
    timer = timers.set(send, ms)
  }

  function giveUp(reason: 'batch_refused' | 'out_of_retries', outcome: PostOutcome): void {
    const { status } = outcome
    const message = `${describe(outcome)} after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}.`
    if (log.enabled) log('%s: given up, %s', name, reason)
    done(new DeliveryError(reason, message, { attempts, ...(status !== undefined && { status }) }))
  }

  send()
  return {
    stop() {
      stopped = true
      underWay?.stop(STOPPED)
      if (timer !== undefined) timers.clear(timer)
    },
  }
}

const STOPPED = new Error('The client was closed.')
