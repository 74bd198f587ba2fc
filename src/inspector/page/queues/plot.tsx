/** A plot of values over time. A pointer or the arrow keys read its values. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { formatDuration, formatNumber, formatTime } from '../format.ts'
import {
  type Box,
  drawDots,
  drawLine,
  drawSteps,
  findTicks,
  findTimeTicks,
  greatestOf,
  indexAt,
  latestOf,
  xOf,
  yOf,
} from './scale.ts'
import '../plots.css'

/** One line or area of a plot. */
export interface Curve {
  /** Undefined: that of the plot. */
  readonly name?: string
  readonly values: readonly (number | null)[]
  readonly color: 1 | 2 | 3
}

/** What a plot shows. */
export interface PlotProps {
  readonly title: string
  /** What a value counts: `each 5 s`. */
  readonly note: string
  readonly unit: 'count' | 'duration'
  readonly curves: readonly Curve[]
  /** `steps`: one number for each interval. */
  readonly shape: 'line' | 'steps'
  readonly from: number
  readonly intervalMs: number
  /** The interval that is read in all plots; undefined: none. */
  readonly chosen: number | undefined
  onChoose(index: number | undefined): void
}

const HEIGHT = 96
/** Beside the plot: the numbers of the axis, and half of the last time. */
const [LEFT, RIGHT] = [52, 18]
const [TOP, BOTTOM] = [8, 22]

/** Draws a plot as wide as its place. */
export function Plot({ title, note, unit, curves, shape, from, intervalMs, chosen, onChoose }: PlotProps) {
  const place = useRef<HTMLDivElement>(null)
  const width = Math.max(80, useWidth(place) - LEFT - RIGHT)
  const count = Math.max(1, ...curves.map(({ values }) => values.length))
  const ticks = findTicks(greatestOf(curves.flatMap(({ values }) => values)) ?? 0, unit)
  const box: Box = { width, height: HEIGHT, count, top: ticks.at(-1) as number }
  const format = unit === 'duration' ? formatDuration : formatNumber
  const read = (curve: Curve, index: number | undefined): string => {
    const value = index === undefined ? latestOf(curve.values) : curve.values[index]
    return value === undefined || value === null ? '–' : format(value)
  }
  const index = chosen === undefined ? undefined : Math.min(chosen, count - 1)
  const timeOf = (at: number): string => formatTime(from + at * intervalMs)
  const say = (at: number): string =>
    `${timeOf(at)}: ${curves.map((curve) => `${curve.name ?? ''} ${read(curve, at)}`.trim()).join(', ')}`
  return (
    <figure class="plot">
      <figcaption>
        <h3>{title}</h3>
        <span class="muted">{index === undefined ? note : timeOf(index)}</span>
        <span class="plot-values">
          {curves.map((curve) => (
            <span key={curve.color} class={`plot-value curve-${curve.color}`}>
              {curve.name !== undefined && (
                <svg class="swatch" viewBox="0 0 14 4" aria-hidden="true">
                  <path d="M1 2H13" />
                </svg>
              )}
              {curve.name !== undefined && <span class="muted">{curve.name}</span>}
              <b>{read(curve, index)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div
        ref={place}
        class="plot-place"
        onPointerMove={(event) => {
          const { left } = event.currentTarget.getBoundingClientRect()
          onChoose(indexAt(event.clientX - left - LEFT, box))
        }}
        onPointerLeave={() => onChoose(undefined)}
      >
        <svg aria-hidden="true" width={width + LEFT + RIGHT} height={TOP + HEIGHT + BOTTOM}>
          <g transform={`translate(${LEFT} ${TOP})`}>
            {ticks.map((tick) => (
              <g key={tick}>
                <path class="grid" d={`M0 ${yOf(tick, box)}H${width}`} />
                <text x={-8} y={yOf(tick, box) + 4} class="axis-y">
                  {format(tick)}
                </text>
              </g>
            ))}
            {timeTicks(from, intervalMs, box).map((at) => (
              <text key={at} x={xOf((at - from) / intervalMs, box)} y={HEIGHT + 17} class="axis-x">
                {formatTime(at).slice(0, 5)}
              </text>
            ))}
            {curves.map(({ color, values }) =>
              shape === 'steps' ? (
                <path key={color} class={`curve-${color} curve-steps`} d={drawSteps(values, box)} />
              ) : (
                <g key={color} class={`curve-${color}`}>
                  <path class="curve-line" d={drawLine(values, box)} />
                  <path class="curve-dots" d={drawDots(values, box)} />
                </g>
              ),
            )}
            {index !== undefined && <Reading index={index} curves={curves} box={box} />}
          </g>
        </svg>
        <input
          class="unseen"
          type="range"
          min={0}
          max={count - 1}
          value={index ?? count - 1}
          aria-label={`${title}, ${note}: ${summarise(curves, format)}`}
          aria-valuetext={say(index ?? count - 1)}
          onFocus={() => onChoose(index ?? count - 1)}
          onInput={(event) => onChoose(event.currentTarget.valueAsNumber)}
          onBlur={() => onChoose(undefined)}
        />
      </div>
    </figure>
  )
}

/** The values of one interval, marked. */
function Reading({
  index,
  curves,
  box,
}: {
  readonly index: number
  readonly curves: readonly Curve[]
  readonly box: Box
}) {
  const x = xOf(index + 0.5, box)
  return (
    <g>
      <path class="crosshair" d={`M${x} 0V${box.height}`} />
      {curves.map(({ color, values }) => {
        const value = values[index] ?? null
        return value !== null && <circle key={color} class={`curve-${color}`} cx={x} cy={yOf(value, box)} r={3} />
      })}
    </g>
  )
}

function timeTicks(from: number, intervalMs: number, { width, count }: Box): number[] {
  const offsetMs = -new Date(from).getTimezoneOffset() * 60_000
  return findTimeTicks(from, from + count * intervalMs, Math.max(2, Math.floor(width / 90)), offsetMs)
}

/** The text of a plot: `Latest 12, highest 40`. */
function summarise(curves: readonly Curve[], format: (value: number) => string): string {
  const lines = curves.map(({ name, values }) => {
    const [latest, greatest] = [latestOf(values), greatestOf(values)]
    if (latest === undefined || greatest === undefined) return `${name ?? ''} no values`.trim()
    return `${name ?? ''} latest ${format(latest)}, highest ${format(greatest)}`.trim()
  })
  return `${lines.join('; ')}.`
}

function useWidth(place: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const element = place.current
    if (element === null) return
    setWidth(element.clientWidth)
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [place])
  return width
}
