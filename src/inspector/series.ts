/** What the plots show: rates, failures, latencies and depths of the last minutes and hours. */

import type { Series } from './wire-queues.ts'

/** Counts what ends, in intervals of time. */
export interface SeriesRecorder {
  /** A message was done: handled, delivered, collected. `durationMs` of its handlers or its attempt. */
  done(part: string, durationMs: number): void
  /** An attempt failed, or a request was refused. Undefined: nothing ran. */
  failed(part: string, durationMs: number | undefined): void
  /** How many wait and are active, when it was counted. */
  depth(part: string, count: number): void
  /** @param minutes The time span: up to 15 in intervals of 5 seconds, up to 240 in intervals of a minute. */
  read(part: string, minutes: number): Series
}
