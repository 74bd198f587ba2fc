/** Composes a message, from a form or as JSON, and sends it. */

import { useState } from 'preact/hooks'
import type { MessageType } from '../../../message/message.ts'
import type { Tampering } from '../../../sender/tamper.ts'
import type { Send, Sent, Setup } from '../../wire.ts'
import { post } from '../connection.ts'
import { announce, Failure, ReadOnly } from '../parts.tsx'
import { type Field, readJson, sampleOf, TAMPERINGS, toDraft, toMessage, withType } from './draft.ts'
import { FormFields, JsonArea } from './fields.tsx'
import { describeSent, Result } from './result.tsx'

interface ComposerProps {
  readonly setup: Setup
  /** JSON to begin with; undefined: a sample. */
  readonly text: string | undefined
}

const NO_FORM = 'The form takes one message of the seven types. Correct the JSON, or send it as it is.'

/** The draft is edited in the form, the text as JSON: each is made of the other when the reader switches. */
export function Composer({ setup, text: given }: ComposerProps) {
  const [draft, setDraft] = useState(() => (given === undefined ? sampleOf('track') : toDraft(readJson(given).value)))
  const [text, setText] = useState(given ?? '')
  const [isForm, setForm] = useState(draft !== undefined)
  const [sender, setSender] = useState(setup.senders[0] ?? '')
  const [tamper, setTamper] = useState<Tampering | ''>('')
  const [error, setError] = useState<string>()
  const [sent, setSent] = useState<Sent>()
  const [isSending, setSending] = useState(false)
  const made = isForm && draft !== undefined ? toMessage(draft) : undefined
  const json = made === undefined ? readJson(text) : undefined
  const isValid = made === undefined ? json?.error === undefined : Object.keys(made.errors).length === 0
  const mayWrite = setup.access === 'write'

  const showForm = (): void => {
    const next = isForm ? draft : toDraft(json?.value)
    setError(next === undefined ? NO_FORM : undefined)
    if (next === undefined) return
    setDraft(next)
    setForm(true)
  }
  const showJson = (): void => {
    if (made === undefined) return
    setText(JSON.stringify(made.message, null, 2))
    setForm(false)
  }
  const changeType = (type: MessageType): void => {
    if (draft !== undefined) setDraft(withType(draft, type))
  }
  const change = (field: Field, value: string): void => {
    setDraft((before) => before && { ...before, values: { ...before.values, [field]: value } })
  }
  const send = async (): Promise<void> => {
    if (isSending || !isValid || !mayWrite) return
    setSending(true)
    setError(undefined)
    setSent(undefined)
    try {
      const body: Send = { sender, message: made?.message ?? json?.value, ...(tamper !== '' && { tamper }) }
      const result = await post<Sent>('send', body)
      setSent(result)
      announce(describeSent(result))
    } catch (thrown) {
      setError((thrown as Error).message)
    }
    setSending(false)
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
        <button type="button" aria-pressed={isForm} onClick={showForm} disabled={!isForm && !isValid}>
          Form
        </button>
        <button type="button" aria-pressed={!isForm} onClick={showJson} disabled={isForm && !isValid}>
          JSON
        </button>
      </div>
      <div class="send-fields">
        {draft !== undefined && made !== undefined ? (
          <FormFields draft={draft} errors={made.errors} onChange={change} onType={changeType} />
        ) : (
          <JsonArea label="Message, as JSON" rows={18} value={text} error={json?.error} onChange={setText} />
        )}
      </div>
      <div class="send-fields">
        <label class="field">
          Sender
          <select value={sender} onChange={(event) => setSender(event.currentTarget.value)}>
            {setup.senders.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="field">
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
          <button type="button" class="primary" disabled={isSending || !isValid} onClick={() => void send()}>
            {isSending ? 'Sending…' : 'Send'}
          </button>
          <span class="muted">Ctrl+Enter</span>
        </div>
      ) : (
        <ReadOnly what="Sending needs" />
      )}
      {error !== undefined && <Failure>{error}</Failure>}
      {sent !== undefined && <Result sent={sent} />}
    </form>
  )
}
