/** Shows one message: its fields, its steps at each part, its body and its headers. */

import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AttemptLine, Body, Detail, ErrorLine, Explanation, RequestLine, Row, Step } from '../wire.ts'
import { BodyView } from './body.tsx'
import { copyAsCurl, copyAsTest } from './copy.ts'
import { type ActionName, ChangeDialog } from './dead-letters.tsx'
import {
  formatBytes,
  formatCode,
  formatCount,
  formatDay,
  formatDuration,
  formatExactTime,
  formatLiteral,
} from './format.ts'
import { FourHours } from './four-hours.tsx'
import { ReplayDialog } from './history.tsx'
import { describe, type Journey } from './journeys.ts'
import { hrefOf } from './navigation.ts'
import {
  AttemptAnswer,
  announce,
  CopyButton,
  Countdown,
  Excerpt,
  type FactList,
  Facts,
  Failure,
  NextAttempt,
  RowStateName,
  resultOf,
  Text,
  Time,
} from './parts.tsx'
import { foldRepeats } from './repeats.ts'
import { findRemaining, isHeld, type Remaining } from './retry-times.ts'
import { SendAgainDialog } from './send-again.tsx'
import { type Answered, useAnswer, useStore } from './store.ts'

interface MessageProps {
  /** The journey of the message; undefined if the message was not kept, or is no longer kept. */
  readonly journey: Journey | undefined
  readonly headingRef: RefObject<HTMLHeadingElement>
  readonly isEntered: boolean
  readonly onClose: () => void
}

export function MessageView({ journey, headingRef, isEntered, onClose }: MessageProps) {
  const hasRows = useStore((state) => state.hasRows)
  useEffect(() => {
    // The message gets the focus if a key opened the message, and always on a narrow screen, where the message covers the list.
    if (isEntered || matchMedia('(max-width: 979px)').matches) headingRef.current?.focus()
  }, [headingRef, isEntered])
  const { type = 'not a message', name } = journey === undefined ? { type: 'Message' } : describe(journey.rows)
  return (
    <section class="message" aria-labelledby="message-title">
      <header>
        <h2 id="message-title" ref={headingRef} tabIndex={-1} class="break">
          <span class="mono muted">{type}</span> <Text value={name} />
        </h2>
        <button type="button" class="quiet" title="Key: Escape" onClick={onClose}>
          Close
        </button>
      </header>
      {journey !== undefined && <Content journey={journey} />}
      {journey === undefined && hasRows && <Failure error="This message was not kept, or is no longer kept." />}
    </section>
  )
}

function useDetail(row: Row): Answered<Detail> {
  return useAnswer<Detail>('message', { id: row.id }, { cause: row })
}

interface DetailProps {
  readonly detail: Detail
}

const BY = { sent: 'Sent by', received: 'Received by', collected: 'Collected by' }

function Content({ journey: { rows, current } }: { readonly journey: Journey }) {
  const { answer: detail, error } = useDetail(current)
  if (detail === undefined) return <Failure error={error} />
  const { row, request, body } = detail
  const [curl, test] = [copyAsCurl(detail), copyAsTest(detail)]
  const facts: FactList = [
    ['State', <RowStateName key="state" row={row} />],
    ['Answer', row.status],
    ['Reason', row.code && formatCode(row.code, row.state)],
    ['User', row.user && <Text key="user" value={row.user} />],
    [BY[row.kind], row.part],
    ['At', <Time key="at" at={row.at}>{`${formatDay(row.at)}, ${formatExactTime(row.at)}`}</Time>],
    ['Body', formatBytes(row.bytes)],
    ['Attempts', row.attempts],
    ['Replay', row.replayId && <Text key="replay" value={row.replayId} />],
    ['Id', detail.deliveryId && <code key="id">{detail.deliveryId}</code>],
    ['Number', row.id],
  ]
  return (
    <>
      <Failure error={error} />
      {row.state === 'dead' && <LastError detail={detail} />}
      <Facts class="facts" facts={facts} />
      <div class="row">
        {curl !== undefined && <CopyButton label="Copy as curl" text={curl} />}
        {test !== undefined && <CopyButton label="Copy as test" text={test} />}
        {body.text !== undefined && <CopyButton label="Copy body" text={body.text} />}
        <Actions detail={detail} />
      </div>
      <div class="beside">
        <Section title="Timeline">
          {rows.length === 1 ? <Timeline detail={detail} /> : <Parts rows={rows} body={body} />}
        </Section>
        <Section title="Body">
          <BodyView detail={detail} />
        </Section>
      </div>
      {request !== undefined && (
        <Section title="Headers">
          <Headers request={request} />
        </Section>
      )}
    </>
  )
}

/** The maximum number of rows to show for each part, because a stranger may send many messages with the same id. */
const MAX_OF_PART = 5

