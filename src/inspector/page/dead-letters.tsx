/** The view "Dead letters": the queues, the dead letters of one of them by their errors, and what can be done with them. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Change, Changed, DeadLetters, Letter } from '../wire.ts'
import { formatCount, formatDay, formatInstant, formatNumber, formatTime } from './format.ts'
import { hrefOf, useRoute } from './navigation.ts'
import { announce, Empty, Failure, Heading, NoQueue, ReadOnly, Text, Time, titleOf, toggle } from './parts.tsx'
import { useAction, useAnswer, useStore } from './store.ts'

export function DeadLettersView() {
  const setup = useStore((state) => state.setup)
  const queues = useStore((state) => state.queues)
  const { rest } = useRoute()
  /** The first that had any: it stays when its last one is gone. */
  const first = useRef<string>()
  if (setup === undefined) return null
  const parts = setup.parts.filter(({ hasQueue }) => hasQueue).map(({ name }) => name)
  const countOf = (part: string): number => queues.find((queue) => queue.part === part)?.deadLetters ?? 0
  first.current ??= parts.find((part) => countOf(part) > 0)
  const chosen = parts.find((part) => part === rest) ?? first.current ?? parts[0]
  return (
    <div class="view">
      <h1>Dead letters</h1>
      {parts.length > 1 && (
        <nav class="tabs" aria-label="Queues">
          {parts.map((part) => (
            <a key={part} href={hrefOf('dead-letters', part)} aria-current={part === chosen ? 'true' : undefined}>
              {part} {countOf(part) > 0 && <span class="badge">{formatNumber(countOf(part))}</span>}
            </a>
          ))}
        </nav>
      )}
      {chosen === undefined ? (
        <NoQueue so="so no message can become a dead letter" />
      ) : (
        <Letters key={chosen} part={chosen} />
      )}
    </div>
  )
}

/** Which dead letters: by id, by group, or all. */
type Scope = Pick<Change, 'ids' | 'group'>

const ACTIONS = {
  redrive: { verb: 'Redrive', past: 'Redriven', style: 'primary' },
  drop: { verb: 'Drop', past: 'Dropped', style: 'danger' },
} as const
export type ActionName = keyof typeof ACTIONS

interface Wanted {
  readonly action: ActionName
  readonly part: string
  readonly scope: Scope
}

const NONE: ReadonlySet<string> = new Set()

