/** Folds rounds of attempts that repeat the previous round. Times, attempt numbers and stacks may differ. */

import type { Step } from '../wire.ts'

export interface Fold {
  readonly steps: readonly Step[]
  /** The number of repeated rounds in `steps`, which are hidden until the fold is opened; undefined if the steps are always shown. */
  readonly repeats?: number
}

/** Folds repeated rounds. In each run of equal rounds, the first and last stay visible. */
export function foldRepeats(steps: readonly Step[]): readonly Fold[] {
  const runs: { readonly sign: string; readonly rounds: Step[][] }[] = []
  for (const round of splitRounds(steps)) {
    const sign = JSON.stringify(round, withoutTimes)
    const last = runs.at(-1)
    if (last?.sign === sign) last.rounds.push(round)
    else runs.push({ sign, rounds: [round] })
  }
  return runs.flatMap(({ rounds }): Fold[] => {
    const [first = [], ...middle] = rounds
    const last = middle.pop()
    const isAttempt = first.some(({ what }) => what === 'round' || what === 'failed')
    if (middle.length === 0 || last === undefined || !isAttempt) return [{ steps: rounds.flat() }]
    return [{ steps: first }, { steps: middle.flat(), repeats: middle.length }, { steps: last }]
  })
}

/** Splits steps into rounds: attempts at the URLs of a destination, and the step after them. Any other step is a round of its own. */
function splitRounds(steps: readonly Step[]): Step[][] {
  const rounds: Step[][] = []
  for (const [index, step] of steps.entries()) {
    if (steps[index - 1]?.what === 'attempt') rounds.at(-1)?.push(step)
    else rounds.push([step])
  }
  return rounds
}

const TIMES = new Set(['at', 'durationMs', 'retryAt', 'next', 'stack'])

/** Omits times, durations, attempt numbers and stacks from the JSON of a round. */
function withoutTimes(key: string, value: unknown): unknown {
  return TIMES.has(key) || (key === 'attempt' && typeof value === 'number') ? undefined : value
}
