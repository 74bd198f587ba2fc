/** Works on the inbox: one attempt each time the queue hands a message out, until it is handled or dead. */

import { createDeadlines } from '../protocol/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import { parse } from '../protocol/parse.ts'
import { report } from '../protocol/report.ts'
import type { HandleJob, Outcome } from '../queues/queue.ts'
import { announceFailed, announceHandled, startOf } from './announce.ts'
import { OpenDelivery } from './delivery.ts'
import { readEnvelope } from './envelope.ts'
import { isUnusable, toError } from './faults.ts'
import type { Handlers } from './handlers.ts'
import { type DeadReason, type History, keepError, readHistory, writeHistory } from './history.ts'
import type { InboxSettings } from './inbox-options.ts'
import type { ReceiverSettings } from './options.ts'

/** As often may processes die while they handle a message. */
const MOST_CRASHES = 5

/** What handles the jobs of an inbox. */
export function createWorker(
  { nextDelay, timeoutMs }: InboxSettings,
  { shape, clock, onError }: ReceiverSettings,
  handlers: Handlers,
): HandleJob {
  const deadlines = createDeadlines(timeoutMs, clock)
  const running = new WeakMap<AbortSignal, Set<() => void>>()

  return async (job, signal) => {
    const before = readHistory(job)
    if (signal.aborted) return giveBack(before)
    let delivery: OpenDelivery
    try {
      delivery = readEnvelope(job.body)
    } catch (error) {
      delivery = new OpenDelivery({}, job.firstAt)
      delivery.setBody({ bytes: job.body, source: 'argument' })
      return bury(delivery, before, error as HooklineError, 'unreadable')
    }
    const crashes = job.deliveries - 1 - before.attempts - before.releases
    if (crashes < MOST_CRASHES) return attempt(delivery, before, signal)
    const error = new HooklineError('internal', `The process died ${crashes} times while it handled this message.`)
    return bury(delivery, before, error, 'crashed')
  }

  /** Whatever comes first: the end of the handlers, of their time, or of the process. */
  function attempt(delivery: OpenDelivery, before: History, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve) => {
      const stops = stopsOf(signal)
      let isGivenBack = false
      const end = (outcome: Outcome): void => {
        deadlines.clear(deadline)
        stops.delete(stop)
        resolve(outcome)
      }
      const stop = (): void => {
        isGivenBack = true
        delivery.expire(new HooklineError('shutting_down', 'The process is shutting down.'))
        end(giveBack(before))
      }
      const deadline = deadlines.set(() => end(retry(delivery, before, delivery.expire())))
      stops.add(stop)

      run(delivery).then(
        () => {
          if (delivery.isExpired) return
          announceHandled(delivery, before.attempts + 1, clock)
          end({ done: true })
        },
        (thrown: unknown) => {
          const error = toError(thrown)
          if (isGivenBack) return // As it should: its signal fired.
          if (delivery.isExpired) tell(error, delivery)
          else end(isUnusable(error) ? bury(delivery, before, error, error.code) : retry(delivery, before, error))
        },
      )
    })
  }

  async function run(delivery: OpenDelivery): Promise<void> {
    delivery.enter('handlers')
    const wire = parse(delivery.bytes)
    const message = await shape(wire)
    if (delivery.isExpired) return
    delivery.handOver(message, startOf('handled', clock))
    await handlers.dispatch(message, wire, delivery)
  }

  function retry(delivery: OpenDelivery, before: History, error: HooklineError): Outcome {
    const attempts = before.attempts + 1
    const delay = nextDelay(attempts, error)
    if (delay === undefined) return bury(delivery, before, error, error.code)
    tell(error, delivery)
    const retryAt = clock.now() + delay
    announceFailed(delivery, attempts, clock, { error, next: { retryAt } })
    return { retryAt, state: writeHistory({ ...before, attempts, error: keepError(error) }) }
  }

  function bury(delivery: OpenDelivery, before: History, error: HooklineError, dead: DeadReason): Outcome {
    const attempts = before.attempts + (dead === error.code ? 1 : 0)
    tell(error, delivery)
    announceFailed(delivery, attempts, clock, { error, next: 'dead' })
    return { dead, state: writeHistory({ ...before, attempts, error: keepError(error) }) }
  }

  /** Untouched, at once: this was neither an attempt that failed nor a crash. */
  function giveBack(before: History): Outcome {
    return { retryAt: clock.now(), state: writeHistory({ ...before, releases: before.releases + 1 }) }
  }

  function tell(error: HooklineError, { headers }: OpenDelivery): void {
    report(onError, error, { headers, remoteAddress: undefined })
  }

  /** What to call when a signal aborts: it is one and the same for many jobs, so it is listened to once. */
  function stopsOf(signal: AbortSignal): Set<() => void> {
    const known = running.get(signal)
    if (known !== undefined) return known
    const stops = new Set<() => void>()
    running.set(signal, stops)
    signal.addEventListener('abort', () => [...stops].forEach((stop) => void stop()), { once: true })
    return stops
  }
}
