/** The plots of a queue: what was done, what failed, how long it took, how much waits. */

import { useState } from 'preact/hooks'
import type { Series } from '../../wire.ts'
import { useAnswer } from '../answer.ts'
import { formatDuration } from '../format.ts'
import { Failure } from '../parts.tsx'
import { Plot } from './plot.tsx'

const SPANS = [
  { minutes: 15, name: '15 minutes' },
  { minutes: 240, name: '4 hours' },
] as const
const REFRESH_MS = 5_000

/** Draws the four plots of a part, and keeps them up to date. */
export function Plots({ part }: { readonly part: string }) {
  const [minutes, setMinutes] = useState<number>(15)
  const [chosen, setChosen] = useState<number>()
  const { answer, error } = useAnswer<Series>('series', { part, minutes }, REFRESH_MS)
  return (
    <section aria-label={`Plots of ${part}`}>
      <div class="row">
        <h2>The last</h2>
        {SPANS.map((span) => (
          <button
            key={span.minutes}
            type="button"
            aria-pressed={minutes === span.minutes}
            onClick={() => setMinutes(span.minutes)}
          >
            {span.name}
          </button>
        ))}
      </div>
      {error !== undefined && <Failure>{error}</Failure>}
      {answer !== undefined && <Four series={answer} chosen={chosen} onChoose={setChosen} />}
    </section>
  )
}

interface FourProps {
  readonly series: Series
  readonly chosen: number | undefined
  onChoose(index: number | undefined): void
}

function Four({ series, chosen, onChoose }: FourProps) {
  const { from, intervalMs, done, failed, p50, p95, p99, depth } = series
  const shared = { from, intervalMs, chosen, onChoose }
  const each = `each ${formatDuration(intervalMs)}`
  return (
    <div class="plots">
      <Plot title="Done" note={each} unit="count" shape="steps" curves={[{ values: done, color: 1 }]} {...shared} />
      <Plot title="Failed" note={each} unit="count" shape="steps" curves={[{ values: failed, color: 2 }]} {...shared} />
      <Plot
        title="Latency"
        note="of handlers or attempts"
        unit="duration"
        shape="line"
        curves={[
          { name: 'p50', values: p50, color: 1 },
          { name: 'p95', values: p95, color: 3 },
          { name: 'p99', values: p99, color: 2 },
        ]}
        {...shared}
      />
      <Plot
        title="Depth"
        note="waiting and active"
        unit="count"
        shape="line"
        curves={[{ values: depth, color: 1 }]}
        {...shared}
      />
    </div>
  )
}
