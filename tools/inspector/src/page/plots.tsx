/** The plots of a queue: successes, failures, durations and depth. A pointer or the arrow keys show values. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Part, Series } from '../wire.ts'
import { formatDuration, formatNumber, formatTime } from './format.ts'
import { Failure } from './parts.tsx'
import {
  type Box,
  drawLine,
  drawSteps,
  findTicks,
  findTimeTicks,
  greatestOf,
  indexAt,
  latestOf,
  type Values,
  xOf,
  yOf,
} from './scale.ts'
import { useAnswer } from './store.ts'

const SPANS = { 15: '15 minutes', 240: '4 hours' }
const REFRESH_MS = 5_000

export function Plots({ name: part, kind }: Part) {
  const [minutes, setMinutes] = useState('15')
  const [chosen, setChosen] = useState<number>()
  const { answer: series, error } = useAnswer<Series>('series', { part, minutes }, { everyMs: REFRESH_MS })
  const shared = series && { series, chosen, onChoose: setChosen }
  const each = series && `per ${formatDuration(series.intervalMs)}`
  return (
    <section aria-label={`Plots of ${part}`}>
      <div class="row">
        <h2>The last</h2>
        {Object.entries(SPANS).map(([each, name]) => (
          <button key={each} type="button" aria-pressed={minutes === each} onClick={() => setMinutes(each)}>
            {name}
          </button>
        ))}
      </div>
      <Failure error={error} />
      {shared !== undefined && each !== undefined && (
        <div class="plots">
          <Plot
            title={kind === 'receiver' ? 'Handled' : 'Delivered'}
            note={each}
            curves={{ done: 1 }}
            isSteps
            {...shared}
          />
          <Plot title="Failed" note={each} curves={{ failed: 2 }} isSteps {...shared} />
          <Plot
            title="Latency"
            note={kind === 'receiver' ? 'of handlers' : 'of attempts'}
            curves={{ p50: 1, p95: 3, p99: 2 }}
            {...shared}
          />
          <Plot title="Depth" note="waiting and active" curves={{ depth: 1 }} {...shared} />
        </div>
      )}
    </section>
  )
}

type CurveName = 'done' | 'failed' | 'p50' | 'p95' | 'p99' | 'depth'

interface PlotProps {
  readonly title: string
  readonly note: string
  readonly curves: Readonly<Partial<Record<CurveName, 1 | 2 | 3>>>
  readonly isSteps?: boolean
  readonly series: Series
  readonly chosen: number | undefined
  onChoose(index: number | undefined): void
}

const HEIGHT = 96
const [LEFT, RIGHT] = [52, 18]
const [TOP, BOTTOM] = [8, 22]

function Plot({ title, note, curves: colors, isSteps = false, series, chosen, onChoose }: PlotProps) {
  const { from, intervalMs } = series
  const curves = Object.entries(colors).map(([name, color]) => ({ name, color, values: series[name as CurveName] }))
  const isDuration = curves.length > 1
  const format = isDuration ? formatDuration : formatNumber
  const place = useRef<HTMLDivElement>(null)
  const width = Math.max(80, useWidth(place) - LEFT - RIGHT)
  const count = Math.max(1, series.done.length)
  const greatest = greatestOf(curves.flatMap(({ values }) => values)) ?? 0
  const ticks = findTicks(greatest, isDuration ? 'duration' : 'count')
  const box: Box = { width, height: HEIGHT, count, top: ticks.at(-1) as number }
  const index = chosen === undefined ? undefined : Math.min(chosen, count - 1)

  const offsetMs = -new Date(from).getTimezoneOffset() * 60_000
  const times = findTimeTicks(from, from + count * intervalMs, Math.max(2, Math.floor(width / 90)), offsetMs)
  const timeOf = (at: number): string => formatTime(from + at * intervalMs)
  const formatValue = (values: Values, at: number | undefined): string => {
    const value = at === undefined ? latestOf(values) : (values[at] ?? undefined)
    return value === undefined ? '–' : format(value)
  }
  const say = (what: (values: Values) => string): string =>
    curves.map(({ name, values }) => `${isDuration ? `${name} ` : ''}${what(values)}`).join(', ')
  const summarise = (values: Values): string => {
    const highest = greatestOf(values)
    return highest === undefined ? 'no values' : `latest ${formatValue(values, undefined)}, highest ${format(highest)}`
  }
  const last = index ?? count - 1
  return (
    <figure class="plot">
      <figcaption class="row">
        <h3>{title}</h3>
        <span class="muted grow cut">{index === undefined ? note : timeOf(index)}</span>
        <span class="row legend">
          {curves.map(({ name, color, values }) => (
            <span key={name} class={`row curve-${color}`}>
              {isDuration && (
                <>
                  <svg class="swatch" viewBox="0 0 14 4" aria-hidden="true">
                    <path class="line" d="M1 2H13" />
                  </svg>
                  <span class="muted">{name}</span>
                </>
              )}
              <b>{formatValue(values, index)}</b>
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
            {times.map((at) => (
              <text key={at} x={xOf((at - from) / intervalMs, box)} y={HEIGHT + 17} class="axis-x">
                {formatTime(at).slice(0, 5)}
              </text>
            ))}
            {index !== undefined && <path class="grid" d={`M${xOf(index + 0.5, box)} 0V${HEIGHT}`} />}
            {curves.map(({ name, color, values }) => {
              const value = index === undefined ? null : (values[index] ?? null)
              return (
                <g key={name} class={`curve-${color}`}>
                  <path
                    class={isSteps ? 'steps' : 'line'}
                    d={isSteps ? drawSteps(values, box) : drawLine(values, box)}
                  />
                  {index !== undefined && value !== null && (
                    <circle cx={xOf(index + 0.5, box)} cy={yOf(value, box)} r={3} />
                  )}
                </g>
              )
            })}
          </g>
        </svg>
        <input
          class="unseen"
          type="range"
          min={0}
          max={count - 1}
          value={last}
          aria-label={`${title}, ${note}: ${say(summarise)}.`}
          aria-valuetext={`${timeOf(last)}: ${say((values) => formatValue(values, last))}`}
          onFocus={() => onChoose(last)}
          onInput={(event) => onChoose(event.currentTarget.valueAsNumber)}
          onBlur={() => onChoose(undefined)}
        />
      </div>
    </figure>
  )
}

function useWidth(place: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const element = place.current
    if (element === null) return
    const measure = (): void => setWidth(element.clientWidth)
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    measure()
    return () => observer.disconnect()
  }, [place])
  return width
}