/** Shows the parts that the message has passed through, with their steps. */
function Parts({ rows, body }: { readonly rows: readonly Row[]; readonly body: Body }) {
  const recordedAt = rows[0]?.kind === 'collected' ? readTimestamp(body) : undefined
  return (
    <>
      {recordedAt !== undefined && (
        <section class="stack" aria-label="client">
          <h4>client</h4>
          <ol class="timeline">
            <Item tone="plain" title="Recorded, by the client's clock" at={recordedAt} />
          </ol>
        </section>
      )}
      {[...Map.groupBy(rows, ({ kind, part }) => `${kind} ${part}`)].flatMap(([key, ofPart]) => [
        ...ofPart.slice(0, MAX_OF_PART).map((row) => <PartOfJourney key={row.id} row={row} />),
        ofPart.length > MAX_OF_PART && (
          <Note key={key}>And {formatCount(ofPart.length - MAX_OF_PART, 'more', 'more')} with this id.</Note>
        ),
      ])}
    </>
  )
}

function readTimestamp({ text = '' }: Body): number | undefined {
  const { timestamp, receivedAt } = readFields(text)
  const isOfClient = typeof timestamp === 'string' && timestamp !== receivedAt // If a message has no timestamp, the collector sets one.
  const at = isOfClient ? Date.parse(timestamp) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}

function readFields(text: string): { readonly timestamp?: unknown; readonly receivedAt?: unknown } {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

function PartOfJourney({ row }: { readonly row: Row }) {
  const { answer: detail, error } = useDetail(row)
  return (
    <section class="stack" aria-label={row.part}>
      <h4 class="row">
        <a href={hrefOf('messages', String(row.id))}>
          <Text value={row.part} />
        </a>{' '}
        <RowStateName row={row} />
      </h4>
      <Failure error={error} />
      {detail !== undefined && <Timeline detail={detail} />}
    </section>
  )
}

function Actions({ detail: { row, body, deliveryId } }: DetailProps) {
  const setup = useStore((state) => state.setup)
  const [isReplaying, setReplaying] = useState(false)
  const [isSending, setSending] = useState(false)
  if (setup?.access !== 'write') return null
  const hasHistory = setup.parts.some(({ name, hasHistory }) => hasHistory && name === row.part)
  const isLogged = (row.state === 'done' || row.state === 'ignored') && row.replayId === undefined
  const canReplay = hasHistory && deliveryId !== undefined && isLogged
  return (
    <>
      {setup.senders.length > 0 && body.text !== undefined && !row.isRefused && (
        <button type="button" onClick={() => setSending(true)}>
          Send again
        </button>
      )}
      {isSending && <SendAgainDialog id={row.id} senders={setup.senders} onClose={() => setSending(false)} />}
      {canReplay && (
        <button type="button" onClick={() => setReplaying(true)}>
          Replay
        </button>
      )}
      {canReplay && isReplaying && (
        <ReplayDialog request={{ part: row.part, ids: [deliveryId] }} onClose={() => setReplaying(false)} />
      )}
    </>
  )
}

/** Shows the last error of a dead letter, and the actions for the dead letter. */
function LastError({ detail: { row, steps, deliveryId, isStored } }: DetailProps) {
  const mayWrite = useStore(({ setup }) => setup?.access === 'write')
  const [action, setAction] = useState<ActionName>()
  const failed = steps.findLast((step): step is Runs => step.what === 'failed')
  const attempt = steps.findLast((step) => step.what === 'attempt')?.attempt
  const round = steps.findLast((step) => step.what === 'round')
  const error = failed?.runs.find((run) => run.error)?.error ?? failed?.error ?? round?.error
  const close = (done: string | undefined): void => {
    setAction(undefined)
    if (done !== undefined) announce(done)
  }
  return (
    <section class="stack" aria-label="Last error">
      {error !== undefined && <ErrorText error={error} />}
      {attempt !== undefined && (
        <div class="failure break">
          <b>{resultOf(attempt)}</b> <Text value={attempt.url} />
          <AttemptAnswer attempt={attempt} />
        </div>
      )}
      {mayWrite && isStored && deliveryId !== undefined && (
        <div class="row">
          <button type="button" onClick={() => setAction('redrive')}>
            Redrive
          </button>
          <button type="button" class="danger" onClick={() => setAction('drop')}>
            Drop
          </button>
        </div>
      )}
      {action !== undefined && deliveryId !== undefined && (
        <ChangeDialog action={action} part={row.part} scope={{ ids: [deliveryId] }} onClose={close} />
      )}
    </section>
  )
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="stack">
      <h3>{title}</h3>
      {children}
    </section>
  )
}

