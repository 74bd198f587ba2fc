/** Reports undelivered calls to `onError` and the log, and provides the debug log for all other events. */

import debug from 'debug'
import { notify } from '../kit/callbacks.ts'
import { createWarning } from '../kit/warning.ts'
import { type BatchFailure, showCount } from './batch-result.ts'
import type { ClientSettings } from './client-options.ts'
import { readCall } from './recorded-call.ts'

/**
 * The debug log ("Go client library", What the service does 6). It is on while the environment variable DEBUG names `analytics`. Check
 * `enabled` first, because computing arguments costs time even while the log is off. Never pass the write key or contents of a call.
 */
export const log: debug.Debugger = debug('analytics')

export type Report = (failure: BatchFailure) => void

export interface Reports {
  readonly report: Report
  /** Resolves when the promises that `onError` has returned so far are settled. Never rejects. */
  finish(): Promise<void>
}

/** Creates the functions that report. A log line shows the number of calls and the error, but no part of a call. */
export function createReports({ onError, log: lines }: Pick<ClientSettings, 'onError' | 'log'>): Reports {
  const running = new Set<Promise<unknown>>()
  const warn = createWarning('onError', 'HOOKLINE_ON_ERROR')

  return {
    report({ error, calls }) {
      const { reason: code, message, status } = error
      const text = `${showCount(calls.length, 'call')} not delivered: ${message}`
      lines.write({ level: 'warn', code, text, fields: { calls: calls.length, status }, count: calls.length })
      if (onError === undefined) return
      const returned = notify(() => onError(error, calls.map(readCall)), warn)
      if (returned === undefined) return
      const promise = Promise.resolve(returned).finally(() => running.delete(promise))
      running.add(promise)
    },
    async finish() {
      await Promise.all(running)
    },
  }
}
