/** Lets two programs send in turns, slice by slice, so that both see the same machine. */

import { median, spread, verdict } from '../table.ts'
import type { Worker } from './stage.ts'
import type { Effort } from './worker.ts'

/** What each slice took: of the one that is compared with, and of ours. */
export interface Turns {
  readonly messages: number
  readonly theirs: readonly Effort[]
  readonly ours: readonly Effort[]
}

/** Warms both up with a slice, and takes the turns. */
export async function takeTurns(
  [them, us]: readonly [Worker, Worker],
  slices: number,
  messages: number,
): Promise<Turns> {
  const theirs: Effort[] = []
  const ours: Effort[] = []
  await them.send(messages)
  await us.send(messages)
  for (let slice = 0; slice < slices; slice++) {
    theirs.push(await them.send(messages))
    ours.push(await us.send(messages))
  }
  return { messages, theirs, ours }
}

/** So much of the messages of a run, in whole batches, and the same for each of 100 destinations. */
export function share(messages: number, part: number): number {
  return Math.ceil((messages * part) / 100) * 100
}

/** Messages a second, both, and their ratio against what is aimed at. */
export function rateCells(turns: Turns, atLeast: number): string[] {
  const [theirRates, ourRates] = ratesOf(turns)
  const ratios = ratiosOf(ourRates, theirRates)
  const reached = verdict(median(ratios) >= atLeast)
  return [median(theirRates).toFixed(0), median(ourRates).toFixed(0), spread(ratios), `≥ ${atLeast}`, reached]
}

/** Messages a second, by slice: theirs, ours. */
export function ratesOf({ messages, theirs, ours }: Turns): [number[], number[]] {
  const rates = (efforts: readonly Effort[]): number[] => efforts.map(({ seconds }) => messages / seconds)
  return [rates(theirs), rates(ours)]
}

/** CPU time a message in microseconds, by slice: theirs, ours. */
export function cpuOf({ messages, theirs, ours }: Turns): [number[], number[]] {
  const micros = (efforts: readonly Effort[]): number[] => efforts.map(({ cpu }) => (cpu * 1e6) / messages)
  return [micros(theirs), micros(ours)]
}

/** How much of its core each had: below all of it, the endpoint was what limited it. */
export function busyOf({ theirs, ours }: Turns): string {
  const busy = (efforts: readonly Effort[]): string =>
    `${(100 * median(efforts.map(({ seconds, cpu }) => cpu / seconds))).toFixed(0)} %`
  return `${busy(theirs)} / ${busy(ours)}`
}

/** Slice by slice. */
export function ratiosOf(ours: readonly number[], theirs: readonly number[]): number[] {
  return ours.map((value, slice) => value / (theirs[slice] ?? Number.NaN))
}

/** The medians of both: `30.1 / 35.5`. */
export function medianPair([theirs, ours]: readonly [readonly number[], readonly number[]]): string {
  return `${median(theirs).toFixed(1)} / ${median(ours).toFixed(1)}`
}
