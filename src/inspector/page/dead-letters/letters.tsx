/** The dead letters of one queue: its groups, a page of them, and what can be done with them. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeadLetters } from '../../wire.ts'
import { useAnswer } from '../answer.ts'
import { useStore } from '../connection.ts'
import { formatNumber } from '../format.ts'
import { announce, Empty, Failure, ReadOnly } from '../parts.tsx'
import { ChangeDialog, type Wanted } from './dialog.tsx'
import { LetterItem, Moment } from './letter.tsx'
import { type Action, nameChange, type Scope } from './wording.ts'

const NONE: ReadonlySet<string> = new Set()

/** Shows the dead letters of a part. */
export function Letters({ part }: { readonly part: string }) {
  const mayWrite = useStore((state) => state.setup?.access === 'write')
  const total = useStore((state) => state.queues.find((queue) => queue.part === part)?.deadLetters)
  const countedAt = useStore((state) => state.queues.find((queue) => queue.part === part)?.asOf)
  const [reason, setReason] = useState<string>()
  /** Where each page up to this one begins. */
  const [pages, setPages] = useState<readonly (string | undefined)[]>([undefined])
  const [selected, setSelected] = useState(NONE)
  const [wanted, setWanted] = useState<Wanted>()
  const [done, setDone] = useState<string>()
  const { answer, error, reload } = useAnswer<DeadLetters>('dead-letters', { part, reason, after: pages.at(-1) })
  // One that was redriven and failed again leaves the count as it was.
  const isBehind = answer?.isWhole === true && total !== undefined && countOf(answer) !== total
  const state = `${total} ${isBehind && countedAt}`
  const asked = useRef(state)
  useEffect(() => {
    if (asked.current !== state) reload()
    asked.current = state
  }, [reload, state])

  const show = (next: string | undefined, from: readonly (string | undefined)[]): void => {
    setReason(next)
    setPages(from)
    setSelected(NONE)
  }
  const select = (id: string, isSelected: boolean): void => {
    const next = new Set(selected)
    if (isSelected) next.add(id)
    else next.delete(id)
    setSelected(next)
  }
  const want = (action: Action, scope: Scope): void => {
    setDone(undefined)
    setWanted({ action, part, scope })
  }
  const close = (result: string | undefined): void => {
    setWanted(undefined)
    if (result === undefined) return
    setDone(result)
    announce(result)
    setSelected(NONE)
    setPages([undefined])
    reload()
  }

  const letters = answer?.letters ?? []
  const isEmpty = answer !== undefined && answer.groups.length === 0
  const scope: Scope = selected.size > 0 ? { ids: [...selected] } : reason === undefined ? {} : { reason }
  const isAll = letters.length > 0 && letters.every(({ id }) => selected.has(id))
  return (
    <>
      {done !== undefined && <p class="result">{done}</p>}
      {error !== undefined && <Failure>{error}</Failure>}
      {isEmpty && <Empty>No dead letters in {part}. A message that nothing retries any more is shown here.</Empty>}
      {answer !== undefined && !isEmpty && (
        <>
          <Groups answer={answer} reason={reason} onChoose={(next) => show(next, [undefined])} />
          <section class="panel" aria-label="Dead letters">
            <div class="letters-bar">
              {mayWrite ? (
                <>
                  <label class="row">
                    <input
                      type="checkbox"
                      checked={isAll}
                      onChange={() => setSelected(isAll ? NONE : new Set(letters.map(({ id }) => id)))}
                    />
                    This page
                  </label>
                  <span class="row">
                    <button type="button" onClick={() => want('redrive', scope)}>
                      {nameChange('redrive', scope)}
                    </button>
                    <button type="button" class="danger" onClick={() => want('drop', scope)}>
                      {nameChange('drop', scope)}
                    </button>
                  </span>
                </>
              ) : (
                <ReadOnly what="Redriving and dropping need" />
              )}
            </div>
            <ul>
              {letters.map((letter) => (
                <LetterItem
                  key={letter.id}
                  letter={letter}
                  isSelected={selected.has(letter.id)}
                  onSelect={mayWrite ? (isSelected) => select(letter.id, isSelected) : undefined}
                  onChange={mayWrite ? (action) => want(action, { ids: [letter.id] }) : undefined}
                />
              ))}
            </ul>
            {(pages.length > 1 || answer.next !== undefined) && (
              <nav class="row letters-pages" aria-label="Pages">
                <button type="button" disabled={pages.length === 1} onClick={() => show(reason, pages.slice(0, -1))}>
                  Previous
                </button>
                <button
                  type="button"
                  disabled={answer.next === undefined}
                  onClick={() => show(reason, [...pages, answer.next])}
                >
                  Next
                </button>
                <span class="muted">Page {pages.length}, the oldest first</span>
              </nav>
            )}
          </section>
        </>
      )}
      {wanted !== undefined && <ChangeDialog {...wanted} onClose={close} />}
    </>
  )
}

function countOf({ groups }: DeadLetters): number {
  return groups.reduce((sum, { count }) => sum + count, 0)
}

interface GroupsProps {
  readonly answer: DeadLetters
  readonly reason: string | undefined
  onChoose(reason: string | undefined): void
}

function Groups({ answer, reason, onChoose }: GroupsProps) {
  const total = countOf(answer)
  const isKnown = reason === undefined || answer.groups.some((group) => group.reason === reason)
  return (
    <div class="groups">
      <button type="button" aria-pressed={reason === undefined} onClick={() => onChoose(undefined)}>
        All reasons <b>{formatNumber(total)}</b>
      </button>
      {answer.groups.map((group) => (
        <button
          key={group.reason}
          type="button"
          aria-pressed={group.reason === reason}
          onClick={() => onChoose(group.reason)}
        >
          {group.reason} <b>{formatNumber(group.count)}</b>
          <span class="muted">
            latest <Moment at={group.latestAt} />
          </span>
        </button>
      ))}
      {!isKnown && <span class="muted">No {reason} any more.</span>}
      {!answer.isWhole && <span class="muted">Only the oldest {formatNumber(total)} are counted.</span>}
    </div>
  )
}
