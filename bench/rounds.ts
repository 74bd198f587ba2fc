/**
 * How everything is compared: all contenders are up at once, each a process of its own, and take turns, in an order that rotates from
 * round to round. A ratio is taken within a round. Each baseline is there twice: where the two differ, the run says nothing.
 */

import { keepAwake, LOAD_CORE, SERVER_CORE } from './pin.ts'
import { median, printTable, quantile, verdict } from './table.ts'
import type { Turn } from './turn.ts'

/** A contender that is up. */
export interface Runner {
  turn(messages: number): Promise<Turn>
  stop(): Promise<void>
}

interface Entry {
  /** Starts it; one that measures the package takes the build of this checkout, if one is given. */
  start(checkout?: string): Promise<Runner>
  /** Whether it measures the package. */
  readonly isOurs?: true
}

/** What is measured of a turn: one thing over another. */
export interface Figure {
  readonly title: string
  readonly digits: number
  over(turn: Turn): number
  under(turn: Turn): number
}

export const figures = {
  cpu: { title: 'CPU, µs a message', digits: 2, over: ({ cpu }) => cpu, under: ({ messages }) => messages },
  perCpu: {
    title: 'messages a CPU second',
    digits: 0,
    over: ({ messages }) => messages,
    under: ({ cpu }) => cpu / 1e6,
  },
  rate: { title: 'messages/s', digits: 0, over: ({ messages }) => messages, under: ({ seconds }) => seconds },
  p99: { title: '99th percentile, ms', digits: 2, over: ({ p99 = Number.NaN }) => p99, under: () => 1 },
  gc: { title: 'garbage collection, µs a message', digits: 2, over: ({ gc }) => gc, under: ({ messages }) => messages },
  pause: { title: 'mean pause of it, ms', digits: 2, over: ({ gc }) => gc / 1000, under: ({ pauses }) => pauses },
} as const satisfies Readonly<Record<string, Figure>>

/** One line of the result. */
export interface Row {
  readonly of: string
  /** Its baseline; without one the figure itself is held against the target. */
  readonly to?: string
  readonly figure: Figure
  /** Subtracts the figure of this one. */
  readonly beyond?: string
  readonly atMost?: number
  readonly atLeast?: number
}

/** What is up at once. */
export interface Plan {
  readonly entries: Readonly<Record<string, Entry>>
  readonly rows: readonly Row[]
  /** Of a turn. Default 3000. */
  readonly messages?: number
  /** Default 20 000. */
  readonly warmUp?: number
}

export interface RoundOptions {
  readonly rounds: number
  /** A checkout whose build takes part as another contender. */
  readonly against: string | undefined
}

/** The most that two of the same may differ by. */
const SAME = 0.03
const TURN = 3000
const WARM_UP = 20_000

/** Measures and prints. A plan is measured once more when its baselines differed in what has a target. */
export async function compare(title: string, plans: readonly Plan[], options: RoundOptions): Promise<void> {
  const rows: string[][] = []
  for (const plan of plans) {
    const first = await measure(plan, options)
    const aims = plan.rows.filter(({ atMost, atLeast }) => atMost !== undefined || atLeast !== undefined)
    const turns = aims.some((row) => isVoid(row, first)) ? await measure(plan, options) : first
    rows.push(...plan.rows.flatMap((row) => [cellsOf(row, turns), ...cellsOfOther(plan, row, turns, options.against)]))
  }
  console.log(`## ${title}\n`)
  const turns = [...new Set(plans.map(({ messages = TURN }) => messages))].join(' or ')
  console.log(
    `${options.rounds} rounds, ${turns} messages a turn. Ratio: within a round, median (quartiles). Same: the baseline against itself.\n`,
  )
  printTable(['', 'measured', 'against', 'baseline', 'figure', 'ratio', 'same', 'target', ''], rows)
}

type Turns = ReadonlyMap<string, readonly Turn[]>

