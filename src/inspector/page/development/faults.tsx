/** Faults: what the next requests to a receiver are answered. */

import { useState } from 'preact/hooks'
import type { Fault } from '../../wire.ts'
import { post, useStore } from '../connection.ts'
import { Empty, Failure, ReadOnly } from '../parts.tsx'
import { describeFault, type FaultFields, readFault } from './fault.ts'

const STATUSES: Readonly<Record<string, string>> = {
  '500': 'Internal Server Error',
  '503': 'Service Unavailable',
  '429': 'Too Many Requests',
  '408': 'Request Timeout',
  '400': 'Bad Request',
  '401': 'Unauthorized',
  '404': 'Not Found',
  '410': 'Gone',
}

interface FaultsProps {
  readonly receivers: readonly string[]
  readonly mayWrite: boolean
}

/** A form for each receiver. */
export function Faults({ receivers, mayWrite }: FaultsProps) {
  return (
    <section class="panel block" aria-labelledby="faults-title">
      <h2 id="faults-title">Faults</h2>
      {receivers.length === 0 ? (
        <Empty>
          No receiver is watched. Pass <code>receiver</code> to <code>createInspector</code> to answer its requests with
          faults.
        </Empty>
      ) : (
        <p class="muted">
          Answers the next requests in place of a receiver, to see what their sender does. A delay without a status
          comes before the normal answer.
        </p>
      )}
      {receivers.map((part) => (
        <ReceiverFault key={part} part={part} mayWrite={mayWrite} />
      ))}
      {receivers.length > 0 && !mayWrite && <ReadOnly what="Setting faults needs" />}
    </section>
  )
}

function ReceiverFault({ part, mayWrite }: { readonly part: string; readonly mayWrite: boolean }) {
  const fault = useStore((state) => state.faults.find((each) => each.part === part))
  const [fields, setFields] = useState<FaultFields>({ count: '3', status: '503', delayMs: '' })
  const [error, setError] = useState<string>()
  const send = async (body: Fault | string): Promise<void> => {
    setError(typeof body === 'string' ? body : undefined)
    if (typeof body === 'string') return
    try {
      await post<Fault>('faults', body)
    } catch (thrown) {
      setError((thrown as Error).message)
    }
  }
  const set = (name: keyof FaultFields) => (event: { readonly currentTarget: { readonly value: string } }) =>
    setFields({ ...fields, [name]: event.currentTarget.value })
  return (
    <form
      class="fault"
      aria-label={`Fault of ${part}`}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void send(readFault(part, fields))
      }}
    >
      <div class="fault-head">
        <h3>{part}</h3>
        <p role="status" class={fault === undefined ? 'muted' : 'state-waiting'}>
          {describeFault(fault)}
        </p>
      </div>
      {mayWrite && (
        <div class="row fault-fields">
          <label>
            Requests
            <input type="number" min={1} max={10_000} value={fields.count} onInput={set('count')} />
          </label>
          <label>
            Status
            <select value={fields.status} onChange={set('status')}>
              <option value="">normal answer</option>
              {Object.entries(STATUSES).map(([status, name]) => (
                <option key={status} value={status}>
                  {status} {name}
                </option>
              ))}
            </select>
          </label>
          <label>
            Delay, ms
            <input
              type="number"
              min={0}
              max={60_000}
              step={100}
              placeholder="none"
              value={fields.delayMs}
              onInput={set('delayMs')}
            />
          </label>
          <button type="submit" class="primary">
            Set
          </button>
          <button type="button" disabled={fault === undefined} onClick={() => void send({ part, count: 0 })}>
            Clear
          </button>
        </div>
      )}
      {error !== undefined && <Failure>{error}</Failure>}
    </form>
  )
}
