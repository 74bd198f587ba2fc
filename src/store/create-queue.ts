/** createQueue(): everything that queues share; an engine supplies the store. */

import { isThenable } from '../kit/callbacks.ts'
import { checkOptions, requireFunction, requireInteger, requireText } from '../kit/checks.ts'
import { systemClock, unref } from '../kit/clock.ts'
import { readOnError } from '../kit/report.ts'
import { TIMED_OUT, within } from '../kit/timeout.ts'
import { describeError, HooklineError } from '../protocol/error.ts'
import {
  type CreateQueueOptions,
  QUEUE_CHECKS,
  readDb,
  readFilter,
  readHistory,
  readIds,
  readJobs,
  readLogPage,
  readPage,
  requireStore,
} from './arguments.ts'
import { changeSome, dropMatching, findIds, forget, type Stored } from './drop.ts'
import type { Answer, LogStore, QueueStore } from './queue-store.ts'
import type { ClaimedJob, HistoryOptions, Job, Queue, QueueLog, QueueUse } from './queue-types.ts'
import { occupy, servesOther } from './use.ts'
import { QueueWorker, RELEASE_MS } from './worker.ts'

/**
 * Creates a queue over a store: arguments, concurrency, leases, pauses, waiting while the engine is unreachable, draining and
 * closing with a grace are the same for every engine. `testQueue` of `hookline/testing` tests the result.
 *
 * @throws TypeError that names the option.
 * @example
 * const queue = createQueue(createFileStore('jobs.json'), { name: 'orders' })
 */
