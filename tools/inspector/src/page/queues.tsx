/** The view "Queues": a row for each queue. Open rows show plots, and the messages that wait for another attempt. */

import { useState } from 'preact/hooks'
import { RETRY_WINDOW_MS } from '../../../../src/internals.ts'
import type { Detail, Part, QueueStatus, Row, UrlLine } from '../wire.ts'
import { formatAgo, formatCount, formatDuration, formatNumber } from './format.ts'
import { FourHours } from './four-hours.tsx'
import { hrefOf } from './navigation.ts'
import { Ago, Countdown, type FactList, Facts, NextAttempt, NoQueue, State, Text, Time, toggle } from './parts.tsx'
import { Plots } from './plots.tsx'
import { useAnswer, useNow, useStore } from './store.ts'

/** If there are more queues than this, all rows are closed at first. The number is small, because each open row polls for its plots. */
const FEW = 3

export function QueuesView() {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const setup = useStore((state) => state.setup)
  const queues = useStore((state) => state.queues)
  if (setup === undefined) return null
  const parts = setup.parts.filter(({ hasQueue }) => hasQueue)
  return (
    <div class="view">
      <h1>Queues</h1>
      {parts.length === 0 ? (
        <NoQueue so="so no message waits" />
      ) : (
        <ul class="panel">
          {parts.map((part) => {
            const { name, kind } = part
            const status = queues.find((queue) => queue.part === name)
            const isOpen = parts.length <= FEW !== toggled.has(name)
            return (
              <li key={name} class="queue">
                <div class="queue-head">
                  <div class="row">
                    <h2>
                      <Toggle name={name} isOpen={isOpen} onToggle={() => setToggled(toggle(toggled, name))} />
                    </h2>
                    <span class="tag">{kind === 'receiver' ? 'inbox' : kind}</span>
                  </div>
                  <Facts class="numbers" facts={numbersOf(part, status)} />
                  <Counted status={status} />
                </div>
                {status?.urls !== undefined && <Urls urls={status.urls} />}
                {isOpen && (
                  <div class="queue-body">
                    <Plots {...part} />
                    {kind === 'destination' && <Retries part={name} />}
                  </div>
                )}
              </li>
            )
          })}
        </ul>
      )}
    </div>
  )
}

interface ToggleProps {
  readonly name: string
  readonly isOpen: boolean
  readonly onToggle: () => void
}

function Toggle({ name, isOpen, onToggle }: ToggleProps) {
  return (
    <button type="button" class="quiet" aria-expanded={isOpen} onClick={onToggle}>
      <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={isOpen ? 'M3 5h10l-5 6Z' : 'M5 3v10l6-5Z'} />
      </svg>
      {name}
    </button>
  )
}

function numbersOf({ name }: Part, status: QueueStatus | undefined): FactList {
  const known = status?.status === 'unavailable' ? undefined : status
  const number = (value: number | undefined): string => (value === undefined ? '–' : formatNumber(value))
  const dead = number(known?.deadLetters)
  const link = (
    <a class="state-dead" href={hrefOf('dead-letters', name)}>
      {dead}
    </a>
  )
  return [
    ['Waiting', number(known?.waiting)],
    ['Active', number(known?.active)],
    ['Retrying', number(known?.retrying)],
    ['Dead letters', known?.deadLetters ? link : dead],
    ['Oldest', known?.oldestDueAgeMs ? formatDuration(known.oldestDueAgeMs) : '–'],
  ]
}

const STATUSES = {
  ok: ['done', 'ok'],
  degraded: ['waiting', 'accepts no messages'],
  closing: ['refused', 'closing'],
  unavailable: ['dead', 'does not respond'],
} as const
const HELD = ['waiting', 'circuit open'] as const
const OFF = ['waiting', 'switched off'] as const
const PAUSED = ['waiting', 'paused'] as const
/** The age at which a count is stale. A count gets this old only if the engine of its queue does not respond. */
const STALE_MS = 30_000

