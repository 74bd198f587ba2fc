/** Reports calls that were not delivered: to `onError`, or else as warnings on the console. */

import type { Clock } from '../time/clock.ts'
import type { RecordedCall } from './api.ts'
import { type BatchError, type BatchFailure, count } from './batch-result.ts'
import { readCall } from './call.ts'

/** Reports calls that were not delivered. Never throws. */
export type Report = (failure: BatchFailure) => void

/** The reports of a client. */
export interface Reports {
  readonly report: Report
  /** Resolves when the promises that `onError` returned so far are settled. Never rejects. */
  finish(): Promise<void>
}

type OnError = (error: BatchError, calls: readonly RecordedCall[]) => unknown

/** Creates reports to `onError`, whose errors are printed, or to the console when it is undefined. */
export function createReports(onError: OnError | undefined, clock: Clock): Reports {
  return onError === undefined ? reportToConsole(clock) : reportTo(onError)
}

function reportTo(onError: OnError): Reports {
  const running = new Set<Promise<void>>()

  async function run({ error, calls }: BatchFailure): Promise<void> {
    try {
      await onError(error, calls.map(readCall))
    } catch (thrown) {
      console.error('hookline: onError of the client failed:', thrown)
    }
  }

  return {
    report(failure) {
      const promise = run(failure).finally(() => running.delete(promise))
      running.add(promise)
    },
    async finish() {
      await Promise.all(running)
    },
  }
}

/** Least time between two warnings of dropped calls, in milliseconds: a full client drops every call. */
const WARNING_INTERVAL_MS = 1_000

/** Warnings show the number of calls and the error, and nothing of the calls. */
function reportToConsole(clock: Clock): Reports {
  let dropped = 0
  let lastDrop = ''
  let lastWarning = Number.NEGATIVE_INFINITY

  function warnOfDropped(): void {
    if (dropped === 0) return
    warn(dropped, lastDrop)
    dropped = 0
    lastWarning = clock.monotonic()
  }

  return {
    report({ error: { reason, message }, calls }) {
      if (reason !== 'queue_full') {
        warn(calls.length, message)
        return
      }
      dropped += calls.length
      lastDrop = message
      if (clock.monotonic() - lastWarning >= WARNING_INTERVAL_MS) warnOfDropped()
    },
    async finish() {
      warnOfDropped()
    },
  }
}

function warn(calls: number, message: string): void {
  console.warn(`hookline: ${count(calls, 'call')} not delivered: ${message}`)
}