export function createQueue<Claim extends ClaimedJob>(store: QueueStore<Claim>, options: CreateQueueOptions): Queue {
  checkOptions('createQueue', options, QUEUE_CHECKS)
  const { name, pollMs, deadLetterRetentionMs, clock = systemClock } = options
  requireText('name', name)
  requireStore(store)
  const report = readOnError(options, clock)
  const worker = new QueueWorker(store, { name, clock, pollMs, onError: reportOnce })
  const calls = new Set<PromiseLike<unknown>>() // Of the user, not answered yet.
  let hasHandler = false
  let reported: unknown
  let closed: Promise<readonly Job[]> | undefined
  let isClosed = false
  let reservedFor: QueueUse | undefined
  let vacate = (): void => {}
  const timers = new Map<unknown, unknown>() // Of what drops old ones, the timer that waits.
  let pushFailure: { readonly message: string; readonly at: number } | undefined

  /** One fault fails all calls that were sent together. */
  function reportOnce(error: unknown): void {
    if (error === reported) return
    reported = error
    report(unavailable(name, error))
  }

  function requireOpen(isOpen = !isClosed): void {
    if (isOpen) return
    throw new HooklineError('shutting_down', `Queue ${name} is closed. Got a call after close(). Create a new queue.`)
  }

  /** Hot path: with a store that answers without a promise, it runs through. */
  function ask<T>(make: () => Answer<T>): Answer<T> {
    requireOpen()
    try {
      const answer = make()
      return isThenable(answer) ? track(answer, (error) => unavailable(name, error)) : answer
    } catch (error) {
      throw unavailable(name, error)
    }
  }

  async function track<T>(answer: PromiseLike<T>, explain: (error: unknown) => unknown): Promise<T> {
    calls.add(answer)
    try {
      return await answer
    } catch (error) {
      throw explain(error)
    } finally {
      calls.delete(answer)
    }
  }

  const stored: Stored = {
    async deadLetters(page = {}) {
      const checked = readPage(page)
      return ask(() => store.deadLetters(checked))
    },
    drop: async (ids) => ask(() => store.drop(ids)),
    async *jobs() {
      try {
        requireOpen()
        for await (const jobs of store.jobs()) {
          yield jobs
          requireOpen()
        }
      } catch (error) {
        throw unavailable(name, error)
      }
    },
    remove: async (ids) => ask(() => store.remove(ids)),
    log: store.log && {
      ...logOf(store.log),
      remove: async (cursors) => ask(() => (store.log as LogStore).remove(cursors)),
    },
  }

  /** Is one call, whose rest gets the grace, too. */
  function change(ids: readonly string[] | undefined, act: Stored['drop']): Promise<number> {
    const changeAll = async () => changeSome(ids ?? (await findIds(stored.deadLetters)), act)
    return track(changeAll(), (error) => error)
  }

  /** Again and again. Once more when the machine's clock was set since the last time: one that is ahead for a while drops nothing. */
  async function dropOld(drop: () => Promise<unknown>, everyMs: number, before = wallAhead()): Promise<void> {
    const ahead = wallAhead()
    if (Math.abs(ahead - before) < CLOCK_SET_MS) {
      await drop().catch((error) => closed === undefined && reportOnce(error))
    }
    if (closed !== undefined) return
    timers.set(drop, unref(clock.setTimeout(() => void dropOld(drop, everyMs, ahead), everyMs)))
  }

  /** Dead letters stay at most an hour longer, and never longer than twice. */
  function dropOldLetters(retentionMs: number): void {
    const drop = () => dropMatching(stored, { olderThan: new Date(clock.now() - retentionMs) })
    void dropOld(drop, Math.min(retentionMs, 60 * 60_000))
  }

  /** Some at a time, so that the calls of others go between. */
  function trimLog({ trim }: LogStore, { maxAgeMs, maxBytes = Number.MAX_SAFE_INTEGER }: HistoryOptions): void {
    async function dropAll(): Promise<void> {
      const before = new Date(clock.now() - maxAgeMs)
      for (let dropped = DROPPED_AT_ONCE; dropped === DROPPED_AT_ONCE && closed === undefined; ) {
        dropped = await ask(() => trim({ before, maxBytes, limit: DROPPED_AT_ONCE }))
      }
    }
    void dropOld(dropAll, Math.min(Math.max(maxAgeMs, 1_000), TRIM_EVERY_MS))
  }

  function logOf({ list }: LogStore): QueueLog {
    return {
      async list(page = {}) {
        const checked = readLogPage(page)
        return ask(() => list(checked))
      },
    }
  }

  function wallAhead(): number {
    return clock.now() - clock.monotonic()
  }

  /** Ends within a second after the grace, also when a durable store answers nothing any more. */
  async function close(graceMs: number): Promise<readonly Job[]> {
    const endsAt = clock.monotonic() + graceMs + RELEASE_MS
    for (const timer of timers.values()) clock.clearTimeout(timer)
    await worker.close(graceMs)
    await within(Promise.allSettled(calls), Math.max(0, endsAt - clock.monotonic()), clock)
    isClosed = true
    vacate()
    try {
      const answer = store.close()
      if (!store.isDurable || !isThenable(answer)) return await answer
      const left = await within(answer, CLOSE_MS, clock)
      return left === TIMED_OUT ? [] : left
    } catch (error) {
      throw unavailable(name, error)
    }
  }

  const queue: Queue = {
    reserve(use) {
      if (use === reservedFor) return
      if (reservedFor !== undefined) throw new TypeError(servesOther(name, reservedFor, use).message)
      store.reserve?.(use)
      if (use === 'destination' && store.place !== undefined) vacate = occupy(store.place, name)
      reservedFor = use
    },
    leaseMs: store.leaseMs,
    isDurable: store.isDurable,
    isTransactional: store.begin !== undefined,
    hasGroups: store.hasGroups === true,
    async push(jobs, options) {
      const checked = readJobs(jobs, name, store.hasGroups)
      const db = readDb(options, name, store.hasTransactions)
      requireOpen(closed === undefined)
      if (db !== undefined) {
        // Nothing is due before the caller's transaction commits, and its errors are the caller's.
        return track(Promise.resolve(store.push(checked, { db })), (error) => error)
      }
      let known: readonly string[] | undefined
      try {
        const answer = ask(() => (checked.length === 0 ? undefined : store.push(checked)))
        if (store.isOrdered === true) worker.wake() // The claim takes effect after it.
        known = isThenable(answer) ? await answer : answer
        pushFailure = undefined
      } catch (error) {
        pushFailure = { message: (error as HooklineError).message, at: clock.monotonic() }
        throw error
      }
      if (store.isOrdered !== true) worker.wake()
      return known
    },
    work(handle, options) {
      if (hasHandler) {
        const advice = 'Create a queue for each destination and each inbox.'
        throw new TypeError(`Queue ${name} can have one handler. Got a second handler. ${advice}`)
      }
      if (closed !== undefined) {
        throw new TypeError(`Queue ${name} is closed. Got a handler for it. Create a new queue.`)
      }
      requireFunction('handle', handle)
      requireInteger('concurrency', options?.concurrency, 1)
      const history = options.history && readHistory('history', options.history, queue)
      hasHandler = true
      if (deadLetterRetentionMs !== undefined) dropOldLetters(deadLetterRetentionMs)
      if (history !== undefined) trimLog(store.log as LogStore, history)
      store.onChange?.(worker.wake)
      worker.start(handle, options)
      return worker.wake
    },
    pause: () => worker.setPaused(true),
    resume: () => worker.setPaused(false),
    async drain() {
      if (reservedFor === 'inbox' && !hasHandler && closed === undefined) {
        const rule = `\`drain\` of queue ${name} needs a receiver that handles its messages`
        throw new TypeError(`${rule}. Got one that was not started. Call receiver.start() first.`)
      }
      await worker.drain(reservedFor !== undefined)
    },
    async counts() {
      const counts = await ask(() => store.counts())
      if (pushFailure === undefined || clock.monotonic() - pushFailure.at >= PUSH_FAILURE_MS) return counts
      return { ...counts, pushError: pushFailure.message }
    },
    deadLetters: stored.deadLetters,
    async redrive(ids) {
      const checked = readIds(ids)
      requireOpen(closed === undefined)
      const count = await change(checked, async (some) => ask(() => store.redrive(some)))
      worker.wake()
      return count
    },
    async drop(which) {
      const filter = readFilter(which)
      if (filter !== undefined) return dropMatching(stored, filter)
      return change(readIds(which as readonly string[]), stored.drop)
    },
    async forget(matches) {
      requireFunction('matches', matches)
      const forgotten = await forget(stored, matches)
      worker.wake() // A drain may have waited for what is gone.
      return forgotten
    },
    async close(options = {}) {
      const graceMs = requireInteger('graceMs', options.graceMs ?? GRACE_MS, 0)
      closed ??= close(graceMs)
      return closed
    },
    ...(store.log !== undefined && { log: logOf(store.log) }),
  }
  return queue
}

const CLOSE_MS = 300
const GRACE_MS = 10_000
const CLOCK_SET_MS = 60_000
const DROPPED_AT_ONCE = 500
const TRIM_EVERY_MS = 60_000

/** A load balancer that sends nothing more to a process that cannot store must try it again some time, in milliseconds. */
const PUSH_FAILURE_MS = 60_000

function unavailable(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const found = describeError(error).replace(/\.$/, '')
  const message = `Queue ${name}: the engine failed. Got ${found}. Check that it runs and can be reached.`
  return new HooklineError('queue_unavailable', message, { cause: error })
}