function Counted({ status: queue }: { readonly status: QueueStatus | undefined }) {
  const now = useNow()
  if (queue === undefined) return <div class="muted">not counted yet</div>
  const { asOf, reason } = queue
  const isHeld = queue.status === 'degraded' && reason === undefined
  const isPaused = queue.isPaused && queue.status === 'ok'
  const [sign, text] = queue.isOff ? OFF : isHeld ? HELD : isPaused ? PAUSED : STATUSES[queue.status]
  const isStale = asOf !== undefined && now - asOf > STALE_MS
  return (
    <div>
      <State state={sign}>{text}</State>
      {reason !== undefined && (
        <p class="small break">
          <Text value={reason} />
        </p>
      )}
      {asOf !== undefined && (
        <Time at={asOf} class={`small ${isStale ? 'state-waiting' : 'muted'}`}>
          {isStale ? 'stale: ' : ''}counted {formatAgo(asOf, now)}
        </Time>
      )}
    </div>
  )
}

const CIRCUITS = {
  closed: ['done', 'circuit closed'],
  open: ['failed', 'circuit open'],
  half_open: ['waiting', 'circuit half-open'],
} as const

function Urls({ urls }: { readonly urls: readonly UrlLine[] }) {
  return (
    <ul class="urls" aria-label="URLs">
      {urls.map(({ url, circuit, openSince, probeAt, delivered, failed, lastFailure }) => {
        const [sign, text] = CIRCUITS[circuit]
        return (
          <li key={url} class="row">
            <State state={sign}>{text}</State>
            <span class="mono break">{url}</span>
            <span class="muted">
              {formatNumber(delivered)} delivered, {formatNumber(failed)} failed
            </span>
            {lastFailure !== undefined && (
              <span class="muted break">
                last failure <Ago at={lastFailure.at} />: <Text value={lastFailure.why} />
              </span>
            )}
            {circuit !== 'closed' && openSince !== undefined && (
              <span class="muted">
                opened <Ago at={openSince} />
              </span>
            )}
            {circuit === 'open' && probeAt !== undefined && (
              <span class="muted">
                next probe <Countdown at={probeAt} />
              </span>
            )}
          </li>
        )
      })}
    </ul>
  )
}

const MAX_RETRIES = 8
const LEGEND = [
  ['state-failed', 4, 'failed'],
  ['attempt-next', 5, 'next'],
  ['muted', 2, 'expected later, if these fail'],
] as const

function Retries({ part }: { readonly part: string }) {
  const rows = useStore((state) => state.rows)
    .filter((row) => row.part === part && row.kind === 'sent' && row.state === 'waiting' && row.attempts > 0)
    .sort((one, other) => (one.retryAt ?? 0) - (other.retryAt ?? 0))
  return (
    <section aria-label={`Retries of ${part}`} class="stack">
      <h2>Retries</h2>
      {rows.length === 0 ? (
        <p class="muted">No message is waiting for another attempt. A message is retried for four hours.</p>
      ) : (
        <>
          <ul class="row muted">
            {LEGEND.map(([name, radius, text]) => (
              <li key={name} class="row">
                <svg width="14" height="14" aria-hidden="true">
                  <circle class={name} cx="7" cy="7" r={radius} />
                </svg>
                {text}
              </li>
            ))}
          </ul>
          <ul class="panel">
            {rows.slice(0, MAX_RETRIES).map((row) => (
              <Retry key={row.id} row={row} />
            ))}
          </ul>
          {rows.length > MAX_RETRIES && (
            <p class="muted">And {formatCount(rows.length - MAX_RETRIES, 'more message', 'more')}.</p>
          )}
        </>
      )}
    </section>
  )
}

function Retry({ row }: { readonly row: Row }) {
  const { id, at, name, type, user, attempts } = row
  const { answer } = useAnswer<Detail>('message', { id }, { cause: attempts })
  const window = answer?.window ?? { startedAt: at, endsAt: at + RETRY_WINDOW_MS }
  return (
    <li class="retry">
      <div>
        <a class="cut" href={hrefOf('messages', String(id))}>
          <Text value={name ?? type ?? 'message'} />
        </a>
        <p class="cut">
          <Text value={user} />
        </p>
        <span class="muted">{formatCount(attempts, 'attempt')}, next</span> <NextAttempt row={row} />
      </div>
      <FourHours {...window} steps={answer?.steps ?? []} row={row} />
    </li>
  )
}
