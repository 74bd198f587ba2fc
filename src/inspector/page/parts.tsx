/** Small components that several views use. */

import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AttemptLine, RowState } from '../wire.ts'
import { now, useStore } from './connection.ts'
import { formatAgo, formatAttemptError, formatCountdown, formatInstant } from './format.ts'
import { Text } from './text.tsx'

/** What to do where there is nothing to show. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>
}

/** Says why no queue is shown, and what to do. `so`: what follows from that. */
export function NoQueue({ so = 'so no message waits' }: { readonly so?: string }) {
  if (useStore(({ setup }) => setup?.command === 'listen')) {
    return (
      <>
        <code>hookline listen</code> has no queue, {so}: it answers each request at once. To look into the queue of an
        app, run <code>npx hookline queue LOCATION --ui</code>.
      </>
    )
  }
  return (
    <>
      No queue is watched, {so}. Give the receiver an <code>inbox</code>, or pass <code>destinations</code> to{' '}
      <code>createInspector</code>.
    </>
  )
}

/** What went wrong. */
export function Failure({ children }: { readonly children: ComponentChildren }) {
  return (
    <p class="failure" role="alert">
      {children}
    </p>
  )
}

/** The sign of a state: a shape of its own for each, in its colour. Say the state in words beside it. */
export function StateSign({ state }: { readonly state: RowState }) {
  return (
    <svg class={`sign state-${state}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SIGNS[state]} />
    </svg>
  )
}

const SIGNS: Readonly<Record<RowState, string>> = {
  done: 'M6 1a5 5 0 1 1 0 10A5 5 0 1 1 6 1Z',
  waiting: 'M6 1a5 5 0 1 1 0 10A5 5 0 1 1 6 1Zm0 1.6v6.8a3.4 3.4 0 1 0 0-6.8Z',
  failed: 'M6 .8 11.6 11H.4Z',
  refused: 'M6 .4 11.6 6 6 11.6 .4 6Z',
  dead: 'M2.6 1 6 4.4 9.4 1 11 2.6 7.6 6 11 9.4 9.4 11 6 7.6 2.6 11 1 9.4 4.4 6 1 2.6Z',
}

/** The words of the states. */
export const STATES: Readonly<Record<RowState, string>> = {
  done: 'Done',
  waiting: 'Waiting',
  failed: 'Failed',
  refused: 'Refused',
  dead: 'Dead',
}

/** A state: its sign and its word. */
export function StateName({ state }: { readonly state: RowState }) {
  return (
    <span class="state-name">
      <StateSign state={state} />
      {STATES[state]}
    </span>
  )
}

/** The time by the clock of the app; renders the component again each `everyMs`. */
export function useNow(everyMs = 1_000): number {
  const [, setTick] = useState(0)
  useEffect(() => {
    const timer = window.setInterval(() => setTick((tick) => tick + 1), everyMs)
    return () => window.clearInterval(timer)
  }, [everyMs])
  return now()
}

/** How long until a time, counting down: `00:42`. */
export function Countdown({ at }: { readonly at: number }) {
  const left = at - useNow(500)
  return <time title={formatInstant(at)}>{left > 0 ? formatCountdown(left) : 'due'}</time>
}

/** How long ago a time was: `4 s ago`. */
export function Ago({ at }: { readonly at: number }) {
  return <time title={formatInstant(at)}>{formatAgo(at, useNow())}</time>
}

let say: (text: string) => void = () => {}

/** Announces a text politely. The same text again is announced again. */
export function announce(text: string): void {
  say(text)
}

/** The live region. The shell holds one. */
export function Announcer() {
  const [{ text, count }, setSaid] = useState({ text: '', count: 0 })
  useEffect(() => {
    say = (next) => setSaid((said) => ({ text: next, count: said.count + 1 }))
  }, [])
  return (
    <div class="unseen" role="status" aria-live="polite">
      {text}
      {count % 2 === 1 ? '\u00a0' : ''}
    </div>
  )
}

/** The status that a URL answered, or why it did not. */
export function resultOf({ status, error }: AttemptLine): string {
  return `${status ?? formatAttemptError(error ?? 'no response')}`
}

/** Why an attempt failed, and the beginning of the answer. */
export function AttemptAnswer({ attempt: { reason, body } }: { readonly attempt: AttemptLine }) {
  return (
    <>
      {reason !== undefined && (
        <p class="muted">
          <Text value={reason} />
        </p>
      )}
      {body !== '' && (
        <pre class="excerpt">
          <Text value={body} lines />
        </pre>
      )}
    </>
  )
}

/** For who may only look. `what`: `Redriving and dropping need`. */
export function ReadOnly({ what }: { readonly what: string }) {
  return (
    <p class="muted">
      {what} write access: yours is read. The app decides that in <code>authorize</code>.
    </p>
  )
}
