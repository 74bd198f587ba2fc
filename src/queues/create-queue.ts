/** createQueue(): everything that queues share; an engine supplies the store. */

import { HooklineError } from '../message/error.ts'
import { notify, printServerErrors } from '../options/callbacks.ts'
import {
  invalidOption,
  requireClock,
  requireFunction,
  requireOptions,
  requireText,
  requireWhole,
} from '../options/checks.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { readGrace, readIds, readJobs, readPage } from './arguments.ts'
import type { ClaimedJob, Job, Queue } from './queue.ts'
import type { Answer, QueueStore } from './store.ts'
import { createWorker } from './worker.ts'

/** What `createQueue` takes beside the store. */
export interface CreateQueueOptions {
  /** Names the queue in its errors. */
  readonly name: string
  /** How often to look for jobs that other processes pushed, in milliseconds. Default: never. */
  readonly pollMs?: number | undefined
  /**
   * Receives the errors of work in the background: a claim, an outcome or a lease that the store could not take. The queue
   * tries again by itself. Default: prints each, the same one at most once a minute.
   */
  readonly onError?: ((error: HooklineError) => unknown) | undefined
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock | undefined
}

const OPTIONS = ['name', 'pollMs', 'onError', 'clock'] as const satisfies (keyof CreateQueueOptions)[]

/**
 * Creates a queue over a store: arguments, concurrency, leases, pauses, waiting while the engine is unreachable, draining and
 * closing with a grace are the same for every engine. `testQueue` of `hookline/testing` tests the result.
 *
 * @throws TypeError that names the option.
 * @example
 * const queue = createQueue(createFileStore('jobs.json'), { name: 'orders' })
 */
export function createQueue<Claim extends ClaimedJob>(store: QueueStore<Claim>, options: CreateQueueOptions): Queue {
  requireOptions('createQueue', options, OPTIONS)
  const { name, pollMs, clock = systemClock } = options
  requireText('name', name)
  if (pollMs !== undefined) requireWhole('pollMs', pollMs, 1)
  requireClock(clock)
  requireStore(store)
  const { onError = printOnceAMinute(clock) } = options
  requireFunction('onError', onError)
  const worker = createWorker(store, { name, clock, pollMs, onError: reportOnce })
  let hasHandler = false
  let reported: unknown
  let closed: Promise<readonly Job[]> | undefined
  let isClosed = false

  /** One fault fails all calls that were sent together. */
  function reportOnce(error: unknown): void {
    if (error === reported) return
    reported = error
    notify(() => onError(unavailable(name, error)), 'onError', 'HOOKLINE_ON_ERROR')
  }

  async function call<T>(make: () => Answer<T>): Promise<T> {
    if (isClosed) throw shuttingDown(name)
    try {
      return await make()
    } catch (error) {
      throw unavailable(name, error)
    }
  }

  /** Of a call that adds due jobs; refused as soon as closing begins. */
  async function callAndWake<T>(make: () => Answer<T>): Promise<T> {
    if (closed !== undefined) throw shuttingDown(name)
    const answer = await call(make)
    worker.wake()
    return answer
  }

  async function close(graceMs: number): Promise<readonly Job[]> {
    await worker.close(graceMs)
    isClosed = true
    try {
      return await store.close()
    } catch (error) {
      throw unavailable(name, error)
    }
  }

  return {
    leaseMs: store.leaseMs,
    async push(jobs) {
      const checked = readJobs(jobs)
      return callAndWake(() => (checked.length === 0 ? undefined : store.push(checked)))
    },
    work(handle, options) {
      if (hasHandler) {
        throw new TypeError(
          `Queue ${name} can have one handler. Got a second handler. Create a queue for each destination and each inbox.`,
        )
      }
      if (closed !== undefined) {
        throw new TypeError(`Queue ${name} is closed. Got a handler for it. Create a new queue.`)
      }
      requireFunction('handle', handle)
      const concurrency = requireWhole('concurrency', options?.concurrency, 1)
      hasHandler = true
      worker.start(handle, concurrency)
    },
    pause: () => worker.setPaused(true),
    resume: () => worker.setPaused(false),
    drain: worker.drain,
    counts: () => call(() => store.counts()),
    async deadLetters(page = {}) {
      const checked = readPage(page)
      return call(() => store.deadLetters(checked))
    },
    async redrive(ids) {
      const checked = readIds(ids)
      return callAndWake(() => store.redrive(checked))
    },
    async drop(ids) {
      const checked = readIds(ids)
      return call(() => store.drop(checked))
    },
    async close(options) {
      const graceMs = readGrace(options)
      closed ??= close(graceMs)
      return closed
    },
  }
}

function requireStore(store: QueueStore): void {
  if (typeof store !== 'object' || store === null) {
    throw invalidOption('store', 'must be a QueueStore', String(store), 'Pass an object with its methods.')
  }
  for (const method of ['push', 'claim', 'finish', 'release', 'nextDueAt', 'counts', 'close'] as const) {
    requireFunction(`store.${method}`, store[method])
  }
  for (const method of ['deadLetters', 'redrive', 'drop'] as const) requireFunction(`store.${method}`, store[method])
  if (store.leaseMs === undefined) return
  requireWhole('store.leaseMs', store.leaseMs, 3)
  requireFunction('store.renew', store.renew)
}

function shuttingDown(name: string): HooklineError {
  return new HooklineError('shutting_down', `Queue ${name} is closed. Got a call after close(). Create a new queue.`)
}

/** What the store threw, as one of ours. */
function unavailable(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const found = error instanceof Error ? error.message : `a thrown ${typeof error}`
  const message = `Queue ${name}: the engine failed. Got ${found.replace(/\.$/, '')}. Check that it runs and can be reached.`
  return new HooklineError('queue_unavailable', message, { cause: error })
}

/** Prints an error once, and the same one again after a minute. The default of `onError`. */
export function printOnceAMinute(clock: Clock): (error: HooklineError) => void {
  const printedAt = new Map<string, number>()
  return (error) => {
    const now = clock.monotonic()
    for (const [message, at] of printedAt) if (now - at >= 60_000) printedAt.delete(message)
    if (printedAt.has(error.message)) return
    printedAt.set(error.message, now)
    printServerErrors(error)
  }
}
