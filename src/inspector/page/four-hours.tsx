/** The four hours in which a message is tried, on a line: what has been tried, and what is to come. */

import { formatCount, formatDuration, formatTime } from './format.ts'
import { useNow } from './parts.tsx'
import { expectAttempts, placeOf, type Tried } from './retry-times.ts'
import './plots.css'

/** What the line shows. */
export interface FourHoursProps {
  readonly startedAt: number
  readonly endsAt: number
  readonly tried: readonly Tried[]
  /** How many rounds have ended: an attempt at each URL is one. */
  readonly rounds: number
  /** When the next attempt is due; undefined when none comes. */
  readonly nextAt: number | undefined
}

/** Minutes after the first attempt that the line names. Some only where it is wide. */
const MARKS = [0, 1, 10, 30, 60, 120, 240]
const WIDE = [1, 30]

/** Draws the line. */
export function FourHours({ startedAt, endsAt, tried, rounds, nextAt }: FourHoursProps) {
  const now = useNow()
  const x = (at: number): string => `${Math.round(placeOf(at - startedAt, endsAt - startedAt) * 1_000) / 10}%`
  const later = nextAt === undefined ? [] : expectAttempts(nextAt, rounds, startedAt)
  return (
    <svg class="four-hours" role="img" aria-label={describe(tried.length, nextAt, endsAt, now)} height="40">
      <line class="four-hours-rest" x1="0" x2="100%" y1="12" y2="12" />
      <line class="four-hours-past" x1="0" x2={x(now)} y1="12" y2="12" />
      {MARKS.map((minutes) => {
        const place = x(startedAt + minutes * 60_000)
        return (
          <g key={minutes} class={WIDE.includes(minutes) ? 'wide' : ''}>
            <line class="four-hours-mark" x1={place} x2={place} y1="18" y2="22" />
            <text class="axis-x" x={place} y="35">
              {minutes === 0 ? '0' : formatDuration(minutes * 60_000)}
            </text>
          </g>
        )
      })}
      {later.map((at) => (
        <circle key={at} class="four-hours-later" cx={x(at)} cy="12" r="2" />
      ))}
      {tried.map(({ at, ok }, index) => (
        <circle key={`${at} ${index}`} class={ok ? 'four-hours-ok' : 'four-hours-failed'} cx={x(at)} cy="12" r="4" />
      ))}
      {nextAt !== undefined && <circle class="four-hours-next" cx={x(nextAt)} cy="12" r="5" />}
    </svg>
  )
}

function describe(tried: number, nextAt: number | undefined, endsAt: number, now: number): string {
  const next = nextAt === undefined ? 'no more to come' : `the next one in ${formatDuration(Math.max(0, nextAt - now))}`
  return `${formatCount(tried, 'attempt')} so far, ${next}. The four hours end at ${formatTime(endsAt)}.`
}
