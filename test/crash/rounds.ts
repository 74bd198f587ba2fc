/** Rounds: a process works, is killed at a random moment, and is started again on the same store. */

import type { Child } from './child.ts'

/** One round, which lasts until the process is killed. */
export interface Round {
  readonly child: Child
  readonly said: string
  /** How many things happen until it is to be killed. */
  readonly killAfter: number
}

export interface RoundsOptions {
  readonly rounds: number
  readonly random: () => number
  start(round: number): Child
  /** Keeps the process busy, kills it after `killAfter`, and resolves when it has ended. */
  run(round: Round): Promise<void>
  /** Inspects the store after the crash. */
  inspect(): void
}

/** The most that happens in a round before the process is killed. */
const MOST = 250
/** How many processes of a hundred are killed while they start, and how late at most, in milliseconds. */
const EARLY = 10
const START_MS = 500

export async function runRounds({ rounds, random, start, run, inspect }: RoundsOptions): Promise<void> {
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
      await run({ child, said, killAfter: 1 + Math.floor(at * MOST) })
      await child.ended
    }
    inspect()
  }
}
