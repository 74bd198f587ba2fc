/** One dead letter in the list. */

import type { Letter } from '../../wire.ts'
import { formatCount, formatDay, formatInstant, formatTime } from '../format.ts'
import { hrefOf } from '../route.ts'
import { Text } from '../text.tsx'
import type { Action } from './wording.ts'

/** What an item of the list shows and does. */
export interface LetterItemProps {
  readonly letter: Letter
  readonly isSelected: boolean
  /** Undefined for who may only look. */
  readonly onSelect: ((isSelected: boolean) => void) | undefined
  readonly onChange: ((action: Action) => void) | undefined
}

/** Draws a dead letter. */
export function LetterItem({ letter, isSelected, onSelect, onChange }: LetterItemProps) {
  const { type, name, user, failedAt, attempts, reason, error, row, excerpt } = letter
  const title = name ?? type ?? 'not a message'
  const shown = <Text value={title} />
  return (
    <li class="letter">
      {onSelect !== undefined && (
        <input
          type="checkbox"
          aria-label={`Select ${title}, ${formatInstant(failedAt)}`}
          checked={isSelected}
          onChange={(event) => onSelect(event.currentTarget.checked)}
        />
      )}
      <div class="letter-text">
        <p class="letter-head">
          {row === undefined ? <b>{shown}</b> : <a href={hrefOf('messages', String(row))}>{shown}</a>}
          {type !== undefined && name !== undefined && (
            <span class="tag">
              <Text value={type} />
            </span>
          )}
          {user !== undefined && (
            <span>
              <Text value={user} />
            </span>
          )}
          <span class="muted">
            {formatCount(attempts, 'attempt')}, <Moment at={failedAt} />
          </span>
        </p>
        <p class="letter-error">
          <span class="state-dead">{reason}</span>
          {error !== undefined && error.code !== reason && <span>{error.code}</span>}
          {error !== undefined && (
            <span>
              <Text value={error.message} />
            </span>
          )}
        </p>
        <details>
          <summary class="mono muted">{excerpt === '' ? 'no body' : <Text value={excerpt.slice(0, 160)} />}</summary>
          <pre>
            <Text value={excerpt} lines />
          </pre>
          {error?.stack !== undefined && (
            <pre>
              <Text value={error.stack} lines />
            </pre>
          )}
        </details>
      </div>
      {onChange !== undefined && (
        <div class="letter-buttons">
          <button type="button" onClick={() => onChange('redrive')}>
            Redrive<span class="unseen"> {title}</span>
          </button>
          <button type="button" class="danger" onClick={() => onChange('drop')}>
            Drop<span class="unseen"> {title}</span>
          </button>
        </div>
      )}
    </li>
  )
}

/** A time that may be days ago: `22 Nov 14:03:12`. */
export function Moment({ at }: { readonly at: number }) {
  return (
    <time title={formatInstant(at)}>
      {formatDay(at)} {formatTime(at)}
    </time>
  )
}
