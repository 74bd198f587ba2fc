/** The view "Send": a message that is made here or comes from the list, and what its URLs answer. */

import { useState } from 'preact/hooks'
import type { MessageType } from '../../message/message.ts'
import type { Tampering } from '../../sender/tamper.ts'
import type { Detail, Send, Sent, Setup } from '../wire.ts'
import {
  type Draft,
  FIELDS,
  type Field,
  isJson,
  LABELS,
  type Made,
  readJson,
  sampleOf,
  TAMPERINGS,
  toDraft,
  toMessage,
  withType,
} from './draft.ts'
import { formatCount, formatDuration, formatExactTime } from './format.ts'
import { hrefOf, useRoute } from './navigation.ts'
import { AttemptAnswer, announce, Empty, Failure, ReadOnly, resultOf, State, Text } from './parts.tsx'
import { useAction, useAnswer, useStore } from './store.ts'

/** Shows the composer; `?from=12` begins with the body of that message. */
export function SendView() {
  const setup = useStore((state) => state.setup)
  const from = useRoute().query.get('from') ?? undefined
  const { answer, error } = useAnswer<Detail>(from && 'message', { id: from })
  if (setup === undefined) return null
  const isThere = from === undefined || answer?.row.id === Number(from)
  return (
    <div class="view">
      <h1>Send</h1>
      {setup.senders.length === 0 ? (
        <NoSender command={setup.command} />
      ) : (
        <>
          {from !== undefined && (
            <p class="muted">
              From <a href={hrefOf('messages', from)}>message {from}</a>.{' '}
              <a href={hrefOf('send')}>Begin with a sample</a> instead.
            </p>
          )}
          <Failure error={from && error} />
          {isThere && <Composer key={from} setup={setup} text={from && (answer?.body.text ?? '')} />}
        </>
      )}
    </div>
  )
}

function NoSender({ command }: { readonly command: Setup['command'] }) {
  return command === undefined ? (
    <Empty>
      Nothing to send with. Pass <code>senders</code> to <code>createInspector</code>: messages go to the URLs of these
      senders, and to no others.
    </Empty>
  ) : (
    <Empty>
      This page sends nothing. Run <code>npx hookline send track --to URL</code>.
    </Empty>
  )
}

interface ComposerProps {
  readonly setup: Setup
  /** JSON to begin with; undefined: a sample. */
  readonly text: string | undefined
}

const NO_FORM = 'The form takes one message of the seven types. Correct the JSON, or send it as it is.'

/** The draft is edited in the form, the text as JSON: each is made of the other when the reader switches. */
function Composer({ setup, text: given }: ComposerProps) {
  const [draft, setDraft] = useState(() => (given === undefined ? sampleOf('track') : toDraft(readJson(given).value)))
  const [text, setText] = useState(given ?? '')
  const [isForm, setForm] = useState(draft !== undefined)
  const [sender, setSender] = useState(setup.senders[0] ?? '')
  const [tamper, setTamper] = useState<Tampering | ''>('')
  const [sent, setSent] = useState<Sent>()
  const { isBusy, error, setError, post } = useAction()
  const made = isForm && draft !== undefined ? toMessage(draft) : undefined
  const json = made === undefined ? readJson(text) : undefined
  const isValid = made === undefined ? json?.error === undefined : Object.keys(made.errors).length === 0
  const mayWrite = setup.access === 'write'

  const showForm = (): void => {
    const next = toDraft(json?.value)
    setError(next === undefined ? NO_FORM : undefined)
    if (next === undefined) return
    setDraft(next)
    setForm(true)
  }
  const showJson = (): void => {
    setText(JSON.stringify(made?.message, null, 2))
    setForm(false)
  }
  const send = async (): Promise<void> => {
    if (isBusy || !isValid || !mayWrite) return
    setSent(undefined)
    const body: Send = { sender, message: made?.message ?? json?.value, ...(tamper !== '' && { tamper }) }
    const result = await post<Sent>('send', body)
    setSent(result)
    if (result !== undefined) announce(describeSent(result))
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        void send()
      }}
    >
      <div class="row">
        <button type="button" aria-pressed={isForm} onClick={showForm} disabled={isForm || !isValid}>
          Form
        </button>
        <button type="button" aria-pressed={!isForm} onClick={showJson} disabled={!isForm || !isValid}>
          JSON
        </button>
      </div>
      <div class="fields">
        {draft !== undefined && made !== undefined ? (
          <FormFields draft={draft} errors={made.errors} onChange={setDraft} />
        ) : (
          <JsonArea label="Message, as JSON" rows={18} value={text} error={json?.error} onChange={setText} />
        )}
      </div>
      <div class="fields">
        <label>
          Sender
          <select value={sender} onChange={(event) => setSender(event.currentTarget.value)}>
            {setup.senders.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Tampering
          <select
            value={tamper}
            aria-describedby="tamper-text"
            onChange={(event) => setTamper(event.currentTarget.value as Tampering | '')}
          >
            <option value="">none</option>
            {setup.tamperings.map((way) => (
              <option key={way}>{way}</option>
            ))}
          </select>
        </label>
        <p id="tamper-text" class="muted">
          {tamper === '' ? 'Signs the message, and sends it to the URLs of the sender.' : TAMPERINGS[tamper]}
        </p>
      </div>
      {mayWrite ? (
        <div class="row">
          <button type="button" class="primary" disabled={isBusy || !isValid} onClick={() => void send()}>
            {isBusy ? 'Sending…' : 'Send'}
          </button>
          <span class="muted">Ctrl+Enter</span>
        </div>
      ) : (
        <ReadOnly what="Sending needs" />
      )}
      <Failure error={error} />
      {sent !== undefined && <Result sent={sent} />}
    </form>
  )
}

