/** The view "History": filters for handled messages, and replays. */

import { useEffect, useState } from 'preact/hooks'
import type { HandledLine, Part, ReplayPlan, ReplayRequest, ReplayStatus } from '../wire.ts'
import { Dialog } from './dialog.tsx'
import { TYPES } from './filter.ts'
import { formatCount, formatNumber } from './format.ts'
import { goTo, hrefOf, useRoute } from './navigation.ts'
import { announce, Choice, Empty, Failure, Field, ReadOnly, State, Text, toggle } from './parts.tsx'
import { nowOfApp, readLines, useAction, useStore } from './store.ts'
import { PartTabs, StoredItem } from './stored.tsx'

const HOUR_MS = 3_600_000
const SINCE = {
  '1h': ['the last hour', HOUR_MS],
  '1d': ['the last day', 24 * HOUR_MS],
  '3d': ['the last 3 days', 72 * HOUR_MS],
  '7d': ['the last 7 days', 168 * HOUR_MS],
  all: ['the whole history', undefined],
} as const
const FILTERS = ['type', 'event', 'userId', 'where', 'handler'] as const
const FIELDS = [
  ['event', 'Event, exact name', 'Order Completed'],
  ['userId', 'User, exact id', 'user-1'],
  ['where', 'Field and value', 'properties.order_id=42'],
  ['handler', 'Handler', 'crm'],
] as const

type Filter = Partial<Record<(typeof FILTERS)[number], string>> & { readonly since?: number }

export function HistoryView() {
  const setup = useStore((state) => state.setup)
  const { rest, query } = useRoute()
  if (setup === undefined) return null
  const parts = setup.parts.filter(({ hasHistory }) => hasHistory).map(({ name }) => name)
  const chosen = parts.find((part) => part === rest) ?? parts[0]
  return (
    <div class="view">
      <h1>History</h1>
      <PartTabs {...{ label: 'Inboxes', view: 'history', parts, chosen, query }} />
      {chosen === undefined ? (
        <Empty>
          No inbox keeps a history. Pass <code>{'inbox: { queue, history: { maxAgeMs } }'}</code> to{' '}
          <code>createReceiver</code>.
        </Empty>
      ) : (
        <PartHistory key={chosen} part={chosen} query={query} />
      )}
    </div>
  )
}

interface PartHistoryProps {
  readonly part: string
  readonly query: URLSearchParams
}

function PartHistory({ part, query }: PartHistoryProps) {
  const mayWrite = useStore((state) => state.setup?.access === 'write')
  const { lines, isReading, error, readMore } = useHistory(part, query)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [wanted, setWanted] = useState<Wanted>()
  const search = query.toString()
  useEffect(() => setSelected(new Set()), [search])

  const set = (name: string, value: string): void => {
    const next = new URLSearchParams(query)
    if (value === '') next.delete(name)
    else next.set(name, value)
    goTo(hrefOf('history', part, next), true)
  }
  const { handler, ...filter } = filterOf(query)
  /** Opens the dialog for a replay. If the list is filtered by a handler, suggests replaying to that handler. */
  const want = (which: Partial<Wanted>): void => {
    setWanted({ part, ...which, ...(handler !== undefined && { handlers: [handler] }) })
  }
  const close = (hasBegun: boolean): void => {
    setWanted(undefined)
    if (hasBegun) setSelected(new Set())
  }
  return (
    <>
      <search class="fields">
        <Choice
          label="Handled in"
          value={sinceOf(query)}
          options={Object.entries(SINCE).map(([value, [text]]) => [value, text])}
          onChange={({ currentTarget }) => set('since', currentTarget.value)}
        />
        <Choice
          label="Type"
          value={query.get('type') ?? ''}
          options={[['', 'Any'], ...TYPES.map((type) => [type, type] as const)]}
          onChange={({ currentTarget }) => set('type', currentTarget.value)}
        />
        {FIELDS.map(([name, label, placeholder]) => (
          <Field
            key={name}
            label={label}
            value={query.get(name) ?? ''}
            placeholder={placeholder}
            onChange={({ currentTarget }) => set(name, currentTarget.value.trim())}
          />
        ))}
      </search>
      <Replays part={part} mayWrite={mayWrite} />
      <Failure error={error} />
      {lines.length === 0 ? (
        error === undefined && (
          <Empty>{isReading ? 'Reading…' : 'No message in the history matches. It has only handled messages.'}</Empty>
        )
      ) : (
        <section class="panel" aria-label="Handled messages">
          <div class="letters-bar row">
            <span class="grow muted">{formatCount(lines.length, 'message')}, oldest first</span>
            {!mayWrite && <ReadOnly what="Replaying needs" />}
            {mayWrite && selected.size > 0 && (
              <button type="button" onClick={() => want({ ids: [...selected] })}>
                Replay {formatNumber(selected.size)} selected
              </button>
            )}
            {mayWrite && selected.size === 0 && (
              <button type="button" onClick={() => want(filter)}>
                Replay all that match
              </button>
            )}
          </div>
          <ul>
            {lines.map((line) => (
              <StoredItem
                key={line.cursor}
                message={line}
                at={line.handledAt}
                isSelected={selected.has(line.id)}
                onSelect={() => setSelected(toggle(selected, line.id))}
                actions={mayWrite ? [[{ verb: 'Replay' }, () => want({ ids: [line.id] })]] : []}
              >
                <HandledBy {...line} />
              </StoredItem>
            ))}
          </ul>
          {(isReading || readMore !== undefined) && (
            <div class="letters-bar row">
              {isReading ? (
                <span class="muted">Reading…</span>
              ) : (
                <button type="button" onClick={readMore}>
                  More
                </button>
              )}
            </div>
          )}
        </section>
      )}
      {wanted !== undefined && <ReplayDialog request={wanted} onClose={close} />}
    </>
  )
}