function Headers({ request: { method, path, headers } }: { readonly request: RequestLine }) {
  const hidden = headers.filter(([, value]) => value === null).length
  return (
    <>
      <p class="mono break">
        {method} <Text value={path} />
      </p>
      <table class="headers">
        <thead class="unseen">
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {headers.map(([name, value], index) => (
            <tr key={index}>
              <th scope="row" class="mono">
                <Text value={name} />
              </th>
              <td class="mono">{value === null ? <span class="tag">hidden</span> : <Text value={value} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {hidden > 0 && (
        <p class="muted">{formatCount(hidden, 'header')} may hold a secret. Copies leave out hidden headers.</p>
      )}
    </>
  )
}

function Items({ steps, first }: { readonly steps: readonly Step[]; readonly first: number | undefined }) {
  return steps.map((step, index) => <Item key={index} {...showStep(step)} at={step.at} first={first} />)
}

function Timeline({ detail }: DetailProps) {
  const { steps, row, canExplain, window } = detail
  const first = steps[0]?.at
  return (
    <>
      {window !== undefined && <FourHours {...window} steps={steps} row={row} />}
      <ol class="timeline">
        {foldRepeats(steps).map(({ steps, repeats }, index) =>
          repeats === undefined ? (
            <Items key={index} steps={steps} first={first} />
          ) : (
            <li key={index}>
              <details>
                <summary class="muted">{formatCount(repeats, 'more attempt')} with the same result</summary>
                <ol class="timeline">
                  <Items steps={steps} first={first} />
                </ol>
              </details>
            </li>
          ),
        )}
        {canExplain && (
          <Item tone="bad" title="Why the signature was refused">
            <Reason id={row.id} />
          </Item>
        )}
        {row.state === 'waiting' && <Next row={row} />}
        {row.state === 'dead' && (
          <Item tone="bad" title={`Dead letter${row.code === undefined ? '' : `: ${formatLiteral(row.code)}`}`}>
            <p>It is not retried automatically.</p>
          </Item>
        )}
      </ol>
    </>
  )
}

interface Shown {
  readonly tone: 'plain' | 'good' | 'bad' | 'waits'
  readonly title: ComponentChildren
  readonly children?: ComponentChildren
}

interface ItemProps extends Shown {
  readonly at?: number | undefined
  /** The time of the first step. Each later step shows the time since the first step. */
  readonly first?: number | undefined
}

function Item({ tone, title, at, first = at, children }: ItemProps) {
  return (
    <li class={`tone-${tone}`}>
      <p class="step">
        <span class="strong">{title}</span>
        {at !== undefined && first !== undefined && (
          <Time at={at} class="mono muted">
            {at - first < 1 ? formatExactTime(at) : `+${formatDuration(at - first)}`}
          </Time>
        )}
      </p>
      {children}
    </li>
  )
}

function showStep(step: Step): Shown {
  switch (step.what) {
    case 'arrived': {
      const from = step.remoteAddress === undefined ? '' : ` from ${step.remoteAddress}`
      const title = `Arrived${step.isCopy ? ' again: a copy' : ''}`
      return { tone: 'plain', title, children: <Note>{formatBytes(step.bytes) + from}</Note> }
    }
    case 'checked': {
      const { isVerified, hasHeader, secretIndex, source } = step
      const children = source !== undefined && <Note>Source {source}</Note>
      if (!isVerified) return { tone: 'bad', title: 'Not verified: no signature covers the message', children }
      const secret = secretIndex === undefined ? '' : `: secret ${secretIndex + 1} matched`
      return { tone: 'good', title: `${hasHeader ? 'Header' : 'Signature'} verified${secret}`, children }
    }
    case 'unchecked':
      return { tone: 'plain', title: 'Signature not checked: no secret was given' }
    case 'stored':
      return { tone: 'plain', title: 'Stored in the inbox', children: <Took ms={step.durationMs} /> }
    case 'handled':
    case 'failed':
      return showRuns(step)
    case 'ignored':
      return { tone: 'waits', title: 'Ignored', children: <Note>No handler matches it.</Note> }
    case 'skipped':
      return { tone: 'waits', title: 'Skipped', children: <Note>{SKIPS[step.reason]}</Note> }
    case 'answered': {
      const { status, durationMs, error } = step
      const children = error === undefined ? <Took ms={durationMs} /> : <ErrorText error={error} />
      return { tone: status < 400 ? 'plain' : 'bad', title: `Answered ${status}`, children }
    }
    case 'collected': {
      const { accepted, refused, source } = step
      const title = `Collected ${formatCount(accepted, 'call')}${refused > 0 ? `, ${refused} refused` : ''}`
      const children = source !== undefined && <Note>Source {source}</Note>
      return { tone: refused > 0 ? 'bad' : 'good', title, children }
    }
    case 'queued':
      return { tone: 'plain', title: 'Queued' }
    case 'redriven':
      return { tone: 'waits', title: 'Redriven: it will be tried again' }
    case 'dropped':
      return { tone: 'bad', title: 'Dropped' }
    case 'attempt':
      return showAttempt(step.attempt)
    case 'round': {
      const { status, retryAt, reason, error } = step
      if (status === 'delivered') return { tone: 'good', title: 'Delivered' }
      const why = reason === undefined ? '' : `: ${formatLiteral(reason)}`
      if (status === 'failed')
        return { tone: 'bad', title: `Failed${why}`, children: error && <ErrorText error={error} /> }
      const at = retryAt === undefined ? '' : ` at ${formatExactTime(retryAt)}`
      return { tone: 'waits', title: `To be tried again${at}${why}` }
    }
  }
}

const SKIPS = {
  switched_off: 'Its destination is switched off.',
  not_selected: 'Its integrations exclude webhooks.',
  historical: 'It is older than the messages that its destination sends.',
  filtered: 'A filter excludes it.',
}
const THEN = { sender: 'Its sender was asked to send it again.', dead_letter: 'It became a dead letter.' }

type Runs = Extract<Step, { what: 'handled' | 'failed' }>

function showRuns(step: Runs): Shown {
  const { what, attempt, durationMs, runs, error, next } = step
  const isFailed = what === 'failed'
  const then = typeof next === 'number' ? `Next attempt at ${formatExactTime(next)}.` : next && THEN[next]
  const isOfRun = error?.code === 'handler_failed' && runs.some((run) => run.error)
  const children = (
    <>
      <ul>
        {runs.map(({ on, name, durationMs, error }, index) => (
          <li key={index}>
            <span class={error === undefined ? 'state-done' : 'state-dead'}>{error === undefined ? '✓' : '✕'}</span>{' '}
            <code>
              <Text value={on} />
            </code>{' '}
            <Text value={name} /> <span class="muted">{formatDuration(durationMs)}</span>
            {error !== undefined && <ErrorText error={error} />}
          </li>
        ))}
      </ul>
      {error !== undefined && !isOfRun && <ErrorText error={error} />}
      {then !== undefined && <Note>{then}</Note>}
    </>
  )
  const title = `${isFailed ? 'Handlers failed' : 'Handled'}${attempt > 1 ? `, attempt ${attempt}` : ''}`
  return { tone: isFailed ? 'bad' : 'good', title: `${title} in ${formatDuration(durationMs)}`, children }
}

function showAttempt(attempt: AttemptLine): Shown {
  const { url, durationMs, ok } = attempt
  const children = (
    <>
      <p class="mono break">
        <Text value={url} />
      </p>
      <AttemptAnswer attempt={attempt} />
    </>
  )
  const title = `Attempt: ${resultOf(attempt)} in ${formatDuration(durationMs)}`
  return { tone: ok ? 'good' : 'bad', title, children }
}

function ErrorText({ error: { code, message, stack } }: { readonly error: ErrorLine }) {
  return (
    <div class="failure break">
      <code>
        <Text value={code} />
      </code>{' '}
      <Text value={message} lines />
      {stack !== undefined && (
        <details>
          <summary>Stack</summary>
          <Excerpt text={stack} />
        </details>
      )}
    </div>
  )
}

function Note({ children }: { readonly children: ComponentChildren }) {
  return <p class="muted break">{children}</p>
}

function Took({ ms }: { readonly ms: number }) {
  return <Note>in {formatDuration(ms)}</Note>
}

function Next({ row }: { readonly row: Row }) {
  const queue = useStore(({ queues }) => queues.find(({ part }) => part === row.part))
  const remaining = findRemaining(queue?.urls ?? [], row)
  const next = (
    <>
      Next attempt: <NextAttempt row={row} />
    </>
  )
  const undue = isHeld(row, queue) ? 'Held' : 'Waiting, or in progress'
  return (
    <Item tone="waits" title={row.retryAt === undefined ? undue : next} at={row.retryAt}>
      {queue?.isOff && <Note>Its destination is switched off.</Note>}
      {remaining.open.length > 0 && <OpenCircuits {...remaining} />}
    </Item>
  )
}

function OpenCircuits({ open, others }: Remaining) {
  return (
    <>
      <ul>
        {open.map(({ url, probeAt }) => (
          <li key={url} class="break">
            <span class="mono">{url}</span> circuit open
            {probeAt !== undefined && ', next probe '}
            {probeAt !== undefined && <Countdown at={probeAt} />}
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

function Reason({ id }: { readonly id: number }) {
  const { answer, error } = useAnswer<Explanation>('explanation', { id })
  if (error !== undefined) return <Failure error={error} />
  return (
    <p class="reason break">
      {answer === undefined ? 'Comparing the signature with the secrets…' : <Text value={answer.message} lines />}
    </p>
  )
}
