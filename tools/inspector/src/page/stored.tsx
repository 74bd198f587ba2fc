/** Components for stored messages: the tabs of the parts that store messages, and each message with its actions. */

import type { ComponentChildren } from 'preact'
import type { Letter } from '../wire.ts'
import { formatDay, formatInstant, formatTime } from './format.ts'
import { hrefOf, type View } from './navigation.ts'
import { Excerpt, ReplayTag, Text, Time } from './parts.tsx'

interface PartTabsProps {
  readonly label: string
  readonly view: View
  readonly parts: readonly string[]
  readonly chosen: string | undefined
  readonly query?: URLSearchParams
  readonly badge?: (part: string) => ComponentChildren
}

/** Shows the tabs, or nothing if there is only one part. */
export function PartTabs({ label, view, parts, chosen, query, badge }: PartTabsProps) {
  if (parts.length < 2) return null
  return (
    <nav class="tabs" aria-label={label}>
      {parts.map((part) => (
        <a key={part} href={hrefOf(view, part, query)} aria-current={part === chosen ? 'true' : undefined}>
          {part} {badge?.(part)}
        </a>
      ))}
    </nav>
  )
}

interface StoredItemProps {
  readonly message: Pick<Letter, 'type' | 'name' | 'user' | 'replayId' | 'row' | 'excerpt'>
  readonly at: number
  /** The text to show before the time. */
  readonly before?: string
  readonly stack?: string | undefined
  readonly isSelected: boolean
  readonly onSelect: () => void
  /** The actions for the message; empty when the user has only read access. */
  readonly actions: readonly (readonly [{ readonly verb: string; readonly style?: string }, run: () => void])[]
  readonly children: ComponentChildren
}

export function StoredItem(props: StoredItemProps) {
  const { message, at, before = '', stack, isSelected, onSelect, actions, children } = props
  const { type, name, user, row, excerpt } = message
  const title = name ?? type ?? 'not a message'
  const shown = <Text value={title} />
  return (
    <li class="letter">
      {actions.length > 0 && (
        <input
          type="checkbox"
          aria-label={`Select ${title}, ${formatInstant(at)}`}
          checked={isSelected}
          onChange={onSelect}
        />
      )}
      <div class="grow">
        <p class="row break">
          {row === undefined ? <b>{shown}</b> : <a href={hrefOf('messages', String(row))}>{shown}</a>}
          {type !== undefined && name !== undefined && (
            <span class="tag">
              <Text value={type} />
            </span>
          )}
          <Text value={user} />
          <ReplayTag {...message} />
          <span class="muted">
            {before} <Moment at={at} />
          </span>
        </p>
        {children}
        <details>
          <summary class="mono muted cut">
            {excerpt === '' ? 'no body' : <Text value={excerpt.slice(0, 160)} />}
          </summary>
          <Excerpt text={excerpt} />
          <Excerpt text={stack} />
        </details>
      </div>
      {actions.length > 0 && (
        <div class="row">
          {actions.map(([{ verb, style }, run]) => (
            <button key={verb} type="button" class={style === 'danger' ? style : ''} onClick={run}>
              {verb}
              <span class="unseen"> {title}</span>
            </button>
          ))}
        </div>
      )}
    </li>
  )
}

/** Shows a time that may be days ago: `22 Nov 14:03:12`. */
export function Moment({ at }: { readonly at: number }) {
  return <Time at={at}>{`${formatDay(at)} ${formatTime(at)}`}</Time>
}