interface FormFieldsProps {
  readonly draft: Draft
  readonly errors: Made['errors']
  onChange(draft: Draft): void
}

function FormFields({ draft, errors, onChange }: FormFieldsProps) {
  const others = Object.keys(draft.rest)
  const set = (field: Field, value: string): void => onChange({ ...draft, values: { ...draft.values, [field]: value } })
  return (
    <>
      <label>
        Type
        <select
          value={draft.type}
          onChange={(event) => onChange(withType(draft, event.currentTarget.value as MessageType))}
        >
          {Object.keys(FIELDS).map((type) => (
            <option key={type}>{type}</option>
          ))}
        </select>
      </label>
      {FIELDS[draft.type].map((field) =>
        isJson(field) ? (
          <JsonArea
            key={field}
            label={`${LABELS[field]}, as JSON`}
            rows={field === 'context' ? 3 : 6}
            value={draft.values[field] ?? ''}
            error={errors[field]}
            onChange={(value) => set(field, value)}
          />
        ) : (
          <label key={field}>
            {LABELS[field]}
            <input
              type="text"
              autocomplete="off"
              spellcheck={false}
              value={draft.values[field] ?? ''}
              onInput={(event) => set(field, event.currentTarget.value)}
            />
          </label>
        ),
      )}
      {others.length > 0 && (
        <p class="muted">
          Sent along, as the JSON shows: {others.slice(0, 8).join(', ')}
          {others.length > 8 && ` and ${others.length - 8} more`}.
        </p>
      )}
    </>
  )
}

interface JsonAreaProps {
  readonly label: string
  readonly rows: number
  readonly value: string
  readonly error: string | undefined
  onChange(value: string): void
}

function JsonArea({ label, rows, value, error, onChange }: JsonAreaProps) {
  const id = `field-${label.split(',')[0]}`
  return (
    <div class="field-wide">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        spellcheck={false}
        value={value}
        aria-invalid={error !== undefined}
        aria-describedby={error === undefined ? undefined : `${id}-error`}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {error !== undefined && (
        <p id={`${id}-error`} class="state-dead break" role="alert">
          {error}
        </p>
      )}
    </div>
  )
}

/** `Accepted: 1 of 2 attempts.` */
function describeSent({ attempts }: Sent): string {
  return `Accepted: ${attempts.filter(({ ok }) => ok).length} of ${formatCount(attempts.length, 'attempt')}.`
}

function Result({ sent }: { readonly sent: Sent }) {
  return (
    <section class="panel block" aria-label="Result">
      <b>{describeSent(sent)}</b>
      {sent.attempts.map((attempt, index) => (
        <div key={index}>
          <p class="row">
            <State state={attempt.ok ? 'done' : 'failed'}>
              <b>{resultOf(attempt)}</b>
            </State>
            <span class="mono break">
              <Text value={attempt.url} />
            </span>
            <span class="muted">
              {formatDuration(attempt.durationMs)}, at {formatExactTime(attempt.at)}
            </span>
          </p>
          <AttemptAnswer attempt={attempt} />
        </div>
      ))}
    </section>
  )
}
