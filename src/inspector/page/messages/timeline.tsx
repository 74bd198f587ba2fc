/** What happened to a message, step by step. */

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { CircuitLine, Detail, Explanation } from '../../wire.ts'
import { get, useStore } from '../connection.ts'
import { formatDuration, formatExactTime, formatInstant, formatLiteral } from '../format.ts'
import { Countdown, Failure, useNow } from '../parts.tsx'
import { findRemaining } from '../retry-times.ts'
import { hrefOf } from '../route.ts'
import { Text } from '../text.tsx'
import { showStep, type Tone } from './steps.tsx'

/** Shows the steps of a message, and what comes next. */
export function Timeline({ detail }: { readonly detail: Detail }) {
  const { steps, row } = detail
  const first = steps[0]?.at ?? row.at
  return (
    <ol class="timeline">
      {steps.map((step, index) => {
        const { tone, title, content } = showStep(step)
        return (
          <Item key={index} tone={tone} title={title} at={step.at} first={first}>
            {content}
          </Item>
        )
      })}
      {detail.canExplain && (
        <Item tone="bad" title="Why the signature was refused">
          <Reason id={row.id} />
        </Item>
      )}
      <End detail={detail} />
    </ol>
  )
}

interface ItemProps {
  readonly tone: Tone
  readonly title: ComponentChildren
  readonly at?: number
  readonly first?: number
  readonly children?: ComponentChildren
}

function Item({ tone, title, at, first = at, children }: ItemProps) {
  return (
    <li class={`tone-${tone}`}>
      <p class="step">
        <span class="step-title">{title}</span>
        {at !== undefined && (
          <time title={formatInstant(at)}>
            {first === undefined || at - first < 1 ? formatExactTime(at) : `+${formatDuration(at - first)}`}
          </time>
        )}
      </p>
      {children}
    </li>
  )
}

/** What comes after the steps. */
function End({ detail }: { readonly detail: Detail }) {
  const { row } = detail
  if (row.state === 'dead') {
    return (
      <Item tone="bad" title={<>Dead letter{row.code !== undefined && `: ${formatLiteral(row.code)}`}</>}>
        <p>
          It is not tried again by itself. <a href={hrefOf('dead-letters')}>Redrive or drop it</a>
        </p>
      </Item>
    )
  }
  return row.state === 'waiting' ? <Next detail={detail} /> : null
}

function Next({ detail: { row, steps } }: { readonly detail: Detail }) {
  const { part, retryAt } = row
  const isDue = useNow() >= (retryAt ?? 0)
  const circuits = useStore(({ queues }) => queues.find((queue) => queue.part === part)?.circuits)
  const { open, others } = findRemaining(circuits ?? [], steps)
  const isHeld = isDue && open.length > 0 && others === 0
  const next = retryAt !== undefined && <>Next attempt: {isHeld ? 'held' : <Countdown at={retryAt} />}</>
  return (
    <Item tone="waits" title={next || (isHeld ? 'Held' : 'Waiting, or at work')} {...(retryAt && { at: retryAt })}>
      {open.length > 0 && <OpenCircuits circuits={open} others={others} />}
    </Item>
  )
}

interface OpenCircuitsProps {
  readonly circuits: readonly CircuitLine[]
  readonly others: number
}

function OpenCircuits({ circuits, others }: OpenCircuitsProps) {
  return (
    <>
      <ul>
        {circuits.map(({ url, probeAt }) => (
          <li key={url} class="break">
            <span class="mono">{url}</span> circuit open
            {probeAt !== undefined && (
              <>
                , next probe <Countdown at={probeAt} />
              </>
            )}
          </li>
        ))}
      </ul>
      <p class="muted">
        Nothing else is posted there until a probe succeeds.
        {others > 0 && ` The other ${others === 1 ? 'URL is' : 'URLs are'} tried meanwhile.`}
      </p>
    </>
  )
}

/** Asks why the signature of a message was refused, and shows the answer. */
function Reason({ id }: { readonly id: number }) {
  const [message, setMessage] = useState<string | undefined>(undefined)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  useEffect(() => {
    get<Explanation>('explanation', { id }).then(
      (explanation) => setMessage(explanation.message),
      (error: Error) => setProblem(error.message),
    )
  }, [id])
  if (problem !== undefined) return <Failure>{problem}</Failure>
  return (
    <p class="reason break">
      {message === undefined ? 'Comparing it with the secrets…' : <Text value={message} lines />}
    </p>
  )
}