function sinceOf(query: URLSearchParams): keyof typeof SINCE {
  const since = query.get('since') ?? ''
  return Object.hasOwn(SINCE, since) ? (since as keyof typeof SINCE) : '1d'
}

function filterOf(query: URLSearchParams): Filter {
  const [, ageMs] = SINCE[sinceOf(query)]
  const given = FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : []))
  return { ...Object.fromEntries(given), ...(ageMs !== undefined && { since: Math.floor(nowOfApp() - ageMs) }) }
}

/** The number of messages that the server lists at a time. */
const PAGE = 100

interface Found {
  readonly lines: readonly HandledLine[]
  readonly isReading: boolean
  readonly error?: string
  /** Reads the next page; undefined at the end. */
  readonly readMore?: () => void
}

/** Reads the first page of the history, and further pages on request. Starts again when the query changes. */
function useHistory(part: string, query: URLSearchParams): Found {
  const [found, setFound] = useState<Found>({ lines: [], isReading: true })
  const search = query.toString()
  useEffect(() => {
    const stop = new AbortController()
    const filter = filterOf(query)
    const readPage = async (before: readonly HandledLine[]): Promise<void> => {
      let lines = before
      let count = 0
      const after = before.at(-1)?.cursor
      setFound({ lines, isReading: true })
      const url = { part, ...filter, ...(after !== undefined && { after }) }
      const error = await readLines<HandledLine>('history', url, stop.signal, (more) => {
        count += more.length
        lines = [...lines, ...more]
        setFound({ lines, isReading: true })
      })
      if (stop.signal.aborted) return
      const isWhole = error === undefined && count < PAGE
      setFound({
        ...{ lines, isReading: false },
        ...(error !== undefined && { error }),
        ...(!isWhole && { readMore: () => void readPage(lines) }),
      })
    }
    void readPage([])
    return () => stop.abort()
  }, [part, search])
  return found
}

function HandledBy({ handlers, ignored }: HandledLine) {
  const names = handlers.filter((each) => each !== '').join(', ')
  return (
    <p>
      <State state={ignored ? 'ignored' : 'done'}>
        {ignored ? 'Ignored' : names === '' ? 'Handled' : `Handled by ${names}`}
      </State>
    </p>
  )
}

const REPLAY_STATES = {
  running: ['waiting', 'running'],
  complete: ['done', 'complete'],
  stopped: ['ignored', 'stopped'],
  failed: ['failed', 'failed'],
} as const

/** Lists the replays in this process, running and ended. */
function Replays({ part, mayWrite }: { readonly part: Part['name']; readonly mayWrite: boolean }) {
  const all = useStore((state) => state.replays)
  const replays = all.filter(({ request }) => request.part === part)
  const { error, post } = useAction()
  if (replays.length === 0) return null
  return (
    <section class="panel" aria-label="Replays">
      <Failure error={error} />
      <ul>
        {replays.map((replay) => {
          const { request, state, count, error } = replay
          const { id = '', total } = request
          const [sign, text] = REPLAY_STATES[state]
          return (
            <li key={id} class="letter row">
              <State state={sign}>{text}</State>
              <b class="break">
                <Text value={id} />
              </b>
              {total !== undefined && state !== 'complete' && (
                <progress max={Math.max(total, count)} value={count} aria-label={id} />
              )}
              <span class="muted grow">
                {formatNumber(count)}
                {total !== undefined && state !== 'complete' && ` of ${formatNumber(total)}`}
              </span>
              <Failure error={error} />
              {mayWrite && state === 'running' && (
                <button type="button" onClick={() => void post('stop-replay', { part, id })}>
                  Stop
                </button>
              )}
              {mayWrite && (state === 'stopped' || state === 'failed') && (
                <button type="button" onClick={() => void post<ReplayStatus>('replay', request)}>
                  Continue
                </button>
              )}
            </li>
          )
        })}
      </ul>
    </section>
  )
}

