/** Reads the options of a collector: checks them once and completes them. */

import type { HooklineError } from '../message/error.ts'
import { invalidOption, isToken, requireClock, requireOptions, requireWhole, show } from '../options/checks.ts'
import type { Logger } from '../options/log.ts'
import { createReport, type Report } from '../options/report.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { CollectorChanges, Source } from './api.ts'
import { type CollectorObservers, type CollectorRequest, createCollectorObservers } from './observer.ts'
import { createSources, type Sources } from './sources.ts'

/** Options of `createCollector`. */
export interface CollectorOptions {
  /** The sources of calls, and their destinations. */
  readonly sources: readonly Source[]
  /**
   * The header in which your proxy writes the address of the client, such as `x-forwarded-for`. Of several addresses the
   * last counts, which that proxy has added. Default: none, because a client that reaches the collector without the proxy
   * can write any address.
   */
  readonly ipHeader?: string
  /** How long a body may take to arrive, in milliseconds. Default 30 000. */
  readonly deadlineMs?: number
  /**
   * Is called with every error that fails a whole request. Calls refused in a batch are listed in the answer only. Not
   * awaited. Default: prints a line for each, see `logger`.
   */
  readonly onError?: (error: HooklineError, request: CollectorRequest) => unknown
  /**
   * Receives the lines about errors: pino, or any object of its shape. Default: the console, at most a few lines of each code a
   * minute; with `onError` nothing, unless `console` is passed here.
   */
  readonly logger?: Logger
  /** The source of time. Default: the system's clock. */
  readonly clock?: Clock
}

export interface CollectorSettings {
  readonly sources: Sources
  readonly ipHeader: string | undefined
  readonly deadlineMs: number
  readonly report: Report<CollectorRequest>
  readonly observers: CollectorObservers
  readonly clock: Clock
}

const OPTIONS = [
  'sources',
  'ipHeader',
  'deadlineMs',
  'onError',
  'logger',
  'clock',
] as const satisfies (keyof CollectorOptions)[]

export function readOptions(options: CollectorOptions): CollectorSettings {
  requireOptions('createCollector', options, OPTIONS)
  const { ipHeader, deadlineMs = 30_000, clock = systemClock } = options
  if (ipHeader !== undefined && !isToken(ipHeader)) {
    const advice = "Pass a name, for example 'x-forwarded-for'."
    throw invalidOption('ipHeader', 'must be the name of a header', show(ipHeader), advice)
  }
  requireWhole('deadlineMs', deadlineMs, 1)
  requireClock(clock)
  const { report } = createReport(options, clock)
  return {
    sources: createSources(options.sources),
    ipHeader: ipHeader?.toLowerCase(),
    deadlineMs,
    report,
    observers: createCollectorObservers(clock),
    clock,
  }
}

export function readChanges(changes: CollectorChanges): Sources {
  const fixed = OPTIONS.find((name) => name !== 'sources' && Object.hasOwn(Object(changes), name))
  if (fixed !== undefined) {
    const advice = 'Create another collector.'
    throw invalidOption(fixed, 'cannot change while the collector runs', 'a new value', advice)
  }
  requireOptions('update', changes, ['sources'])
  return createSources(changes.sources)
}
