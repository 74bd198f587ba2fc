/** Puts a platform together: a collector that listens, a destination whose queue is watched, and a clock that waits for both. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { createCollector } from '../../collector/collector.ts'
import { createDestination } from '../../destination/destination.ts'
import { invalidOption, kindOf, requireOptions, requireWhole } from '../../options/checks.ts'
import { memoryQueue } from '../../queues/memory/index.ts'
import type { HandleJob, Queue } from '../../queues/queue.ts'
import { within } from '../../time/timeout.ts'
import { createManualClock } from '../manual-clock.ts'
import { createActivity } from './activity.ts'
import type { Platform, PlatformMessage, PlatformOptions } from './api.ts'
import { describeFailure } from './describe.ts'
import { createLedger } from './ledger.ts'
import { machineClock } from './machine-clock.ts'
import { findDifference } from './match.ts'
import { readOptions } from './options.ts'
import { startServer } from './server.ts'

/** Starts a platform. */
export async function createPlatform(options: PlatformOptions): Promise<Platform> {
  const { writeKey, port, timeoutMs, ...settings } = readOptions(options)
  const activity = createActivity()
  const ledger = createLedger()
  const clock = createManualClock(Date.now(), () => activity.calm(timeoutMs))
  const { onAttempt } = settings.destination
  const destination = createDestination({
    ...settings.destination,
    clock,
    queue: watch(memoryQueue({ name: 'platform', clock })),
    onAttempt(report) {
      ledger.reported(report)
      return onAttempt?.(report)
    },
  })
  const collector = createCollector({
    onError: () => {}, // The ledger has it.
    ...settings.collector,
    clock,
    sources: [
      {
        name: 'test',
        writeKey,
        destinations: [
          {
            submit,
            get enabled() {
              return destination.enabled
            },
          },
        ],
      },
    ],
  })
  const server = await startServer(collector, port, activity, ledger.refuse).catch(async (error) => {
    await destination.close({ graceMs: 0 })
    throw error
  })
  const endpoint = `${server.origin}/v1/batch`

  /** Notes what is pushed, and the rounds. */
  function watch(queue: Queue): Queue {
    return {
      ...queue,
      async push(jobs, options) {
        ledger.queued(jobs)
        return queue.push(jobs, options)
      },
      work(handle, how) {
        const tracked: HandleJob = (job, signal) => activity.track(handle(job, signal))
        return queue.work(tracked, how)
      },
    }
  }

  async function submit(...args: Parameters<typeof destination.submit>): ReturnType<typeof destination.submit> {
    const results = await destination.submit(...args)
    for (const [index, { message }] of args[0].entries()) {
      const result = results[index]
      if (result?.queued === false) ledger.skipped(message, result.reason)
    }
    return results
  }

  /** The first message that was delivered; or undefined, when nothing more comes before the clock moves or the time is over. */
  async function findDelivered(pattern: object, ms: number): Promise<PlatformMessage | undefined> {
    const end = machineClock.monotonic() + ms
    let calm: Promise<boolean> | undefined
    let isCalm = false
    for (;;) {
      const { changed, messages } = ledger
      const matching = messages.filter(({ message }) => findDifference(message, pattern) === undefined)
      const found = matching.find(({ status }) => status === 'delivered')
      const leftMs = end - machineClock.monotonic()
      if (found !== undefined || leftMs <= 0 || (isCalm && matching.length > 0)) return found
      const change = changed.then(nextTurn).then(() => false) // With all others of this turn.
      if (!isCalm) calm ??= activity.calm(ms).then(() => true)
      isCalm =
        (await within(isCalm ? change : Promise.race([change, calm as Promise<boolean>]), leftMs, machineClock)) ===
        true
      if (isCalm) calm = undefined
    }
  }

  const delivered: Platform['delivered'] = async (pattern = {}, options = {}) => {
    const failure = new Error('not delivered')
    Error.captureStackTrace(failure, delivered) // Its first line is the one of the test.
    if (typeof pattern !== 'object' || pattern === null) {
      throw invalidOption(
        'pattern',
        'must be an object',
        kindOf(pattern),
        "Pass fields, for example { type: 'track' }.",
      )
    }
    requireOptions('delivered', options, ['timeoutMs'])
    const ms = requireWhole('timeoutMs', options.timeoutMs ?? timeoutMs, 1)
    const found = await findDelivered(pattern, ms)
    if (found !== undefined) return found as never // Its type is the one of the pattern.
    const { messages, refused } = ledger
    const state = { now: clock.now(), isBusy: activity.isBusy, isEnabled: destination.enabled }
    const { message, stack = '' } = failure
    failure.message = describeFailure({ pattern, messages, refused, endpoint, ...state })
    failure.stack = stack.replace(message, () => failure.message)
    throw failure
  }

  const close = async (): Promise<void> => {
    await server.close()
    await destination.close({ graceMs: 0 })
  }

  return {
    endpoint,
    host: server.origin,
    writeKey,
    clock,
    collector,
    destination,
    get messages() {
      return ledger.messages
    },
    get refused() {
      return ledger.refused
    },
    delivered,
    async advance(ms) {
      requireWhole('ms', ms, 0)
      await clock.advance(ms)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
