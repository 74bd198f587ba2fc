/** Moves the clock of the app over the real retries: timer by timer, and never past an answer that is on its way. */

import type { ManualClock } from '../../testing/manual-clock.ts'
import { type Clock, inBackground } from '../../time/clock.ts'
import type { Time, TimeChange } from '../wire.ts'
import { Refusal } from './answers.ts'
import { requireBetween } from './faults.ts'
import type { Source } from './reader.ts'

/** The clock of the app, as the page moves it. */
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

/** What moving needs. */
export interface TimeOptions {
  readonly movable: ManualClock
  /** Whether anything is under way in the parts. */
  readonly isActive: () => Promise<boolean>
  readonly onChange: () => void
  /** The clock of the machine. */
  readonly machine: Clock
}

const LONGEST_MS = 7 * 24 * 60 * 60 * 1_000
/** How far it moves at once while something is under way. */
const STEP_MS = 1_000
/** How long it waits for that before each step, by the clock of the machine. */
const MOST_WAIT_MS = 2_000
const LOOK_MS = 10
/** How often its time is sent. */
const BEAT_MS = 1_000

/** Creates the control of a clock. */
export function createTimeControl({ movable, isActive, onChange, machine }: TimeOptions): TimeControl {
  const clock = inBackground(machine)
  let version = 1
  let isMoving = false
  let isClosed = false
  let beat: unknown

  function changed(): void {
    version += 1
    onChange()
  }

  function read(): Time {
    return { now: movable.now(), isMoving }
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
      if (clock.monotonic() - since >= MOST_WAIT_MS || isClosed) return false
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOOK_MS))
    }
    return true
  }

  /** The app may move the clock, too. */
  function repeat(): void {
    beat = clock.setTimeout(() => {
      changed()
      repeat()
    }, BEAT_MS)
  }
  repeat()

  return {
    name: 'time',
    get version() {
      return version
    },
    read,
    async change({ advanceMs }) {
      const ms = requireBetween('advanceMs', advanceMs, 1, LONGEST_MS)
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
