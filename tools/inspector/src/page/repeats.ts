/** Folds rounds of attempts that differ from the previous round only in their times. */

import type { Step } from '../wire.ts'

export interface Fold {
  readonly steps: readonly Step[]
  /** The number of rounds that repeat the previous round and are hidden until the fold is opened; undefined for steps that are shown. */
  readonly repeats?: number
}

/** Folds repeated rounds. The first and the last of them stay visible. */
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

/** Splits steps into rounds: the attempts at the URLs of a destination, with their result. Any other step is a round of its own. */
function splitRounds(steps: readonly Step[]): Step[][] {
  const rounds: Step[][] = []
  for (const [index, step] of steps.entries()) {
    if (steps[index - 1]?.what === 'attempt') rounds.at(-1)?.push(step)
    else rounds.push([step])
  }
  return rounds
}

const TIMES = new Set(['at', 'durationMs', 'retryAt', 'next', 'stack'])

/** Leaves out times, and the number of an attempt. */
function withoutTimes(key: string, value: unknown): unknown {
  return TIMES.has(key) || (key === 'attempt' && typeof value === 'number') ? undefined : value
}
