/** The view "Queues": a row for each queue, and the plots of the one that is open. */

import type { ComponentChild } from 'preact'
import type { CircuitLine, Part, QueueStatus } from '../../wire.ts'
import { useStore } from '../connection.ts'
import { formatAgo, formatDuration, formatInstant, formatNumber } from '../format.ts'
import { Ago, Countdown, Empty, NoQueue, StateSign, useNow } from '../parts.tsx'
import { hrefOf, useRoute } from '../route.ts'
import { Plots } from './plots.tsx'
import { Retries } from './retries.tsx'
import './queues.css'

/** Shows the queues, and the plots of the chosen part. */
export function QueuesView() {
  const setup = useStore((state) => state.setup)
  const queues = useStore((state) => state.queues)
  const { rest } = useRoute()
  if (setup === undefined) return null
  const parts = setup.parts.filter(({ hasQueue }) => hasQueue)
  return (
    <div class="view">
      <h1>Queues</h1>
      {parts.length === 0 ? (
        <Empty>
          <NoQueue />
        </Empty>
      ) : (
        <ul class="panel queues">
          {parts.map((part) => (
            <QueueItem
              key={part.name}
              part={part}
              status={queues.find((queue) => queue.part === part.name)}
              isOpen={parts.length === 1 || encodeURIComponent(part.name) === rest}
              isOnly={parts.length === 1}
            />
          ))}
        </ul>
      )}
    </div>
  )
}

const KINDS: Readonly<Record<Part['kind'], string>> = {
  receiver: 'inbox',
  destination: 'destination',
  collector: 'collector',
  queue: 'queue',
}

interface QueueItemProps {
  readonly part: Part
  readonly status: QueueStatus | undefined
  readonly isOpen: boolean
  readonly isOnly: boolean
}

function QueueItem({ part, status, isOpen, isOnly }: QueueItemProps) {
  return (
    <li class="queue">
      <div class="queue-head">
        <div class="queue-name">
          <h2>
            {isOnly ? (
              part.name
            ) : (
              <a href={isOpen ? hrefOf('queues') : hrefOf('queues', encodeURIComponent(part.name))}>
                <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
                  <path d={isOpen ? 'M3 5h10l-5 6Z' : 'M5 3v10l6-5Z'} />
                </svg>
                {part.name}
                <span class="unseen">{isOpen ? ', close' : ', open'}</span>
              </a>
            )}
          </h2>
          <span class="tag">{KINDS[part.kind]}</span>
        </div>
        <Numbers part={part} status={status} />
        <Counted status={status} />
      </div>
      {status?.circuits !== undefined && <Circuits circuits={status.circuits} />}
      {isOpen && (
        <div class="queue-body">
          <Plots part={part.name} />
          {part.kind === 'destination' && <Retries part={part.name} />}
        </div>
      )}
    </li>
  )
}

function Numbers({ part, status }: Pick<QueueItemProps, 'part' | 'status'>) {
  const known = status === undefined || status.status === 'unavailable' ? undefined : status
  const number = (value: number | undefined): string => (value === undefined ? '–' : formatNumber(value))
  const hasDead = known !== undefined && known.deadLetters > 0
  const columns: readonly (readonly [string, ComponentChild])[] = [
    ['Waiting', number(known?.waiting)],
    ['Active', number(known?.active)],
    ['Retrying', number(known?.retrying)],
    [
      'Dead',
      hasDead ? (
        <a class="state-dead" href={hrefOf('dead-letters', encodeURIComponent(part.name))}>
          {number(known.deadLetters)}
          <span class="unseen"> dead letters</span>
        </a>
      ) : (
        number(known?.deadLetters)
      ),
    ],
    ['Oldest', known === undefined || known.oldestDueAgeMs === 0 ? '–' : formatDuration(known.oldestDueAgeMs)],
  ]
  return (
    <dl class="numbers">
      {columns.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const SIGNS = { ok: 'done', degraded: 'waiting', closing: 'refused', unavailable: 'dead' } as const
const STATUSES = { ok: 'ok', degraded: 'has dead letters', closing: 'closing', unavailable: 'does not answer' } as const
/** A count is older than this only when its engine did not answer. */
const STALE_MS = 30_000

function Counted({ status }: Pick<QueueItemProps, 'status'>) {
  const now = useNow()
  if (status === undefined) return <div class="counted muted">not counted yet</div>
  const { asOf } = status
  const isStale = asOf !== undefined && now - asOf > STALE_MS
  return (
    <div class="counted">
      <span class="state-name">
        <StateSign state={SIGNS[status.status]} />
        {STATUSES[status.status]}
      </span>
      {asOf !== undefined && (
        <time class={isStale ? 'state-waiting' : 'muted'} title={formatInstant(asOf)}>
          {isStale ? 'stale: ' : ''}counted {formatAgo(asOf, now)}
        </time>
      )}
    </div>
  )
}

const CIRCUIT_SIGNS = { closed: 'done', open: 'failed', half_open: 'waiting' } as const
const CIRCUITS = { closed: 'circuit closed', open: 'circuit open', half_open: 'circuit half-open' } as const

function Circuits({ circuits }: { readonly circuits: readonly CircuitLine[] }) {
  return (
    <ul class="circuits" aria-label="Circuits">
      {circuits.map(({ url, state, openSince, probeAt }) => (
        <li key={url}>
          <span class="state-name">
            <StateSign state={CIRCUIT_SIGNS[state]} />
            {CIRCUITS[state]}
          </span>
          <span class="mono">{url}</span>
          {state !== 'closed' && openSince !== undefined && (
            <span class="muted">
              opened <Ago at={openSince} />
            </span>
          )}
          {state === 'open' && probeAt !== undefined && (
            <span class="muted">
              next probe <Countdown at={probeAt} />
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}
