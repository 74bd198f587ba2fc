/** Folds the attempts of a timeline that repeat what came before them, but for their times. */

import type { Step } from '../wire.ts'

export interface Fold {
  readonly steps: readonly Step[]
  /** How many rounds they are, which repeat the one before and are shown when they are opened; undefined: they are shown. */
  readonly repeats?: number
}

/** Of rounds that are the same, the first and the last are shown. */
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

/** A round is the attempts at the URLs of a destination, with their result; any other step is one by itself. */
function splitRounds(steps: readonly Step[]): Step[][] {
  const rounds: Step[][] = []
  for (const [index, step] of steps.entries()) {
    if (steps[index - 1]?.what === 'attempt') rounds.at(-1)?.push(step)
    else rounds.push([step])
  }
  return rounds
}

const TIMES = new Set(['at', 'durationMs', 'retryAt', 'next', 'stack'])

/** The number of an attempt differs, too. */
function withoutTimes(key: string, value: unknown): unknown {
  return TIMES.has(key) || (key === 'attempt' && typeof value === 'number') ? undefined : value
}
