/** The view "Dead letters": the queues, the dead letters of one queue grouped by error, and the actions on dead letters. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Change, Changed, DeadLetters, Letter } from '../wire.ts'
import { Dialog } from './dialog.tsx'
import { formatCount, formatNumber } from './format.ts'
import { useRoute } from './navigation.ts'
import { announce, Empty, Failure, NoQueue, ReadOnly, Text, toggle } from './parts.tsx'
import { useAction, useAnswer, useStore } from './store.ts'
import { Moment, PartTabs, StoredItem } from './stored.tsx'

export function DeadLettersView() {
  const setup = useStore((state) => state.setup)
  const queues = useStore((state) => state.queues)
  const { rest } = useRoute()
  /** The first queue that had dead letters. This queue stays chosen after its last dead letter is gone. */
  const first = useRef<string>()
  if (setup === undefined) return null
  const parts = setup.parts.filter(({ hasQueue }) => hasQueue).map(({ name }) => name)
  const countOf = (part: string): number => queues.find((queue) => queue.part === part)?.deadLetters ?? 0
  first.current ??= parts.find((part) => countOf(part) > 0)
  const chosen = parts.find((part) => part === rest) ?? first.current ?? parts[0]
  return (
    <div class="view">
      <h1>Dead letters</h1>
      <PartTabs
        {...{ label: 'Queues', view: 'dead-letters', parts, chosen }}
        badge={(part) => countOf(part) > 0 && <span class="badge">{formatNumber(countOf(part))}</span>}
      />
      {chosen === undefined ? (
        <NoQueue so="so no message can become a dead letter" />
      ) : (
        <Letters key={chosen} part={chosen} />
      )}
    </div>
  )
}

/** The dead letters that an action changes: by id, by group, or all. */
type Scope = Pick<Change, 'ids' | 'group'>

const ACTIONS = {
  redrive: { verb: 'Redrive', past: 'Redriven', style: 'primary' },
  drop: { verb: 'Drop', past: 'Dropped', style: 'danger' },
} as const
export type ActionName = keyof typeof ACTIONS
const ACTION_NAMES = ['redrive', 'drop'] as const

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
  // The answer may be old although the count of the queue is unchanged: a letter may have been redriven and have failed again.
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
        <Empty>No dead letters in {part}. A message that is no longer retried is shown here.</Empty>
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
              {letters.map((letter) => (
                <StoredItem
                  key={letter.id}
                  message={letter}
                  at={letter.failedAt}
                  before={`${formatCount(letter.attempts, 'attempt')},`}
                  stack={letter.error?.stack}
                  isSelected={selected.has(letter.id)}
                  onSelect={() => setSelected(toggle(selected, letter.id))}
                  actions={
                    mayWrite ? ACTION_NAMES.map((name) => [ACTIONS[name], () => want(name, { ids: [letter.id] })]) : []
                  }
                >
                  <ErrorOf {...letter} />
                </StoredItem>
              ))}
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
                <span class="muted">Page {pages.length}, newest first</span>
              </nav>
            )}
          </section>
        </>
      )}
      {wanted !== undefined && <ChangeDialog {...wanted} onClose={close} />}
    </>
  )
}

/** Returns the label of an action: `Redrive 3 selected`, `Drop this group`, `Redrive all`. */
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
          {reason} <Text value={error} /> <b>{formatNumber(count)}</b>{' '}
          <span class="muted">
            latest <Moment at={latestAt} />
          </span>
        </button>
      ))}
      {!isKnown && <span class="muted">This group has no dead letters any more.</span>}
      {!answer.isWhole && <span class="muted">Only the newest {formatNumber(total)} are counted.</span>}
    </div>
  )
}

function ErrorOf({ reason, error }: Letter) {
  return (
    <p class="break">
      <span class="state-dead">{reason}</span> {error !== undefined && error.code !== reason && `${error.code} `}
      <Text value={error?.message} />
    </p>
  )
}

interface ChangeDialogProps extends Wanted {
  /** @param done The outcome; undefined when nothing was changed. */
  onClose(done: string | undefined): void
}

/** Asks the user to confirm a change to dead letters. First shows the result of a dry run. */
export function ChangeDialog({ action, part, scope, onClose }: ChangeDialogProps) {
  const [plan, setPlan] = useState<Changed>()
  const { isBusy, error, post } = useAction()
  const { verb, past, style } = ACTIONS[action]
  const isChanging = plan !== undefined && isBusy
  const change = (dryRun: boolean): Promise<Changed | undefined> => {
    return post<Changed>(action, { part, ...scope, dryRun } satisfies Change)
  }
  // The parent renders a new dialog for each change, so this effect runs once for each change.
  useEffect(() => void change(true).then(setPlan), [])
  const confirm = async (): Promise<void> => {
    const changed = await change(false)
    if (changed !== undefined) onClose(`${past}: ${formatNumber(changed.count)}.`)
  }
  return (
    <Dialog
      title={`${verb} dead letters`}
      plan={plan === undefined ? error === undefined && 'Counting…' : describePlan(action, part, plan)}
      error={error}
      close="Cancel"
      action={{
        ...{ name: isChanging ? 'Working…' : verb, style, run: confirm },
        isDisabled: plan === undefined || plan.count === 0 || isChanging,
      }}
      isHeld={isChanging}
      onClose={() => onClose(undefined)}
    >
      {action === 'drop' && plan !== undefined && plan.count > 0 && (
        <p class="muted">Dropped messages are gone: they can no longer be redriven.</p>
      )}
    </Dialog>
  )
}

/** Describes a dry run: `Would redrive 12 dead letters of inbox: 10 handler_failed, 2 schema_mismatch.` */
function describePlan(action: ActionName, part: string, { count, reasons }: Changed): string {
  if (count === 0) return `Would ${action} nothing: ${part} no longer has any of these dead letters.`
  const groups = reasons.map((group) => `${formatNumber(group.count)} ${group.reason}`).join(', ')
  return `Would ${action} ${formatCount(count, 'dead letter')} of ${part}: ${groups}.`
}