function Letters({ part }: { readonly part: string }) {
  const mayWrite = useStore((state) => state.setup?.access === 'write')
  const queue = useStore((state) => state.queues.find((each) => each.part === part))
  const [group, setGroup] = useState<string>()
  const [pages, setPages] = useState<readonly (string | undefined)[]>([undefined])
  const [selected, setSelected] = useState(NONE)
  const [wanted, setWanted] = useState<Wanted>()
  const [done, setDone] = useState<string>()
  const { answer, error, reload } = useAnswer<DeadLetters>('dead-letters', { part, group, after: pages.at(-1) })
  // One that was redriven and failed again leaves the count as it was.
  const isBehind = answer?.isWhole === true && queue !== undefined && countOf(answer) !== queue.deadLetters
  const state = `${queue?.deadLetters} ${isBehind && queue?.asOf}`
  const asked = useRef(state)
  useEffect(() => {
    if (asked.current !== state) reload()
    asked.current = state
  }, [reload, state])

  const show = (next: string | undefined, from: readonly (string | undefined)[]): void => {
    setGroup(next)
    setPages(from)
    setSelected(NONE)
  }
  const want = (action: ActionName, scope: Scope): void => {
    setDone(undefined)
    setWanted({ action, part, scope })
  }
  const close = (result: string | undefined): void => {
    setWanted(undefined)
    if (result === undefined) return
    setDone(result)
    announce(result)
    show(group, [undefined])
    reload()
  }

  const letters = answer?.letters ?? []
  const scope: Scope = selected.size > 0 ? { ids: [...selected] } : group === undefined ? {} : { group }
  const isAll = letters.length > 0 && letters.every(({ id }) => selected.has(id))
  return (
    <>
      {done !== undefined && <p class="result">{done}</p>}
      <Failure error={error} />
      {answer?.groups.length === 0 && (
        <Empty>No dead letters in {part}. A message that nothing retries any more is shown here.</Empty>
      )}
      {answer !== undefined && answer.groups.length > 0 && (
        <>
          <Groups answer={answer} chosen={group} onChoose={(next) => show(next, [undefined])} />
          <section class="panel" aria-label="Dead letters">
            <div class="letters-bar row">
              {mayWrite ? (
                <>
                  <label class="row grow">
                    <input
                      type="checkbox"
                      checked={isAll}
                      onChange={() => setSelected(isAll ? NONE : new Set(letters.map(({ id }) => id)))}
                    />
                    This page
                  </label>
                  <button type="button" onClick={() => want('redrive', scope)}>
                    {nameChange('redrive', scope)}
                  </button>
                  <button type="button" class="danger" onClick={() => want('drop', scope)}>
                    {nameChange('drop', scope)}
                  </button>
                </>
              ) : (
                <ReadOnly what="Redriving and dropping need" />
              )}
            </div>
            <ul>
              {letters.map((letter) => {
                const { id } = letter
                return (
                  <LetterItem
                    key={id}
                    letter={letter}
                    mayWrite={mayWrite}
                    isSelected={selected.has(id)}
                    onSelect={() => setSelected(toggle(selected, id))}
                    onChange={(action) => want(action, { ids: [id] })}
                  />
                )
              })}
            </ul>
            {(pages.length > 1 || answer.next !== undefined) && (
              <nav class="letters-bar row" aria-label="Pages">
                <button type="button" disabled={pages.length === 1} onClick={() => show(group, pages.slice(0, -1))}>
                  Previous
                </button>
                <button
                  type="button"
                  disabled={answer.next === undefined}
                  onClick={() => show(group, [...pages, answer.next])}
                >
                  Next
                </button>
                <span class="muted">Page {pages.length}, the newest first</span>
              </nav>
            )}
          </section>
        </>
      )}
      {wanted !== undefined && <ChangeDialog {...wanted} onClose={close} />}
    </>
  )
}

/** `Redrive 3 selected`, `Drop this group`, `Redrive all`. */
function nameChange(action: ActionName, { ids, group }: Scope): string {
  const { verb } = ACTIONS[action]
  if (ids !== undefined) return `${verb} ${formatNumber(ids.length)} selected`
  return group === undefined ? `${verb} all` : `${verb} this group`
}

function countOf({ groups }: DeadLetters): number {
  return groups.reduce((sum, { count }) => sum + count, 0)
}

interface GroupsProps {
  readonly answer: DeadLetters
  readonly chosen: string | undefined
  onChoose(group: string | undefined): void
}

function Groups({ answer, chosen, onChoose }: GroupsProps) {
  const total = countOf(answer)
  const isKnown = chosen === undefined || answer.groups.some(({ name }) => name === chosen)
  return (
    <div class="groups row">
      <button type="button" aria-pressed={chosen === undefined} onClick={() => onChoose(undefined)}>
        All <b>{formatNumber(total)}</b>
      </button>
      {answer.groups.map(({ name, reason, error, count, latestAt }) => (
        <button key={name} type="button" aria-pressed={name === chosen} onClick={() => onChoose(name)}>
          {reason} <Text value={error} /> <b>{formatNumber(count)}</b>
          <span class="muted">
            latest <Moment at={latestAt} />
          </span>
        </button>
      ))}
      {!isKnown && <span class="muted">None of this group any more.</span>}
      {!answer.isWhole && <span class="muted">Only the newest {formatNumber(total)} are counted.</span>}
    </div>
  )
}

/** A time that may be days ago: `22 Nov 14:03:12`. */
function Moment({ at }: { readonly at: number }) {
  return <Time at={at}>{`${formatDay(at)} ${formatTime(at)}`}</Time>
}

interface LetterItemProps {
  readonly letter: Letter
  readonly mayWrite: boolean
  readonly isSelected: boolean
  readonly onSelect: () => void
  readonly onChange: (action: ActionName) => void
}