async function measure(
  { entries, rows, messages = TURN, warmUp = WARM_UP }: Plan,
  { rounds, against }: RoundOptions,
): Promise<Turns> {
  const letSleep = [keepAwake(SERVER_CORE), keepAwake(LOAD_CORE)]
  const runners: [string, Runner][] = []
  const turns = new Map<string, Turn[]>()
  try {
    for (const [name, { start, isOurs }] of Object.entries(entries)) {
      runners.push([name, await start()])
      if (rows.some(({ to }) => to === name)) runners.push([twin(name), await start()])
      if (isOurs && against !== undefined) runners.push([other(name), await start(against)])
    }
    for (const [, { turn }] of runners) {
      for (let done = 0; done < warmUp; done += messages) await turn(messages)
    }
    for (let round = 0; round < rounds; round++) {
      // Every other round backwards, so that what one leaves behind does not always meet the same next one.
      const order = runners.map((_, i) => runners[(round + i) % runners.length] as [string, Runner])
      for (const [name, { turn }] of round % 2 === 0 ? order : order.reverse()) {
        turns.set(name, [...(turns.get(name) ?? []), await turn(messages)])
      }
    }
    return turns
  } finally {
    for (const [, { stop }] of runners) await stop()
    for (const end of letSleep) end()
  }
}

const twin = (name: string): string => `${name}, again`
/** The one of the build that this one is compared with. */
const other = (name: string): string => `${name}, other build`

function cellsOf(row: Row, turns: Turns): string[] {
  const { of, to, beyond, figure, atMost, atLeast } = row
  const other = beyond === undefined ? 0 : pooled(figure, turns.get(beyond) ?? [])
  const own = (pooled(figure, turns.get(of) ?? []) - other).toFixed(figure.digits)
  const ratios = to === undefined ? [] : ratiosOf(row, turns)
  const value = to === undefined ? Number(own) : median(ratios)
  const target = atMost !== undefined ? `≤ ${atMost}` : atLeast !== undefined ? `≥ ${atLeast}` : '–'
  const isReached = value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY)
  const said = isVoid(row, turns) ? '**VOID**' : target === '–' ? '' : verdict(isReached)
  if (to === undefined) return [of, figure.title, '', '', own, '', '', target, said]
  const baseline = pooled(figure, turns.get(to) ?? []).toFixed(figure.digits)
  return [
    of,
    figure.title,
    to,
    baseline,
    own,
    withQuartiles(ratios),
    sameness(row, turns)?.toFixed(3) ?? '',
    target,
    said,
  ]
}

/** The same of the other build: against its own baseline, if that is of the package too; and this build against it. */
function cellsOfOther({ entries }: Plan, row: Row, turns: Turns, against: string | undefined): string[][] {
  const { of, to, figure } = row
  if (against === undefined || !entries[of]?.isOurs) return []
  const baseline = to !== undefined && entries[to]?.isOurs ? other(to) : to
  const theirs = { of: other(of), figure, ...(baseline === undefined ? {} : { to: baseline }) }
  if (to === undefined) return [cellsOf(theirs, turns)]
  return [cellsOf(theirs, turns), cellsOf({ of, to: other(of), figure }, turns)]
}

function ratiosOf({ of, to = '', figure }: Row, turns: Turns): number[] {
  const baselines = [turns.get(to), turns.get(twin(to))].flatMap((each) => (each === undefined ? [] : [each]))
  return (turns.get(of) ?? []).map((turn, round) => {
    const values = baselines.map((each) => read(figure, each[round] as Turn))
    return read(figure, turn) / (values.reduce((sum, value) => sum + value, 0) / values.length)
  })
}

/** The baseline against itself; undefined when it was there once only. */
function sameness({ to = '', figure }: Row, turns: Turns): number | undefined {
  const again = turns.get(twin(to))
  if (again === undefined) return undefined
  const first = turns.get(to) ?? []
  return median(first.map((turn, round) => read(figure, turn) / read(figure, again[round] as Turn)))
}

function isVoid(row: Row, turns: Turns): boolean {
  return Math.abs((sameness(row, turns) ?? 1) - 1) > SAME
}

function read({ over, under }: Figure, turn: Turn): number {
  return over(turn) / under(turn)
}

function pooled({ over, under }: Figure, turns: readonly Turn[]): number {
  const sum = (pick: (turn: Turn) => number): number => turns.reduce((total, turn) => total + pick(turn), 0)
  return sum(over) / sum(under)
}

function withQuartiles(ratios: readonly number[]): string {
  const [low, high] = [quantile(ratios, 0.25), quantile(ratios, 0.75)]
  return `${median(ratios).toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
}
