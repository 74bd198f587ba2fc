/** One step of a message as words. */

import type { ComponentChildren } from 'preact'
import type { AttemptLine, ErrorLine, RunLine, Step } from '../../wire.ts'
import { formatBytes, formatCount, formatDuration, formatExactTime, formatLiteral } from '../format.ts'
import { AttemptAnswer, resultOf } from '../parts.tsx'
import { Text } from '../text.tsx'

/** What its mark on the line says. */
export type Tone = 'plain' | 'good' | 'bad' | 'waits'

/** A step as the timeline shows it. */
export interface Shown {
  readonly tone: Tone
  readonly title: ComponentChildren
  readonly content?: ComponentChildren
}

/** Says what a step was. */
export function showStep(step: Step): Shown {
  switch (step.what) {
    case 'arrived': {
      const title = `Arrived${step.isCopy ? ' again: a copy' : ''}`
      const from = step.remoteAddress === undefined ? '' : ` from ${step.remoteAddress}`
      return { tone: 'plain', title, content: <Muted>{formatBytes(step.bytes) + from}</Muted> }
    }
    case 'checked':
      return showCheck(step)
    case 'unchecked':
      return { tone: 'plain', title: 'Signature not checked: no secret was given' }
    case 'stored':
      return { tone: 'plain', title: 'Stored in the inbox', content: <Took ms={step.durationMs} /> }
    case 'handled':
    case 'failed':
      return showRuns(step)
    case 'answered': {
      const isGood = step.status < 400
      const content = step.error === undefined ? <Took ms={step.durationMs} /> : <ErrorText error={step.error} />
      return { tone: isGood ? 'plain' : 'bad', title: `Answered ${step.status}`, content }
    }
    case 'collected': {
      const refused = step.refused > 0 ? `, ${step.refused} refused` : ''
      const title = `Collected ${formatCount(step.accepted, 'call')}${refused}`
      const content = step.source !== undefined && <Muted>Source {step.source}</Muted>
      return { tone: step.refused > 0 ? 'bad' : 'good', title, content }
    }
    case 'queued':
      return { tone: 'plain', title: 'Queued' }
    case 'redriven':
      return { tone: 'waits', title: 'Redriven: it is tried again' }
    case 'dropped':
      return { tone: 'bad', title: 'Dropped' }
    case 'attempt':
      return showAttempt(step.attempt)
    case 'round':
      return showRound(step)
  }
}

function showCheck({ isVerified, secretIndex, source }: Extract<Step, { what: 'checked' }>): Shown {
  const of = source === undefined ? '' : `Source ${source}`
  if (!isVerified) return { tone: 'bad', title: 'Not verified: no signature covers it', content: <Muted>{of}</Muted> }
  const secret = secretIndex === undefined ? '' : `: secret ${secretIndex + 1} matched`
  return { tone: 'good', title: `Signature verified${secret}`, content: of !== '' && <Muted>{of}</Muted> }
}

function showRuns({
  what,
  attempt,
  durationMs,
  runs,
  error,
  next,
}: Extract<Step, { what: 'handled' | 'failed' }>): Shown {
  const isFailed = what === 'failed'
  const then =
    next === 'sender'
      ? 'Its sender was asked to send it again.'
      : next === 'dead_letter'
        ? 'It became a dead letter.'
        : next !== undefined && `Again at ${formatExactTime(next)}.`
  const content = (
    <>
      {runs.length === 0 && !isFailed && <Muted>No handler is registered for it.</Muted>}
      <ul>
        {runs.map((run, index) => (
          <Run key={index} run={run} />
        ))}
      </ul>
      {error !== undefined && (error.code !== 'handler_failed' || !runs.some((run) => run.error)) && (
        <ErrorText error={error} />
      )}
      {then && <Muted>{then}</Muted>}
    </>
  )
  const title = `${isFailed ? 'Handlers failed' : 'Handled'}${attempt > 1 ? `, attempt ${attempt}` : ''}`
  return { tone: isFailed ? 'bad' : 'good', title: `${title} in ${formatDuration(durationMs)}`, content }
}

function Run({ run: { on, name, durationMs, error } }: { readonly run: RunLine }) {
  return (
    <li>
      <span class={error === undefined ? 'state-done' : 'state-dead'}>{error === undefined ? '✓' : '✕'}</span>{' '}
      <code>
        <Text value={on} />
      </code>{' '}
      <Text value={name} /> <span class="muted">{formatDuration(durationMs)}</span>
      {error !== undefined && <ErrorText error={error} />}
    </li>
  )
}

function showAttempt(attempt: AttemptLine): Shown {
  const { url, durationMs, ok } = attempt
  const content = (
    <>
      <p class="mono break">
        <Text value={url} />
      </p>
      <AttemptAnswer attempt={attempt} />
    </>
  )
  return { tone: ok ? 'good' : 'bad', title: `Attempt: ${resultOf(attempt)} in ${formatDuration(durationMs)}`, content }
}

function showRound({ status, retryAt, reason }: Extract<Step, { what: 'round' }>): Shown {
  if (status === 'delivered') return { tone: 'good', title: 'Delivered' }
  const why = reason === undefined ? '' : `: ${formatLiteral(reason)}`
  if (status === 'failed') return { tone: 'bad', title: `Failed${why}` }
  return {
    tone: 'waits',
    title: `To be tried again${retryAt === undefined ? '' : ` at ${formatExactTime(retryAt)}`}${why}`,
  }
}

function ErrorText({ error: { code, message, stack } }: { readonly error: ErrorLine }) {
  return (
    <div class="error">
      <p class="break">
        <code>
          <Text value={code} />
        </code>{' '}
        <Text value={message} lines />
      </p>
      {stack !== undefined && (
        <details>
          <summary>Stack</summary>
          <pre>
            <Text value={stack} lines />
          </pre>
        </details>
      )}
    </div>
  )
}

function Muted({ children }: { readonly children: ComponentChildren }) {
  return <p class="muted break">{children}</p>
}

function Took({ ms }: { readonly ms: number }) {
  return <Muted>in {formatDuration(ms)}</Muted>
}
