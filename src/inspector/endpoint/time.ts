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
  /** Receives what a timer of the app threw. */
  readonly report: (thrown: unknown) => void
  /** How many milliseconds pass in one of the machine's, at first. */
  readonly speed: number
  /** The clock of the machine. */
  readonly machine: Clock
}

const LONGEST_MS = 7 * 24 * 60 * 60 * 1_000
/** 0: it stands still. 1: it goes with the clock of the machine. */
export const SPEEDS: readonly number[] = [0, 1, 60, 600]
/** How far it moves at once while something is under way. */
const STEP_MS = 1_000
/** How long it waits for that before each step, by the clock of the machine. */
const MOST_WAIT_MS = 2_000
const LOOK_MS = 10
/** Between two steps of a clock with a speed. */
const TICK_MS = 100
/** Between two steps of a clock that goes with that of the machine: what the parts measure is as fine as that. */
const REAL_TICK_MS = 10
/** The most that counts for one of them: what took longer is not made up for. */
const MOST_TICK_MS = 1_000
/** How often its time is sent. */
const BEAT_MS = 1_000

/** Creates the control of a clock. */
export function createTimeControl({ movable, isActive, onChange, report, speed, machine }: TimeOptions): TimeControl {
  const clock = inBackground(machine)
  let version = 1
  /** How many milliseconds pass in one of the machine's. */
  let pace = { each: 0 }
  let isAsked = false
  let isClosed = false
  let ticker: unknown
  let beat: unknown
  /** The move under way: there is never another, because two at once could move the clock back. */
  let moving: Promise<void> | undefined

  function changed(): void {
    version += 1
    onChange()
  }

  function read(): Time {
    return { now: movable.now(), speed: pace.each, isMoving: isAsked }
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

  /** Moves when no other move is under way any more. */
  async function moveNext(ms: number): Promise<void> {
    // Whoever began that one hears of its failure.
    while (moving !== undefined) await moving.catch(() => {})
    await begin(move(ms))
  }

  function begin(move: Promise<void>): Promise<void> {
    moving = move.finally(() => {
      moving = undefined
    })
    return moving
  }

  /** Goes on until another speed is set. */
  function tick(since: number, current: typeof pace): void {
    ticker = clock.setTimeout(async () => {
      const now = clock.monotonic()
      if (!isAsked) await moveNext(Math.round(Math.min(now - since, MOST_TICK_MS) * current.each)).catch(report)
      if (pace === current && !isClosed) tick(now, current)
    }, TICK_MS)
  }

  /** Goes on with the clock of the machine, and waits for nothing: what takes a second there takes one here. */
  function follow(since: number, current: typeof pace): void {
    ticker = clock.setTimeout(async () => {
      const now = clock.monotonic()
      const ms = Math.floor(now - since)
      if (moving === undefined) await begin(movable.advance(Math.min(ms, MOST_TICK_MS))).catch(report)
      if (pace === current && !isClosed) follow(since + ms, current)
    }, REAL_TICK_MS)
  }

  function run(each: number): void {
    pace = { each }
    clock.clearTimeout(ticker)
    if (each === 1) follow(clock.monotonic(), pace)
    else if (each > 0) tick(clock.monotonic(), pace)
  }

  async function advance(ms: number): Promise<void> {
    isAsked = true
    changed()
    try {
      await moveNext(ms)
    } finally {
      isAsked = false
      changed()
    }
  }

  /** The app may move the clock, too. */
  function repeat(): void {
    beat = clock.setTimeout(() => {
      changed()
      repeat()
    }, BEAT_MS)
  }
  repeat()
  run(speed)

  return {
    name: 'time',
    get version() {
      return version
    },
    read,
    async change({ advanceMs, speed: nextSpeed }) {
      if (advanceMs === undefined && nextSpeed === undefined) {
        throw new Refusal(400, '`advanceMs` or `speed` is required. Got neither. Send one of them.')
      }
      const ms = advanceMs === undefined ? 0 : requireBetween('advanceMs', advanceMs, 1, LONGEST_MS)
      if (ms > 0 && isAsked) {
        throw new Refusal(409, 'The clock is moved once at a time. Got another move. Wait until the first has ended.')
      }
      if (nextSpeed !== undefined) {
        run(requireSpeed(nextSpeed))
        changed()
      }
      if (ms > 0) await advance(ms)
      return read()
    },
    close() {
      isClosed = true
      clock.clearTimeout(ticker)
      clock.clearTimeout(beat)
    },
  }
}

function requireSpeed(speed: unknown): number {
  if (SPEEDS.includes(speed as number)) return speed as number
  throw new Refusal(400, `\`speed\` must be one of ${SPEEDS.join(', ')}. Got something else. Send one of them.`)
}
