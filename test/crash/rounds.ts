/** Rounds of a process that works, is killed at a random moment, and is started again on the same store. */

import type { Child } from './child.ts'

/** A round that goes on until the process is killed. */
export interface Round {
  readonly child: Child
  /** What the program said when it was ready. */
  readonly said: string
  /** How many things happen until it is to be killed. */
  readonly killAfter: number
}

/** What makes rounds. */
export interface RoundsOptions {
  readonly rounds: number
  readonly random: () => number
  /** Starts the program for the round of this number. */
  start(round: number): Child
  /** Keeps the process busy; ends when it has ended. It is killed in here, or the round never ends. */
  play(round: Round): Promise<void>
  /** Looks at what the crash left. */
  inspect(): void
}

/** Most things that happen in a round before the process is killed. */
const MOST = 250
/** How many rounds of a hundred are killed while the process starts, and how late at most, in milliseconds. */
const EARLY = 10
const START_MS = 500

/** Makes the rounds. */
export async function playRounds({ rounds, random, start, play, inspect }: RoundsOptions): Promise<void> {
  for (let round = 1; round <= rounds; round += 1) {
    const isEarly = random() * 100 < EARLY
    const at = random()
    const child = start(round)
    if (isEarly) {
      const timer = setTimeout(child.kill, at * START_MS)
      await child.ended
      clearTimeout(timer)
    } else {
      const said = await child.ready
      await play({ child, said, killAfter: 1 + Math.floor(at * MOST) })
      await child.ended
    }
    inspect()
  }
}
