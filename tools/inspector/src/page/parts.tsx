/** Components that several views use. */

import type { ComponentChildren, ComponentProps } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { AttemptLine, Row, RowState } from '../wire.ts'
import { splitText } from './codes.ts'
import { formatAgo, formatAttemptError, formatCountdown, formatInstant } from './format.ts'
import { isHeld } from './retry-times.ts'
import { useNow, useStore } from './store.ts'

/**
 * Shows untrusted text isolated from its surroundings. Characters that are invisible or change the direction of text become codes.
 *
 * @param lines Whether to keep line breaks and tabs instead of replacing them with codes.
 */
export function Text({ value, lines = false }: { readonly value: string | undefined; readonly lines?: boolean }) {
  if (value === undefined) return null
  return (
    <bdi>
      {splitText(value, lines).map((piece) =>
        typeof piece === 'string' ? piece : <span class="code">{piece.code}</span>,
      )}
    </bdi>
  )
}

/** Says what to do when there is nothing to show. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>
}

/** Says why no queue is shown, and what to do. `so` is the consequence of having no queue. */
export function NoQueue({ so }: { readonly so: string }) {
  const isListen = useStore(({ setup }) => setup?.command === 'listen')
  return isListen ? (
    <Empty>
      <code>hookline listen</code> has no queue, {so}: it answers each request at once. To inspect the queue of an app,
      run <code>npx hookline queue LOCATION --ui</code>.
    </Empty>
  ) : (
    <Empty>
      No queue is watched, {so}. Give the receiver an <code>inbox</code>, or pass <code>destinations</code> to{' '}
      <code>createInspector</code>.
    </Empty>
  )
}

/** Shows an error, or nothing if there is no error. */
export function Failure({ error }: { readonly error: string | undefined }) {
  return error === undefined ? null : (
    <p class="failure break" role="alert">
      {error}
    </p>
  )
}

/** Says that the user has only read access. `what` is the beginning of the sentence, such as `Redriving and dropping need`. */
export function ReadOnly({ what }: { readonly what: string }) {
  return (
    <p class="muted">
      {what} write access, but you have read access. The app decides this in <code>authorize</code>.
    </p>
  )
}

export const STATES: Readonly<Record<RowState, string>> = {
  done: 'Handled or delivered',
  ignored: 'Ignored',
  skipped: 'Skipped',
  waiting: 'Waiting',
  failed: 'Failed',
  refused: 'Refused',
  dead: 'Dead letter',
}
const DONE = { received: 'Handled', sent: 'Delivered', collected: 'Collected' }

export function nameState({ state, kind }: Row): string {
  return state === 'done' ? DONE[kind] : STATES[state]
}

export function RowStateName({ row }: { readonly row: Row }) {
  return <State state={row.state}>{nameState(row)}</State>
}

const SIGNS: Readonly<Record<RowState, string>> = {
  done: 'M6 1a5 5 0 1 1 0 10A5 5 0 1 1 6 1Z',
  ignored: 'M1 5h10v2H1Z',
  skipped: 'M1 1 6 6 1 11ZM6 1 11 6 6 11Z',
  waiting: 'M6 1a5 5 0 1 1 0 10A5 5 0 1 1 6 1Zm0 1.6v6.8a3.4 3.4 0 1 0 0-6.8Z',
  failed: 'M6 .8 11.6 11H.4Z',
  refused: 'M6 .4 11.6 6 6 11.6 .4 6Z',
  dead: 'M2.6 1 6 4.4 9.4 1 11 2.6 7.6 6 11 9.4 9.4 11 6 7.6 2.6 11 1 9.4 4.4 6 1 2.6Z',
}

