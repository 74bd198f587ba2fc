/** Draws a line for the four hours in which a message is retried, with the past and the expected attempts. */

import type { Row, Step } from '../wire.ts'
import { formatCount, formatDuration, formatTime } from './format.ts'
import { expectAttempts, findTried, placeOf } from './retry-times.ts'
import { useNow } from './store.ts'

interface FourHoursProps {
  readonly startedAt: number
  readonly endsAt: number
  readonly steps: readonly Step[]
  readonly row: Row
}

/** The minutes to label, counted from the first attempt. The labels in `WIDE` are shown only on a wide line. */
const MARKS = [0, 1, 10, 30, 60, 120, 240]
const WIDE = [1, 30]

export function FourHours({ startedAt, endsAt, steps, row: { attempts, retryAt: nextAt } }: FourHoursProps) {
  const now = useNow()
  const tried = findTried(steps)
  const x = (at: number): string => `${Math.round(placeOf(at - startedAt, endsAt - startedAt) * 1_000) / 10}%`
  const later = nextAt === undefined ? [] : expectAttempts(nextAt, attempts, startedAt)
  const next = nextAt === undefined ? 'no more to come' : `the next one in ${formatDuration(Math.max(0, nextAt - now))}`
  const text = `${formatCount(tried.length, 'attempt')} so far, ${next}. The four hours end at ${formatTime(endsAt)}.`
  return (
    <svg class="four-hours" role="img" aria-label={text} height="40">
      <line x1="0" x2="100%" y1="12" y2="12" />
      <line class="past" x1="0" x2={x(now)} y1="12" y2="12" />
      {MARKS.map((minutes) => {
        const place = x(startedAt + minutes * 60_000)
        return (
          <g key={minutes} class={WIDE.includes(minutes) ? 'wide' : ''}>
            <line class="mark" x1={place} x2={place} y1="18" y2="22" />
            <text class="axis-x" x={place} y="35">
              {minutes === 0 ? '0' : formatDuration(minutes * 60_000)}
            </text>
          </g>
        )
      })}
      {later.map((at) => (
        <circle key={at} class="muted" cx={x(at)} cy="12" r="2" />
      ))}
      {tried.map(({ at, ok }, index) => (
        <circle key={index} class={ok ? 'state-done' : 'state-failed'} cx={x(at)} cy="12" r="4" />
      ))}
      {nextAt !== undefined && <circle class="attempt-next" cx={x(nextAt)} cy="12" r="5" />}
    </svg>
  )
}
