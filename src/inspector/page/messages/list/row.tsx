/** One row of the list. */

import type { Row } from '../../../wire.ts'
import { formatCode, formatDuration, formatExactTime, formatInstant, formatTime } from '../../format.ts'
import { Countdown, StateName } from '../../parts.tsx'
import { Text } from '../../text.tsx'

interface RowProps {
  readonly row: Row
  readonly isWide: boolean
  /** Its place among the rows that are shown, and how many these are. */
  readonly index: number
  readonly count: number
  readonly top: number
  readonly isActive: boolean
  readonly onOpen: (row: Row) => void
}

/** The id of the element of a row. */
export function elementId(row: Row): string {
  return `row-${row.id}`
}

/** Draws a row: in columns, or in two lines where the list is narrow. */
export function RowLine({ row, isWide, index, count, top, isActive, onOpen }: RowProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list takes the keys
    <div
      id={elementId(row)}
      class="message-row"
      role="option"
      tabIndex={-1}
      aria-selected={isActive}
      aria-setsize={count}
      aria-posinset={index + 1}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => onOpen(row)}
    >
      {isWide ? <Columns row={row} /> : <Lines row={row} />}
    </div>
  )
}

/** The names of the columns. */
export const COLUMNS = ['State', 'Time', 'Part', 'Type', 'Name', 'User', 'Answer', 'Attempts', 'Retry', 'Took']

function Columns({ row }: { readonly row: Row }) {
  return (
    <>
      <StateName state={row.state} />
      <time title={formatInstant(row.at)}>{formatExactTime(row.at)}</time>
      <span class="cut">
        <Kind row={row} />
      </span>
      <span class="cut mono">{row.type ?? '–'}</span>
      <span class="cut strong">{row.name !== undefined && <Text value={row.name} />}</span>
      <span class="cut mono">{row.user !== undefined && <Text value={row.user} />}</span>
      <span class="cut">
        <Answer row={row} />
      </span>
      <span class="number">{row.attempts}</span>
      <span class="number">{row.retryAt !== undefined && <Countdown at={row.retryAt} />}</span>
      <span class="number muted">{row.durationMs !== undefined && formatDuration(row.durationMs)}</span>
    </>
  )
}

/** The same on two lines. */
function Lines({ row }: { readonly row: Row }) {
  return (
    <>
      <span class="line">
        <StateName state={row.state} />
        <span class="cut grow">
          <span class="mono">{row.type ?? 'not a message'}</span>{' '}
          <span class="strong">{row.name !== undefined && <Text value={row.name} />}</span>
        </span>
        <time title={formatInstant(row.at)}>{formatTime(row.at)}</time>
      </span>
      <span class="line muted">
        <span class="cut">
          <Answer row={row} />
        </span>
        <span class="cut grow">
          <Kind row={row} />
          {row.user !== undefined && (
            <>
              {' · '}
              <Text value={row.user} />
            </>
          )}
        </span>
        <span>
          {row.attempts > 1 && `${row.attempts} attempts`}
          {row.retryAt !== undefined && (
            <>
              {row.attempts > 1 && ' · '}
              <Countdown at={row.retryAt} />
            </>
          )}
        </span>
      </span>
    </>
  )
}

const ARROWS = { received: '→', sent: '←', collected: '⇉' }

function Kind({ row }: { readonly row: Row }) {
  return (
    <>
      <span aria-hidden="true">{ARROWS[row.kind]} </span>
      <span class="unseen">{row.kind} </span>
      <Text value={row.part} />
    </>
  )
}

function Answer({ row }: { readonly row: Row }) {
  return (
    <>
      {row.status !== undefined && <span class="mono">{row.status}</span>}
      {row.code !== undefined && <span class={`state-${row.state}`}> {formatCode(row.code, row.state)}</span>}
    </>
  )
}
