/** What happened to a message, step by step. */

import type { ComponentChildren } from 'preact'
import type { Detail } from '../../wire-message.ts'
import { useStore } from '../connection.ts'
import { formatDuration, formatExactTime, formatInstant, formatLiteral } from '../format.ts'
import { Countdown, useNow } from '../parts.tsx'
import { hrefOf } from '../route.ts'
import { Reason } from './reason.tsx'
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
function End({ detail: { row } }: { readonly detail: Detail }) {
  if (row.state === 'dead') {
    return (
      <Item tone="bad" title={<>Dead letter{row.code !== undefined && `: ${formatLiteral(row.code)}`}</>}>
        <p>
          It is not tried again by itself. <a href={hrefOf('dead-letters')}>Redrive or drop it</a>
        </p>
      </Item>
    )
  }
  if (row.retryAt !== undefined) {
    return <Item tone="waits" title={<Next part={row.part} at={row.retryAt} />} at={row.retryAt} />
  }
  if (row.state === 'waiting') return <Item tone="waits" title="Waiting, or at work" />
  return null
}

function Next({ part, at }: { readonly part: string; readonly at: number }) {
  const isDue = useNow() >= at
  const isOpen = useStore(({ queues }) =>
    queues.some((queue) => queue.part === part && queue.circuits?.some(({ state }) => state === 'open')),
  )
  return <>Next attempt: {isDue && isOpen ? 'held: circuit open' : <Countdown at={at} />}</>
}
