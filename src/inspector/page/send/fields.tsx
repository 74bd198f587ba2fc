/** The fields of a message, and places for JSON. */

import type { MessageType } from '../../../message/message.ts'
import { type Draft, FIELDS, type Field, isJson, type Made } from './draft.ts'

const LABELS: Readonly<Record<Field, string>> = {
  userId: 'User id',
  anonymousId: 'Anonymous id',
  previousId: 'Previous id',
  groupId: 'Group id',
  event: 'Event',
  name: 'Name',
  category: 'Category',
  properties: 'Properties',
  traits: 'Traits',
  context: 'Context',
}

interface FormFieldsProps {
  readonly draft: Draft
  readonly errors: Made['errors']
  onChange(field: Field, value: string): void
  onType(type: MessageType): void
}

/** The type and its fields. */
export function FormFields({ draft, errors, onChange, onType }: FormFieldsProps) {
  const others = Object.keys(draft.rest)
  return (
    <>
      <label class="field">
        Type
        <select value={draft.type} onChange={(event) => onType(event.currentTarget.value as MessageType)}>
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
            onChange={(value) => onChange(field, value)}
          />
        ) : (
          <label key={field} class="field">
            {LABELS[field]}
            <input
              type="text"
              autocomplete="off"
              spellcheck={false}
              value={draft.values[field] ?? ''}
              onInput={(event) => onChange(field, event.currentTarget.value)}
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

/** A place for JSON, with what is wrong with it. */
export function JsonArea({ label, rows, value, error, onChange }: JsonAreaProps) {
  const id = `field-${label.split(',')[0]}`
  return (
    <div class="field field-wide">
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
        <p id={`${id}-error`} class="field-error" role="alert">
          {error}
        </p>
      )}
    </div>
  )
}