export function Sign({ state }: { readonly state: RowState }) {
  return (
    <svg class={`sign state-${state}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SIGNS[state]} />
    </svg>
  )
}

export function State({ state, children }: { readonly state: RowState; readonly children: ComponentChildren }) {
  return (
    <span class="state">
      <Sign state={state} />
      {children}
    </span>
  )
}

/** Marks a copy that a replay created. Shows nothing for other messages. */
export function ReplayTag({ replayId }: Pick<Row, 'replayId'>) {
  return replayId === undefined ? null : (
    <span class="tag">
      replay <Text value={replayId} />
    </span>
  )
}

interface TimeProps {
  readonly at: number
  readonly class?: string
  readonly children: ComponentChildren
}

/** Shows `children`, which describe a time, and shows the exact time on hover. */
export function Time({ at, children, ...others }: TimeProps) {
  return (
    <time title={formatInstant(at)} {...others}>
      {children}
    </time>
  )
}

/** Counts down to a time: `00:42`. */
export function Countdown({ at }: { readonly at: number }) {
  const left = at - useNow(500)
  return <Time at={at}>{left > 0 ? formatCountdown(left) : 'due'}</Time>
}

/** Shows how long it is until the next attempt, or `held` if the attempt is due but no URL may be tried. */
export function NextAttempt({ row }: { readonly row: Row }) {
  const { part, retryAt } = row
  const isDue = useNow() >= (retryAt ?? 0)
  const queue = useStore(({ queues }) => queues.find((each) => each.part === part))
  if (retryAt === undefined) return null
  return isDue && isHeld(row, queue) ? <Time at={retryAt}>held</Time> : <Countdown at={retryAt} />
}

/** Shows how long ago something happened: `4 s ago`. */
export function Ago({ at }: { readonly at: number }) {
  return <Time at={at}>{formatAgo(at, useNow())}</Time>
}

/** Shows names and values in a grid. Omits undefined values. */
export function Facts({ class: name, facts }: { readonly class: string; readonly facts: FactList }) {
  const known = facts.filter(([, value]) => value !== undefined)
  return (
    <dl class={name}>
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="break">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

export type FactList = readonly (readonly [name: string, value: ComponentChildren])[]

/** Returns the ids with `id` added, or without `id` if they already contain it. */
export function toggle(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set(ids.has(id) ? [...ids].filter((each) => each !== id) : [...ids, id])
}

/** Announces a text to assistive technology, even if the text is the same as before. */
export let announce: (text: string) => void = () => {}

export function Announcer() {
  const [{ text, count }, setSaid] = useState({ text: '', count: 0 })
  useEffect(() => {
    announce = (next) => setSaid((said) => ({ text: next, count: said.count + 1 }))
  }, [])
  return (
    <div class="unseen" role="status" aria-live="polite">
      {text + '\u00a0'.repeat(count % 2)}
    </div>
  )
}

/** Returns the status of the answer to an attempt, or why there was no answer. */
export function resultOf({ status, error }: AttemptLine): string {
  return `${status ?? formatAttemptError(error ?? 'no response')}`
}

export function AttemptAnswer({ attempt: { reason, body } }: { readonly attempt: AttemptLine }) {
  return (
    <>
      {reason !== undefined && (
        <p class="muted">
          <Text value={reason} />
        </p>
      )}
      {body !== '' && <Excerpt text={body} />}
    </>
  )
}

/** Shows lines of untrusted text, if there are any. */
export function Excerpt({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null
  return (
    <pre class="excerpt">
      <Text value={text} lines />
    </pre>
  )
}

/** A text field with a label. */
export function Field({ label, ...input }: ComponentProps<'input'> & { readonly label: string }) {
  return (
    <label>
      {label}
      <input autocomplete="off" spellcheck={false} {...input} />
    </label>
  )
}

interface ChoiceProps extends ComponentProps<'select'> {
  readonly label: string
  readonly options: readonly (readonly [value: string, text: string])[]
}

/** A list of choices with a label. */
export function Choice({ label, options, ...select }: ChoiceProps) {
  return (
    <label>
      {label}
      <select {...select}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A button that copies a text. If there is no clipboard, the button shows the text, already selected. */
export function CopyButton({ label, text }: { readonly label: string; readonly text: string }) {
  const [isCopied, setIsCopied] = useState(false)
  const [isShown, setIsShown] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (!isCopied) return
    const timer = window.setTimeout(() => setIsCopied(false), 2_000)
    return () => window.clearTimeout(timer)
  }, [isCopied])
  useEffect(() => area.current?.select(), [isShown])

  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text) // This throws if there is no clipboard, as on a page over plain HTTP from another host.
      setIsCopied(true)
      announce('Copied')
    } catch {
      setIsShown(true)
      announce('Copy the selected text')
    }
  }
  return (
    <>
      <button ref={button} type="button" onClick={() => void copy()}>
        {isCopied ? 'Copied' : label}
      </button>
      {isShown && (
        <label class="to-copy">
          Copy this text
          <textarea
            ref={area}
            readOnly
            rows={6}
            value={text}
            onBlur={() => setIsShown(false)}
            onKeyDown={(event) => {
              if (event.key !== 'Escape') return
              event.stopPropagation()
              button.current?.focus()
            }}
          />
        </label>
      )}
    </>
  )
}
