/** The clock of the app: shows it and moves it. */

import { useState } from 'preact/hooks'
import type { Time, TimeChange } from '../../wire.ts'
import { post, showTime } from '../connection.ts'
import { formatInstant } from '../format.ts'
import { Empty, Failure, ReadOnly, useNow } from '../parts.tsx'

const STEPS = [
  { ms: 10_000, name: '+10 s' },
  { ms: 60_000, name: '+1 min' },
  { ms: 30 * 60_000, name: '+30 min' },
  { ms: 4 * 60 * 60_000, name: '+4 h' },
] as const

interface TimePanelProps {
  readonly time: Time | undefined
  readonly mayWrite: boolean
}

/** Shows the time by the clock of the app, and moves it forward. */
export function TimePanel({ time, mayWrite }: TimePanelProps) {
  const now = useNow(250)
  const [error, setError] = useState<string>()
  const [isAsking, setAsking] = useState(false)
  const change = async (body: TimeChange): Promise<void> => {
    setError(undefined)
    setAsking(true)
    try {
      showTime(await post<Time>('time', body))
    } catch (thrown) {
      setError((thrown as Error).message)
    }
    setAsking(false)
  }
  if (time === undefined) {
    return (
      <section class="panel block" aria-labelledby="time-title">
        <h2 id="time-title">Time</h2>
        <Empty>
          To move the clock, make the app's parts with one <code>manualClock()</code> of <code>hookline/testing</code>,
          and pass it to <code>createInspector</code>, too: <code>clock: manualClock()</code>.
        </Empty>
      </section>
    )
  }
  const isMoving = time.isMoving || isAsking
  return (
    <section class="panel block" aria-labelledby="time-title">
      <h2 id="time-title">Time</h2>
      <p class="clock mono">{formatInstant(Math.floor(now / 1_000) * 1_000).replace('.000', '')}</p>
      <p class="muted">
        The clock that the app's parts go by: moving it forward lets the real retries, timeouts and probes of that time
        happen now.
      </p>
      {mayWrite ? (
        <div class="row time-controls">
          <fieldset class="row">
            <legend class="unseen">Move forward</legend>
            {STEPS.map(({ ms, name }) => (
              <button key={ms} type="button" disabled={isMoving} onClick={() => void change({ advanceMs: ms })}>
                {name}
              </button>
            ))}
          </fieldset>
          <span role="status" class="muted">
            {isMoving ? 'Moving…' : ''}
          </span>
        </div>
      ) : (
        <ReadOnly what="Moving the clock needs" />
      )}
      {error !== undefined && <Failure>{error}</Failure>}
    </section>
  )
}
