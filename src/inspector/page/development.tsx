/** The view "Faults and time": what the next requests to a receiver are answered, and the clock of the app. */

import { useState } from 'preact/hooks'
import type { Fault, Time } from '../wire.ts'
import { formatDuration, formatInstant } from './format.ts'
import { Empty, Failure, ReadOnly } from './parts.tsx'
import { showTime, useAction, useNow, useStore } from './store.ts'

interface AccessProps {
  readonly mayWrite: boolean
}

export function DevelopmentView() {
  const setup = useStore((state) => state.setup)
  const time = useStore((state) => state.time)
  if (setup === undefined) return null
  const mayWrite = setup.access === 'write'
  const receivers = setup.parts.filter(({ kind }) => kind === 'receiver').map(({ name }) => name)
  return (
    <div class="view">
      <h1>Faults and time</h1>
      {!setup.development && time === undefined ? (
        <Empty>
          For development only: pass <code>development: true</code> to <code>createInspector</code>.
        </Empty>
      ) : (
        <>
          <Clock time={time} mayWrite={mayWrite} />
          <Faults receivers={receivers} mayWrite={mayWrite} />
        </>
      )}
    </div>
  )
}

const MOVES = { '+10 s': 10_000, '+1 min': 60_000, '+30 min': 30 * 60_000, '+4 h': 4 * 60 * 60_000 }

/** Shows the time by the clock of the app, and moves it forward. */
function Clock({ time, mayWrite }: AccessProps & { readonly time: Time | undefined }) {
  const now = useNow(250)
  const { isBusy, error, post } = useAction()
  const isMoving = time?.isMoving === true || isBusy
  const move = async (advanceMs: number): Promise<void> => {
    const moved = await post<Time>('time', { advanceMs })
    if (moved !== undefined) showTime(moved)
  }
  return (
    <section class="panel block" aria-labelledby="time-title">
      <h2 id="time-title">Time</h2>
      {time === undefined ? (
        <Empty>
          To move the clock, make the app's parts with one <code>manualClock()</code> of <code>hookline/testing</code>,
          and pass it to <code>createInspector</code>, too: <code>clock: manualClock()</code>.
        </Empty>
      ) : (
        <>
          <p class="clock mono">{formatInstant(now).replace(/\.\d+/, '')}</p>
          <p class="muted">
            The clock that the app's parts go by: moving it forward lets the real retries, timeouts and probes of that
            time happen now.
          </p>
          {mayWrite ? (
            <fieldset class="row">
              <legend class="unseen">Move forward</legend>
              {Object.entries(MOVES).map(([name, ms]) => (
                <button key={name} type="button" disabled={isMoving} onClick={() => void move(ms)}>
                  {name}
                </button>
              ))}
              <span role="status" class="muted">
                {isMoving ? 'Moving…' : ''}
              </span>
            </fieldset>
          ) : (
            <ReadOnly what="Moving the clock needs" />
          )}
          <Failure error={error} />
        </>
      )}
    </section>
  )
}

function Faults({ receivers, mayWrite }: AccessProps & { readonly receivers: readonly string[] }) {
  return (
    <section class="panel block" aria-labelledby="faults-title">
      <h2 id="faults-title">Faults</h2>
      {receivers.length === 0 ? (
        <Empty>
          No receiver is watched. Pass <code>receiver</code> to <code>createInspector</code> to answer its requests with
          faults.
        </Empty>
      ) : (
        <p class="muted">
          Answers the next requests in place of a receiver, to see what their sender does. A delay without a status
          comes before the normal answer.
        </p>
      )}
      {receivers.map((part) => (
        <ReceiverFault key={part} part={part} mayWrite={mayWrite} />
      ))}
      {receivers.length > 0 && !mayWrite && <ReadOnly what="Setting faults needs" />}
    </section>
  )
}

const STATUSES = [
  '503 Service Unavailable',
  '500 Internal Server Error',
  '429 Too Many Requests',
  '408 Request Timeout',
  '400 Bad Request',
  '401 Unauthorized',
  '404 Not Found',
  '410 Gone',
]

function ReceiverFault({ part, mayWrite }: AccessProps & { readonly part: string }) {
  const fault = useStore((state) => state.faults.find((each) => each.part === part))
  const [{ count, status, delayMs }, setFields] = useState({ count: '3', status: '503', delayMs: '' })
  const { error, setError, post } = useAction()
  const set = (name: string) => (event: { readonly currentTarget: { readonly value: string } }) => {
    const { value } = event.currentTarget
    setFields((before) => ({ ...before, [name]: value }))
  }
  const submit = (event: Event): void => {
    event.preventDefault()
    const body: Fault = {
      part,
      count: Number(count),
      ...(status !== '' && { status: Number(status) }),
      ...(Number(delayMs) !== 0 && { delayMs: Number(delayMs) }),
    }
    if (body.status === undefined && body.delayMs === undefined) setError('Choose a status, a delay or both.')
    else void post('faults', body)
  }
  return (
    <form class="fault" aria-label={`Fault of ${part}`} onSubmit={submit}>
      <div class="row">
        <h3>{part}</h3>
        <p role="status" class={fault === undefined ? 'muted' : 'state-waiting'}>
          {describeFault(fault)}
        </p>
      </div>
      {mayWrite && (
        <div class="row fields">
          <label>
            Requests
            <input type="number" required min={1} max={10_000} value={count} onInput={set('count')} />
          </label>
          <label>
            Status
            <select value={status} onChange={set('status')}>
              <option value="">normal answer</option>
              {STATUSES.map((name) => (
                <option key={name} value={name.slice(0, 3)}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label>
            Delay, ms
            <input type="number" min={0} max={60_000} placeholder="none" value={delayMs} onInput={set('delayMs')} />
          </label>
          <button type="submit" class="primary">
            Set
          </button>
          <button type="button" disabled={fault === undefined} onClick={() => void post('faults', { part, count: 0 })}>
            Clear
          </button>
        </div>
      )}
      <Failure error={error} />
    </form>
  )
}

/** `The next 3 requests are answered 503 after 2 s.` */
function describeFault(fault: Fault | undefined): string {
  if (fault === undefined) return 'Requests are answered normally.'
  const { count, status = 'normally', delayMs = 0 } = fault
  const which = count === 1 ? 'The next request is' : `The next ${count} requests are`
  return `${which} answered ${status}${delayMs > 0 ? ` after ${formatDuration(delayMs)}` : ''}.`
}
