/** Keeps PostgreSQL from reading all that waits to find what is due the longest. */

import type { Connection } from './pg-boss-connection.ts'
import type { Settings } from './pg-boss-options.ts'

/** Sees how long it took to look for jobs, in milliseconds, and has PostgreSQL count when that was long. */
export type NoteDuration = (ms: number) => void

/**
 * Makes it. A table that grew fast is one that PostgreSQL takes for small until it counts again, by itself about a minute
 * later; meanwhile it would sort everything for each look.
 */
export function createStatistics(
  connection: Connection,
  { schema, timeoutMs, clock }: Settings,
  onError: (error: unknown) => void,
): NoteDuration {
  let last: number | undefined
  return (ms) => {
    if (ms < SLOW_MS || (last !== undefined && clock.monotonic() - last < PAUSE_MS)) return
    last = clock.monotonic()
    const analyze = `ANALYZE ${schema}.job`
    connection.call(({ db }) => db.executeSql(analyze), { limitMs: timeoutMs * PATIENCE }).catch(onError)
  }
}

const SLOW_MS = 40
const PAUSE_MS = 60_000
const PATIENCE = 10
