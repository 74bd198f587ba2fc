/** Reads the options of `receiver.work()`, and waits for the end of its work. */

import { invalidOption, requireInteger, requireOneOf, requireOptions, show } from '../kit/checks.ts'
import { type Clock, MAX_TIMER_MS } from '../kit/clock.ts'
import { waitUnlessAborted } from '../kit/timeout.ts'

/** The options of `work`, which determine when the work ends. Pass `forMs`, `until` or both. */
export interface ReceiverWorkOptions {
  /** How long to work, in milliseconds. Default: until the inbox is empty. */
  readonly forMs?: number
  /**
   * `'empty'` ends the work once no message is due, and none is waiting because of a handler's `maxPerSecond`. Retries
   * that become due later stay in the inbox. Default: the work continues for all of `forMs`.
   */
  readonly until?: 'empty'
  /** Ends the work when the signal aborts. */
  readonly signal?: AbortSignal
}

/** The result of a call to `work`. */
export interface WorkResult {
  /** How many messages were handled and are complete. */
  readonly handled: number
  /** How many attempts failed. Their messages will be retried, or are dead letters. */
  readonly failed: number
  /**
   * How many messages are still waiting, whether due now or later. On PostgreSQL, this is the latest pg-boss count, which may be a minute
   * old.
   */
  readonly left: number
}

/** How often to ask the inbox whether it is empty, in milliseconds. */
const LOOK_MS = 100

export function readWorkOptions(options: ReceiverWorkOptions): ReceiverWorkOptions {
  requireOptions('work', options, ['forMs', 'until', 'signal'])
  const { forMs, until, signal } = options
  if (forMs !== undefined) requireInteger('work: forMs', forMs, 1)
  if (until !== undefined) requireOneOf('work: until', until, ['empty'])
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidOption(
      'work: signal',
      'must be an AbortSignal',
      show(signal),
      'Pass the signal of an AbortController.',
    )
  }
  if (forMs === undefined && until === undefined) {
    throw invalidOption('work', 'needs the option `forMs` or `until`', undefined, "Pass `forMs`, or `until: 'empty'`.")
  }
  return options
}

/** The conditions that end the work. */
export interface WorkEnd {
  readonly clock: Clock
  /** When the work ends at the latest, on the monotonic clock. */
  readonly endsAt: number
  readonly signal: AbortSignal
  /** Returns whether the inbox is empty; undefined if an empty inbox does not end the work. */
  readonly isEmpty: (() => Promise<boolean>) | undefined
}

/** Waits until the work ends. Resolves to whether it ended because the inbox was empty. */
export async function waitForEnd({ clock, endsAt, signal, isEmpty }: WorkEnd): Promise<boolean> {
  const longestMs = isEmpty === undefined ? MAX_TIMER_MS : LOOK_MS
  while (!signal.aborted && clock.monotonic() < endsAt) {
    if (await isEmpty?.()) return true
    await waitUnlessAborted(Math.min(longestMs, Math.max(0, endsAt - clock.monotonic())), clock, signal)
  }
  return false
}