type Wanted = Omit<ReplayRequest, 'dryRun' | 'id' | 'total' | 'maxPerSecond'>

interface ReplayDialogProps {
  readonly request: Wanted
  onClose(hasBegun: boolean): void
}

const COUNT_AFTER_MS = 400

/** Asks the user to confirm a replay. First shows the result of a dry run. */
export function ReplayDialog({ request: { handlers: given = [], ...request }, onClose }: ReplayDialogProps) {
  const [id, setId] = useState(idOfNow)
  const [names, setNames] = useState(given.join(' '))
  const [rate, setRate] = useState('')
  const [plan, setPlan] = useState<ReplayPlan>()
  const { isBusy, error, post } = useAction()
  const { view } = useRoute()
  const handlers = names.split(/[\s,]+/).filter((name) => name !== '')
  const body = {
    ...{ ...request, id },
    ...(handlers.length > 0 && { handlers }),
    ...(rate !== '' && { maxPerSecond: Number(rate) }),
  }
  useEffect(() => {
    let isCurrent = true
    setPlan(undefined)
    const count = (): void => {
      void post<ReplayPlan>('replay', { ...body, dryRun: true }).then((next) => isCurrent && setPlan(next))
    }
    const timer = window.setTimeout(count, COUNT_AFTER_MS)
    return () => {
      isCurrent = false
      window.clearTimeout(timer)
    }
  }, [id, names, rate])
  const start = async (): Promise<void> => {
    const begun = await post<ReplayStatus>('replay', { ...body, dryRun: false, total: plan?.count })
    if (begun === undefined) return
    announce(`Replay ${id} has begun.`)
    onClose(true)
    if (view !== 'history') goTo(hrefOf('history', request.part))
  }
  const counting = error === undefined && 'Counting…'
  return (
    <Dialog
      title="Replay messages"
      plan={plan === undefined ? counting : <Text value={describePlan(request.part, plan)} />}
      error={error}
      close="Cancel"
      action={{
        ...{ name: 'Replay', style: 'primary', run: start },
        isDisabled: plan === undefined || plan.count === 0 || isBusy,
      }}
      onClose={() => onClose(false)}
    >
      <div class="fields">
        <Field
          label="Only these handlers"
          value={names}
          placeholder="every handler that matches"
          onInput={({ currentTarget }) => setNames(currentTarget.value)}
        />
        <Field
          label="Maximum per second"
          type="number"
          min={1}
          value={rate}
          placeholder="as fast as they are handled"
          onInput={({ currentTarget }) => setRate(currentTarget.value)}
        />
        <Field label="Id" value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
      </div>
      <p class="muted">New messages go first. To continue a replay where it ended, use its id again.</p>
    </Dialog>
  )
}

/** Returns the id of a new replay, with the current time: `replay-20261124-165103042`. */
function idOfNow(): string {
  const digits = new Date().toISOString().replace(/\D/g, '')
  return `replay-${digits.slice(0, 8)}-${digits.slice(8)}`
}

const MAX_NAMED = 6
const MAX_NAME = 80

/** Describes a dry run: `Would replay 12 messages of app: 10 Order Completed, 2 identify.` */
function describePlan(part: string, { count, types, events }: ReplayPlan): string {
  if (count === 0) return `Would replay nothing: the history of ${part} has none of these messages.`
  const { track: _, unreadable: __, ...others } = types // `events` counts track messages. Unreadable messages are not replayed.
  const groups = [...Object.entries(events), ...Object.entries(others)].sort(([, one], [, other]) => other - one)
  const named = groups.slice(0, MAX_NAMED).map(([name, many]) => `${formatNumber(many)} ${name.slice(0, MAX_NAME)}`)
  const rest = groups.length > MAX_NAMED ? ' and others' : ''
  return `Would replay ${formatCount(count, 'message')} of ${part}: ${named.join(', ')}${rest}.`
}