function LetterItem({ letter, mayWrite, isSelected, onSelect, onChange }: LetterItemProps) {
  const { failedAt, attempts, reason, error, excerpt } = letter
  const title = titleOf(letter)
  return (
    <li class="letter">
      {mayWrite && (
        <input
          type="checkbox"
          aria-label={`Select ${title}, ${formatInstant(failedAt)}`}
          checked={isSelected}
          onChange={onSelect}
        />
      )}
      <div class="grow">
        <p class="row break">
          <Heading message={letter} />
          <span class="muted">
            {formatCount(attempts, 'attempt')}, <Moment at={failedAt} />
          </span>
        </p>
        <p class="break">
          <span class="state-dead">{reason}</span> {error !== undefined && error.code !== reason && `${error.code} `}
          {error !== undefined && <Text value={error.message} />}
        </p>
        <details>
          <summary class="mono muted cut">
            {excerpt === '' ? 'no body' : <Text value={excerpt.slice(0, 160)} />}
          </summary>
          <pre class="excerpt">
            <Text value={excerpt} lines />
          </pre>
          {error?.stack !== undefined && (
            <pre class="excerpt">
              <Text value={error.stack} lines />
            </pre>
          )}
        </details>
      </div>
      {mayWrite && (
        <div class="row">
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

interface ChangeDialogProps extends Wanted {
  /** @param done What happened; undefined: nothing. */
  onClose(done: string | undefined): void
}

/** The dialog between wanting to change dead letters and changing them: it shows what a dry run says. */
export function ChangeDialog({ action, part, scope, onClose }: ChangeDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [plan, setPlan] = useState<Changed>()
  const [isChanging, setChanging] = useState(false)
  const { error, post } = useAction()
  const { verb, past, style } = ACTIONS[action]
  const change = (dryRun: boolean): Promise<Changed | undefined> => {
    return post<Changed>(action, { part, ...scope, dryRun } satisfies Change)
  }
  // The parent shows one dialog for each change that is asked for: this runs once.
  useEffect(() => {
    dialog.current?.showModal()
    void change(true).then(setPlan)
  }, [])
  const close = (done?: string): void => {
    dialog.current?.close() // It gives the focus back.
    onClose(done)
  }
  const confirm = async (): Promise<void> => {
    setChanging(true)
    const changed = await change(false)
    setChanging(false)
    if (changed !== undefined) close(`${past}: ${formatNumber(changed.count)}.`)
  }
  return (
    <dialog
      ref={dialog}
      class="change"
      aria-labelledby="change-title"
      aria-describedby="change-plan"
      onCancel={(event) => {
        event.preventDefault()
        if (!isChanging) close()
      }}
    >
      <h2 id="change-title">{verb} dead letters</h2>
      <p id="change-plan" role="status" class="break">
        {plan === undefined ? error === undefined && 'Counting…' : describePlan(action, part, plan)}
      </p>
      {action === 'drop' && plan !== undefined && plan.count > 0 && (
        <p class="muted">What is dropped is gone: it cannot be redriven any more.</p>
      )}
      <Failure error={error} />
      <div class="row">
        <button type="button" onClick={() => close()} disabled={isChanging}>
          Cancel
        </button>
        <button
          type="button"
          class={style}
          disabled={plan === undefined || plan.count === 0 || isChanging}
          onClick={() => void confirm()}
        >
          {isChanging ? 'Working…' : verb}
        </button>
      </div>
    </dialog>
  )
}

/** `Would redrive 12 dead letters of inbox: 10 handler_failed, 2 schema_mismatch.` */
function describePlan(action: ActionName, part: string, { count, reasons }: Changed): string {
  if (count === 0) return `Would ${action} nothing: ${part} has none of these dead letters any more.`
  const groups = reasons.map((group) => `${formatNumber(group.count)} ${group.reason}`).join(', ')
  return `Would ${action} ${formatCount(count, 'dead letter')} of ${part}: ${groups}.`
}
