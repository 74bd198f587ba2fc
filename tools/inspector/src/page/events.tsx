/** The view "Events": the events of each receiver, how often they arrived, and whether they match their schemas. */

import type { EventLine, FieldLine, PartEvents } from '../wire.ts'
import { formatAgo, formatCount, formatNumber } from './format.ts'
import { Empty, Failure, State, Text, Time } from './parts.tsx'
import { type Box, drawSteps } from './scale.ts'
import { useAnswer, useNow } from './store.ts'

const REFRESH_MS = 5_000

export function EventsView() {
  const { answer: parts, error } = useAnswer<readonly PartEvents[]>('events', {}, { everyMs: REFRESH_MS })
  return (
    <div class="view">
      <h1>Events</h1>
      <Failure error={error} />
      {parts?.length === 0 && (
        <Empty>
          No receiver is watched, so no events arrive. Pass <code>receiver</code> to <code>createInspector</code>.
        </Empty>
      )}
      {parts?.map((part) => (
        <section key={part.part} class="stack" aria-label={`Events of ${part.part}`}>
          <h2 class="break">{part.part}</h2>
          {part.events.length === 0 ? <Empty>No message has arrived here yet.</Empty> : <EventTable {...part} />}
        </section>
      ))}
    </div>
  )
}

function EventTable({ events, others }: PartEvents) {
  const now = useNow()
  const hasSchemas = events.some(({ hasSchema }) => hasSchema !== undefined)
  return (
    <div class="panel">
      <table class="events">
        <thead>
          <tr>
            <th scope="col">Event</th>
            {hasSchemas && <th scope="col">Schema</th>}
            <th scope="col" class="number">
              Messages
            </th>
            <th scope="col" class="wide rates number" title="In the last 15 minutes">
              Per minute
            </th>
            <th scope="col" class="wide">
              First
            </th>
            <th scope="col" class="wide">
              Last
            </th>
          </tr>
        </thead>
        <tbody>
          {events.map((line) => (
            <tr key={`${line.type} ${line.event}`}>
              <th scope="row">
                <Name {...line} />
              </th>
              {hasSchemas && (
                <td>
                  <SchemaState {...line} />
                </td>
              )}
              <td class="number">{formatNumber(line.count)}</td>
              <td class="wide number">
                <Rate minutes={line.minutes} />
              </td>
              <td class="wide">
                <When at={line.firstAt} now={now} />
              </td>
              <td class="wide">
                <When at={line.lastAt} now={now} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {others > 0 && <p class="block muted">And {formatCount(others, 'message')} with events that are not listed.</p>}
    </div>
  )
}

function Name({ type, event, failed, fields, otherFields }: EventLine) {
  return (
    <>
      {event === undefined ? <span class="tag">{type}</span> : <Text value={event} />}
      {failed > 0 && (
        <>
          <p class="small state-failed">{formatCount(failed, 'does', 'do')} not match the schema</p>
          <ul class="small">
            {fields.map((field) => (
              <Field key={`${field.path} ${field.code}`} {...field} />
            ))}
            {otherFields > 0 && <li>{formatNumber(otherFields)} × other fields</li>}
          </ul>
        </>
      )}
    </>
  )
}

function Field({ path, code, count }: FieldLine) {
  return (
    <li>
      {formatNumber(count)} ×{' '}
      <span class="mono">
        <Text value={path} />
      </span>{' '}
      <span class="muted">{code}</span>
    </li>
  )
}

function SchemaState({ hasSchema, failed }: EventLine) {
  if (hasSchema === undefined) return <span class="muted">–</span>
  if (!hasSchema) return <State state="waiting">none</State>
  return failed > 0 ? <State state="failed">yes</State> : <State state="done">yes</State>
}

function Rate({ minutes }: Pick<EventLine, 'minutes'>) {
  const box: Box = { width: 60, height: 16, count: minutes.length, top: Math.max(1, ...minutes) }
  const rate = minutes.reduce((sum, count) => sum + count, 0) / minutes.length
  return (
    <span class="rate">
      <svg width={box.width} height={box.height} aria-hidden="true">
        <path d={drawSteps(minutes, box)} />
      </svg>
      {rate < 10 ? rate.toFixed(1) : formatNumber(Math.round(rate))}
    </span>
  )
}

function When({ at, now }: { readonly at: number | undefined; readonly now: number }) {
  return at === undefined ? <span class="muted">–</span> : <Time at={at}>{formatAgo(at, now)}</Time>
}
