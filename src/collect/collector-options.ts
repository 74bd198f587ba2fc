/** Reads the options of a collector: checks them once and completes them. */

import {
  aClock,
  anything,
  checkOptions,
  invalidOption,
  isToken,
  type OptionChecks,
  requireFunction,
  requireOptions,
  show,
  whole,
} from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import type { Logger } from '../kit/log.ts'
import { Observers } from '../kit/observers.ts'
import { createReport } from '../kit/report.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { CollectorObserver, CollectorRequest } from './collector-events.ts'
import type { CollectorChanges, Source } from './collector-types.ts'
import { createSources, type Sources } from './sources.ts'

/** Options of `createCollector`. */
export interface CollectorOptions {
  /** The sources of calls, and their destinations. */
  readonly sources: readonly Source[]
  /**
   * The header in which your proxy writes the address of the client, such as `x-forwarded-for`. If the header lists several addresses, the
   * last one, which your proxy has added, counts. Default: none, because a client that reaches the collector without the proxy can write
   * any address.
   */
  readonly ipHeader?: string
  /** How long a body may take to arrive, in milliseconds. Default 30 000. */
  readonly deadlineMs?: number
  /**
   * Receives every error that makes a whole request fail. The calls of a batch that are refused one by one are listed only in the answer.
   * The result of the function is not awaited. Default: prints a line for each error (see `logger`).
   */
  readonly onError?: (error: HooklineError, request: CollectorRequest) => unknown
  /**
   * The logger for lines about errors: pino, or any object with the same methods. Default: the console, with at most six lines a minute for
   * each code; with `onError`, nothing is printed unless `console` is passed here.
   */
  readonly logger?: Logger
  /** The source of time. Default: the system clock. */
  readonly clock?: Clock
}

export interface CollectorSettings {
  readonly sources: Sources
  readonly ipHeader: string | undefined
  readonly deadlineMs: number
  readonly observers: Observers<CollectorObserver>
  readonly clock: Clock
}

const CHECKS: OptionChecks<CollectorOptions> = {
  sources: anything,
  ipHeader: requireHeaderName,
  deadlineMs: whole(1),
  onError: requireFunction,
  logger: anything,
  clock: aClock,
}

function requireHeaderName(name: string, value: unknown): void {
  if (isToken(value)) return
  throw invalidOption(name, 'must be the name of a header', show(value), "Pass a name, for example 'x-forwarded-for'.")
}

export function readOptions(options: CollectorOptions): CollectorSettings {
  checkOptions('createCollector', options, CHECKS)
  const { ipHeader, deadlineMs = 30_000, clock = systemClock } = options
  const { report } = createReport<CollectorRequest>(options, clock)
  return {
    sources: createSources(options.sources),
    ipHeader: ipHeader?.toLowerCase(),
    deadlineMs,
    observers: new Observers<CollectorObserver>(clock, ['answered'], {
      answered({ error, request }) {
        if (error !== undefined) {
          const { path } = request
          report(error, request, { text: `${error.code} at ${path}: ${error.message}`, fields: { path } })
        }
      },
    }),
    clock,
  }
}

export function readChanges(changes: CollectorChanges): Sources {
  const fixed = Object.keys(CHECKS).find((name) => name !== 'sources' && Object.hasOwn(Object(changes), name))
  if (fixed !== undefined) {
    const advice = 'Create another collector.'
    throw invalidOption(fixed, 'cannot change while the collector runs', undefined, advice)
  }
  requireOptions('update', changes, ['sources'])
  return createSources(changes.sources)
}
