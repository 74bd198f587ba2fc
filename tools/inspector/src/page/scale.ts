/** Calculates the scales of plots, and draws their lines. */

const MINUTE = 60_000

/**
 * Returns the values to label on an axis that starts at 0: at most three steps of 1, 2 or 5 times a power of ten. The
 * last value is at least `max`.
 *
 * @param unit With `count`, the values are whole numbers. With `duration`, they are milliseconds, and long durations have steps of minutes.
 */
export function findTicks(max: number, unit: 'count' | 'duration'): number[] {
  const rough = (max > 0 ? max : 1) / 3
  const base = unit === 'duration' && rough > 20_000 ? MINUTE : 1
  const step = Math.max(niceAbove(rough / base) * base, unit === 'count' ? 1 : 0)
  const count = Math.max(1, Math.ceil(max / step - 1e-9))
  return Array.from({ length: count + 1 }, (_, index) => index * step)
}

/** Returns the smallest number of the form 1, 2 or 5 times a power of ten that is at least `rough`. */
function niceAbove(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough))
  const factor = [1, 2, 5].find((each) => each * power >= rough * (1 - 1e-9)) ?? 10
  return Number((factor * power).toPrecision(1)) // Rounding gives 0.2 instead of 0.2000…01.
}

/**
 * Returns the times to label on an axis, in steps of whole minutes.
 *
 * @param most The maximum number of times.
 * @param offsetMs The difference between local time and UTC, so that hourly steps are on the hour in local time.
 */
export function findTimeTicks(from: number, to: number, most: number, offsetMs: number): number[] {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 240, 480].map((minutes) => minutes * MINUTE)
  const step = steps.find((each) => Math.floor((to - from) / each) + 1 <= most) ?? to - from
  const first = Math.ceil((from + offsetMs) / step) * step - offsetMs
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, index) => first + index * step)
}

/** The values of a curve, one for each interval; null where there is no value. */
export type Values = readonly (number | null)[]

/** The box of a plot. The coordinate of its upper edge is 0. */
export interface Box {
  readonly width: number
  readonly height: number
  /** The number of intervals. */
  readonly count: number
  readonly top: number
}

export function drawLine(values: Values, box: Box): string {
  const points = values.map((value, index) => {
    if (value === null) return ''
    const point = `${xOf(index + 0.5, box)} ${yOf(value, box)}`
    return (values[index - 1] ?? null) === null ? `M${point}h0` : `L${point}`
  })
  return points.join('')
}

export function drawSteps(values: Values, box: Box): string {
  const steps = values.map((value, index) => `V${yOf(value ?? 0, box)}H${xOf(index + 1, box)}`)
  return `M0 ${yOf(0, box)}${steps.join('')}V${yOf(0, box)}Z`
}

export function xOf(index: number, { width, count }: Box): number {
  return round((index / count) * width)
}

export function yOf(value: number, { height, top }: Box): number {
  return round(height - (Math.min(value, top) / top) * height)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Returns the index of the interval at a position, or of the nearest interval if the position is outside the plot. */
export function indexAt(x: number, { width, count }: Pick<Box, 'width' | 'count'>): number {
  return Math.max(0, Math.min(count - 1, Math.floor((x / width) * count)))
}

/** Returns the greatest value; undefined if all values are null. */
export function greatestOf(values: Values): number | undefined {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? undefined : Math.max(...known)
}

export function latestOf(values: Values): number | undefined {
  return values.findLast((value) => value !== null) ?? undefined
}
