/** Moves the clock of the app over the real retries: timer by timer, and never past an answer that is on its way. */

import type { ManualClock } from '../../testing/manual-clock.ts'
import type { Clock } from '../../time/clock.ts'
import type { Time, TimeChange } from '../wire.ts'
import { Refusal, requireBetween } from './answers.ts'
import type { Source } from './stream.ts'

export interface TimeControl extends Source {
  read(): Time
  /**
   * Moves it, and resolves when it has arrived.
   *
   * @throws Refusal (as a rejection) for a wrong change, and while another moves it.
   */
  change(body: { readonly [field in keyof TimeChange]?: unknown }): Promise<Time>
  close(): void
}

const MAX_MS = 7 * 24 * 60 * 60 * 1_000
/** How far it moves at once while something is under way. */
const STEP_MS = 1_000
/** How long it waits for that before each step, by the clock of the machine. */
const MAX_WAIT_MS = 2_000
const LOOK_MS = 10
/** How often its time is sent: the app may move the clock, too. */
const BEAT_MS = 1_000

/**
 * Creates the control of a clock.
 *
 * @param isActive Whether anything is under way in the parts.
 * @param clock The clock of the machine, in the background.
 */
export function createTimeControl(
  movable: ManualClock,
  isActive: () => Promise<boolean>,
  onChange: () => void,
  clock: Clock,
): TimeControl {
  let version = 1
  let isMoving = false
  let isClosed = false
  let beat = clock.setTimeout(repeat, BEAT_MS)

  function repeat(): void {
    changed()
    beat = clock.setTimeout(repeat, BEAT_MS)
  }

  function changed(): void {
    version += 1
    onChange()
  }

  async function move(ms: number): Promise<void> {
    const end = movable.now() + ms
    let isQuiet = await settle()
    while (!isClosed && movable.now() < end) {
      await movable.advance(stepOf(end - movable.now(), isQuiet))
      changed()
      isQuiet = await settle()
    }
  }

  function stepOf(left: number, isQuiet: boolean): number {
    const { timers, nextTimerAt } = movable
    if (timers === 0) return left
    // Until the next timer fires nothing can happen, unless an answer arrives.
    const most = isQuiet && nextTimerAt !== undefined ? nextTimerAt - movable.now() : STEP_MS
    return Math.min(left, Math.max(0, most))
  }

  /** Waits until nothing is under way, but not for ever. Returns whether that is so. */
  async function settle(): Promise<boolean> {
    for (const since = clock.monotonic(); await isActive(); ) {
      if (clock.monotonic() - since >= MAX_WAIT_MS || isClosed) return false
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOOK_MS))
    }
    return true
  }

  const read = (): Time => ({ now: movable.now(), isMoving })
  return {
    name: 'time',
    get version() {
      return version
    },
    read,
    async change({ advanceMs }) {
      const ms = requireBetween('advanceMs', advanceMs, 1, MAX_MS)
      if (isMoving) {
        throw new Refusal(409, 'The clock is moved once at a time. Got another move. Wait until the first has ended.')
      }
      isMoving = true
      changed()
      try {
        await move(ms)
      } finally {
        isMoving = false
        changed()
      }
      return read()
    },
    close() {
      isClosed = true
      clock.clearTimeout(beat)
    },
  }
}
