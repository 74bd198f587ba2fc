/** One message: what it is, what happened to it, its body and its headers. */

import type { ComponentChildren, RefObject } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Detail, RequestLine, Row } from '../../wire.ts'
import { useAnswer } from '../answer.ts'
import { useStore } from '../connection.ts'
import { formatBytes, formatCode, formatCount, formatDay, formatExactTime, formatInstant } from '../format.ts'
import { FourHours } from '../four-hours.tsx'
import { Failure, StateName } from '../parts.tsx'
import { findTried } from '../retry-times.ts'
import { hrefOf } from '../route.ts'
import { Text } from '../text.tsx'
import { BodyView } from './body.tsx'
import { copyAsCurl, copyAsTest } from './copy.ts'
import { CopyButton } from './copy-button.tsx'
import { Timeline } from './timeline.tsx'

interface DetailProps {
  readonly id: number
  readonly headingRef: RefObject<HTMLHeadingElement>
  /** Whether it takes the focus. */
  readonly isEntered: boolean
  readonly onClose: () => void
}

/** Shows a message, and keeps it up to date. */
export function DetailView({ id, headingRef, isEntered, onClose }: DetailProps) {
  const row = useStore((state) => state.rows.find((each) => each.id === id))
  const { answer: detail, error } = useAnswer<Detail>('message', { id }, undefined, row)
  useEffect(() => {
    // On a narrow screen it covers the list.
    if (isEntered || matchMedia('(max-width: 979px)').matches) headingRef.current?.focus()
  }, [headingRef, isEntered])
  return (
    <section class="message" aria-labelledby="message-title">
      <header class="message-top">
        <h2 id="message-title" ref={headingRef} tabIndex={-1} class="break">
          {detail === undefined ? `Message ${id}` : <Title row={detail.row} />}
        </h2>
        <button type="button" class="quiet" title="Key: Escape" onClick={onClose}>
          Close
        </button>
      </header>
      {error !== undefined && <Failure>{error}</Failure>}
      {detail !== undefined && <Content detail={detail} />}
    </section>
  )
}

function Title({ row: { type, name } }: { readonly row: Row }) {
  return (
    <>
      <span class="mono">{type ?? 'not a message'}</span> {name !== undefined && <Text value={name} />}
    </>
  )
}

function Content({ detail }: { readonly detail: Detail }) {
  const { row, request, body, steps, window } = detail
  const [curl, test] = [copyAsCurl(detail), copyAsTest(detail)]
  const canSend = useStore(({ setup }) => setup?.access === 'write' && setup.senders.length > 0)
  return (
    <>
      <Facts row={row} />
      <div class="row">
        {curl !== undefined && <CopyButton label="Copy as curl" text={() => curl} />}
        {test !== undefined && <CopyButton label="Copy as test" text={() => test} />}
        {body.text !== undefined && <CopyButton label="Copy body" text={() => body.text ?? ''} />}
        {canSend && body.text !== undefined && (
          <a class="button" href={hrefOf('send', '', new URLSearchParams({ from: String(row.id) }))}>
            Send again
          </a>
        )}
      </div>
      <Section title="Timeline">
        {window !== undefined && (
          <FourHours {...window} tried={findTried(steps)} rounds={row.attempts} nextAt={row.retryAt} />
        )}
        <Timeline detail={detail} />
      </Section>
      <Section title="Body">
        <BodyView detail={detail} />
      </Section>
      {request !== undefined && (
        <Section title="Headers">
          <Headers request={request} />
        </Section>
      )}
    </>
  )
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="message-part">
      <h3>{title}</h3>
      {children}
    </section>
  )
}

function Facts({ row }: { readonly row: Row }) {
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['State', <StateName key="state" state={row.state} />],
    ['Answer', row.status],
    ['Reason', row.code === undefined ? undefined : formatCode(row.code, row.state)],
    ['User', row.user === undefined ? undefined : <Text key="user" value={row.user} />],
    [row.kind === 'sent' ? 'Sent by' : row.kind === 'received' ? 'Received by' : 'Collected by', row.part],
    ['At', <Instant key="at" at={row.at} />],
    ['Body', formatBytes(row.bytes)],
    ['Attempts', row.attempts],
    ['Number', row.id],
  ]
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value !== undefined && (
            <div key={name}>
              <dt>{name}</dt>
              <dd class="break">{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

function Instant({ at }: { readonly at: number }) {
  return <time title={formatInstant(at)}>{`${formatDay(at)}, ${formatExactTime(at)}`}</time>
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
              <td class="mono break">{value === null ? <span class="tag">hidden</span> : <Text value={value} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {hidden > 0 && (
        <p class="muted">{formatCount(hidden, 'header')} may hold a secret. Copies leave hidden headers out.</p>
      )}
    </>
  )
}
