/** The messages of a destination that wait for their next attempt, each on its four hours. */

import { RETRY_WINDOW_MS } from '../../../message/limits.ts'
import type { Detail, Row } from '../../wire.ts'
import { useAnswer } from '../answer.ts'
import { useStore } from '../connection.ts'
import { formatCount } from '../format.ts'
import { FourHours } from '../four-hours.tsx'
import { Countdown } from '../parts.tsx'
import { findTried } from '../retry-times.ts'
import { hrefOf } from '../route.ts'
import { Text } from '../text.tsx'

/** How many are drawn. */
const MOST = 8

/** Those of a list that wait for another attempt of a part, the next one first. */
function findRetrying(rows: readonly Row[], part: string): readonly Row[] {
  return rows
    .filter((row) => row.part === part && row.kind === 'sent' && row.state === 'waiting' && row.attempts > 0)
    .sort((one, other) => (one.retryAt ?? 0) - (other.retryAt ?? 0))
}

/** Draws the messages of a destination that wait for another attempt. */
export function Retries({ part }: { readonly part: string }) {
  const rows = findRetrying(
    useStore((state) => state.rows),
    part,
  )
  return (
    <section aria-label={`Retries of ${part}`} class="retries">
      <h2>Retries</h2>
      {rows.length === 0 ? (
        <p class="muted">No message waits for another attempt. A message is tried for four hours.</p>
      ) : (
        <>
          <ul class="legend muted">
            <Key className="four-hours-failed" radius={4} text="failed" />
            <Key className="four-hours-next" radius={5} text="next" />
            <Key className="four-hours-later" radius={2} text="later, if they fail: about then" />
          </ul>
          <ul class="panel">
            {rows.slice(0, MOST).map((row) => (
              <Retry key={row.id} row={row} />
            ))}
          </ul>
          {rows.length > MOST && <p class="muted">And {formatCount(rows.length - MOST, 'more message', 'more')}.</p>}
        </>
      )}
    </section>
  )
}

function Key({
  className,
  radius,
  text,
}: {
  readonly className: string
  readonly radius: number
  readonly text: string
}) {
  return (
    <li>
      <svg width="14" height="14" aria-hidden="true">
        <circle class={className} cx="7" cy="7" r={radius} />
      </svg>
      {text}
    </li>
  )
}

function Retry({ row }: { readonly row: Row }) {
  const { answer } = useAnswer<Detail>('message', { id: row.id }, undefined, row.attempts)
  const { startedAt, endsAt } = answer?.window ?? { startedAt: row.at, endsAt: row.at + RETRY_WINDOW_MS }
  return (
    <li class="retry">
      <div>
        <a href={hrefOf('messages', String(row.id))}>
          <Text value={row.name ?? row.type ?? 'message'} />
        </a>
        <span class="muted">{formatCount(row.attempts, 'attempt')}</span>
        {row.retryAt !== undefined && (
          <span>
            next <Countdown at={row.retryAt} />
          </span>
        )}
      </div>
      <FourHours
        startedAt={startedAt}
        endsAt={endsAt}
        tried={findTried(answer?.steps ?? [])}
        rounds={row.attempts}
        nextAt={row.retryAt}
      />
    </li>
  )
}
