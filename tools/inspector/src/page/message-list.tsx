/** The view "Messages": the bar with the filters, the list, and the message that is open. */

import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Row } from '../wire.ts'
import { countFilters, type FilterName, filterOf, TYPES, withFilter } from './filter.ts'
import {
  formatCode,
  formatCount,
  formatDuration,
  formatExactTime,
  formatInitials,
  formatNumber,
  formatTime,
} from './format.ts'
import { describe, findJourney, type Journey } from './journeys.ts'
import { MessageView } from './message-details.tsx'
import { goTo, hrefOf, useKeys, useRoute } from './navigation.ts'
import {
  Choice,
  CopyButton,
  Empty,
  Field,
  NextAttempt,
  nameState,
  ReplayTag,
  RowStateName,
  Sign,
  STATES,
  Text,
  Time,
} from './parts.tsx'
import { useStore } from './store.ts'

export function MessagesView() {
  const { rest, query } = useRoute()
  const live = useStore((state) => state.journeys)
  const [frozen, setFrozen] = useState<readonly Journey[] | undefined>(undefined)
  const all = frozen ?? live
  const search = query.toString()
  const passes = useMemo(() => filterOf(query), [search])
  const journeys = useMemo(() => all.filter(passes), [all, passes])
  const known = useMemo(() => new Set(frozen?.map(({ id }) => id)), [frozen])
  const fresh = frozen && live.filter((journey) => !known.has(journey.id) && passes(journey)).length

  const openId = /^\d+$/.test(rest) ? Number(rest) : undefined
  const opened = useMemo(() => (openId === undefined ? undefined : findJourney(live, openId)), [live, openId])
  const [chosenId, setChosenId] = useState<number | undefined>(undefined)
  const activeId = opened?.id ?? chosenId
  const listRef = useRef<HTMLDivElement>(null)
  const searchRef = useRef<HTMLInputElement>(null)
  const headingRef = useRef<HTMLHeadingElement>(null)
  /** Whether a key opened the message. If so, the message gets the focus. */
  const isEntered = useRef(false)
  const wasOpen = useRef(false)

  const openMessage = ({ id }: Journey, isReplaced = false): void => {
    setChosenId(id)
    goTo(hrefOf('messages', String(id), query), isReplaced)
  }
  const close = (): void => {
    if (openId !== undefined) goTo(hrefOf('messages', '', query))
  }
  useEffect(() => {
    if (openId !== undefined) setChosenId(opened?.id ?? openId)
    // If the message that was closed had the focus, the list gets the focus.
    else if (wasOpen.current && document.activeElement === document.body) {
      ;(listRef.current ?? searchRef.current)?.focus()
    }
    wasOpen.current = openId !== undefined
  }, [openId])
  const move = (by: number): unknown => {
    const index = journeys.findIndex(({ id }) => id === activeId)
    const next = journeys[Math.min(Math.max(0, index + by), journeys.length - 1)]
    if (next === undefined) return false
    if (openId === undefined) return setChosenId(next.id)
    isEntered.current = document.activeElement === headingRef.current
    return openMessage(next, true)
  }
  /** Moves in the list only if the list has the focus. Otherwise, arrow keys scroll the focused element. */
  const moveInList = (by: number) => () => document.activeElement === listRef.current && move(by)
  const enter = (): unknown => {
    const journey = journeys.find(({ id }) => id === activeId)
    if (journey === undefined) return false
    isEntered.current = true
    return opened?.id === journey.id ? headingRef.current?.focus() : openMessage(journey)
  }
  const pause = (): void => setFrozen(frozen === undefined ? live : undefined)

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: moveInList(1),
    ArrowUp: moveInList(-1),
    PageDown: moveInList(10),
    PageUp: moveInList(-10),
    Home: moveInList(-journeys.length),
    End: moveInList(journeys.length),
    Enter: enter,
    Escape: () => (document.activeElement === searchRef.current ? listRef.current?.focus() : close()),
    '/': () => searchRef.current?.focus(),
    p: pause,
  })

  return (
    <div class={`messages ${openId === undefined ? '' : 'is-open'}`}>
      <div class="messages-list">
        <h1 class="unseen">Messages</h1>
        <Filters
          query={query}
          onQuery={(next) => goTo(hrefOf('messages', rest, next), true)}
          searchRef={searchRef}
          all={all}
          shown={journeys.length}
          fresh={fresh}
          onPause={pause}
        />
        {journeys.length === 0 ? (
          <NoRows isFiltered={all.length > 0} query={query} onClear={() => goTo(hrefOf('messages', rest), true)} />
        ) : (
          <List
            journeys={journeys}
            activeId={activeId}
            onOpen={(journey) => {
              isEntered.current = false
              openMessage(journey)
            }}
            listRef={listRef}
          />
        )}
      </div>
      {openId !== undefined && (
        <MessageView
          key={opened?.id ?? openId}
          journey={opened}
          headingRef={headingRef}
          isEntered={isEntered.current}
          onClose={close}
        />
      )}
    </div>
  )
}

const LISTED_TYPES = [...TYPES, 'batch']

interface FiltersProps {
  readonly query: URLSearchParams
  readonly onQuery: (query: URLSearchParams) => void
  readonly searchRef: RefObject<HTMLInputElement>
  readonly all: readonly Journey[]
  readonly shown: number
  /** The number of messages that have arrived since the list was paused; undefined if the list is not paused. */
  readonly fresh: number | undefined
  readonly onPause: () => void
}

function Filters({ query, onQuery, searchRef, all, shown, fresh, onPause }: FiltersProps) {
  const [isOpen, setIsOpen] = useState(false)
  const parts = useStore((state) => state.setup?.parts) ?? []
  const set =
    (name: FilterName) =>
    ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void =>
      onQuery(withFilter(query, name, currentTarget.value))
  const total = countFilters(query)
  const count = total - (query.has('text') ? 1 : 0)
  const names = new Set(isOpen ? all.flatMap(({ current: { name } }) => name ?? []) : [])

  const select = (name: FilterName, label: string, options: readonly (readonly [string, string])[]) => (
    <Choice label={label} value={query.get(name) ?? ''} options={[['', 'Any'], ...options]} onChange={set(name)} />
  )
  const input = (name: FilterName, label: string, placeholder: string) => (
    <Field
      label={label}
      value={query.get(name) ?? ''}
      placeholder={placeholder}
      list={`${name}-names`}
      onInput={set(name)}
    />
  )

  return (
    <search class="filters">
      <div class="row">
        <input
          ref={searchRef}
          class="grow"
          type="search"
          aria-label="Search messages"
          placeholder="Search ( / )"
          value={query.get('text') ?? ''}
          onInput={set('text')}
        />
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          Filters{count > 0 && <span class="badge chosen">{count}</span>}
        </button>
        <button type="button" aria-pressed={fresh !== undefined} title="Key: p" onClick={onPause}>
          {fresh === undefined ? 'Pause' : 'Resume'}
        </button>
        <output class="count muted">
          {`${total > 0 ? `${formatNumber(shown)} of ` : ''}${formatNumber(all.length)}`}
          {fresh !== undefined && ` · ${formatNumber(fresh)} new`}
        </output>
      </div>
      {isOpen && (
        <div class="fields">
          {select('state', 'State', Object.entries(STATES))}
          {select('type', 'Type', [...LISTED_TYPES.map((type) => [type, type] as const), ['none', 'not a message']])}
          {select(
            'part',
            'Part',
            parts.map(({ name }) => [name.toLowerCase(), name]),
          )}
          {input('event', 'Event', 'Order Completed')}
          {input('user', 'User', 'user-1')}
          {input('status', 'Status', '503 or 5xx')}
          <datalist id="event-names">
            {[...names].slice(0, 50).map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          {total > 0 && (
            <button type="button" class="quiet" onClick={() => onQuery(new URLSearchParams())}>
              Clear filters
            </button>
          )}
          <HistoryLink query={query} />
        </div>
      )}
    </search>
  )
}

/** Links to the history of an inbox, because the history may still have messages that the list no longer has. */
function HistoryLink({ query }: { readonly query: URLSearchParams }) {
  const hasHistory = useStore(({ setup }) => setup?.parts.some((part) => part.hasHistory) === true)
  if (!hasHistory) return null
  const given = [
    ['type', TYPES.find((type) => type === query.get('type'))],
    ['event', query.get('event')],
    ['userId', query.get('user')],
  ].flatMap(([name, value]) => (name && value ? [[name, value]] : []))
  return <a href={hrefOf('history', '', new URLSearchParams(given))}>Search the history</a>
}

/** The command that sends a message to the app. It uses the origin of the page, because most pages are mounted in the app itself. */
const COMMAND = `npx hookline send track --to ${location.origin}/webhooks`

function Copied({ text }: { readonly text: string }) {
  return (
    <p class="row">
      <code class="break">{text}</code>
      <CopyButton label="Copy" text={text} />
    </p>
  )
}

interface NoRowsProps {
  readonly isFiltered: boolean
  readonly query: URLSearchParams
  readonly onClear: () => void
}

/** Says why the list is empty, and what to do. */
function NoRows({ isFiltered, query, onClear }: NoRowsProps) {
  const hasRows = useStore((state) => state.hasRows)
  const setup = useStore((state) => state.setup)
  if (!hasRows) return <Empty>Loading…</Empty>
  if (setup?.parts.every(({ kind }) => kind === 'queue')) {
    return (
      <Empty>
        This page inspects queues from outside their processes, so it does not see messages pass. See the counts under{' '}
        <a href={hrefOf('queues')}>Queues</a>, and what failed under <a href={hrefOf('dead-letters')}>Dead letters</a>.
      </Empty>
    )
  }
  if (isFiltered) {
    return (
      <Empty>
        <p>No message matches the filters.</p>
        <button type="button" onClick={onClear}>
          Clear filters
        </button>
        <HistoryLink query={query} />
      </Empty>
    )
  }
  if (setup?.address !== undefined) {
    const message = `{"type":"track","event":"Order Completed","userId":"user-1","timestamp":"${new Date().toISOString()}"}`
    return (
      <Empty>
        <p>
          <strong>No requests yet.</strong> They are shown here as soon as they arrive at <code>{setup.address}</code>.
          Send one:
        </p>
        <Copied text={`curl ${setup.address} -H 'Content-Type: application/json' -d '${message}'`} />
      </Empty>
    )
  }
  return (
    <Empty>
      <p>
        <strong>No messages yet.</strong> They are shown here as soon as they arrive.
      </p>
      <p>Send one to your endpoint, with its path in place of /webhooks, and its secret in HOOKLINE_SECRET:</p>
      <Copied text={COMMAND} />
    </Empty>
  )
}

const WIDE_PX = 1_000
const ROW_PX = { wide: 30, narrow: 50 }
const SPARE = 8

interface ListProps {
  readonly journeys: readonly Journey[]
  readonly activeId: number | undefined
  readonly onOpen: (journey: Journey) => void
  readonly listRef: RefObject<HTMLDivElement>
}

/** The list of messages. Only the visible rows are in the document. */
function List({ journeys, activeId, onOpen, listRef }: ListProps) {
  const [{ width, height }, setSize] = useState({ width: 1_000, height: 0 })
  const [top, setTop] = useState(0)
  const isWide = width >= WIDE_PX
  const rowPx = isWide ? ROW_PX.wide : ROW_PX.narrow

  useLayoutEffect(() => {
    const list = listRef.current
    if (list === null) return
    const measure = (): void => setSize({ width: list.clientWidth, height: list.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(list)
    measure()
    return () => observer.disconnect()
  }, [listRef])

  // New rows are added at the top. The rows that the user is reading stay in place, unless the list is scrolled to the top.
  const anchor = useRef<(Pick<Journey, 'id' | 'at'> & { readonly offset: number }) | undefined>(undefined)
  useLayoutEffect(() => {
    const list = listRef.current
    if (list === null || anchor.current === undefined) return
    const { id, at, offset } = anchor.current
    const above = journeys.findIndex((journey) => journey.id === id || journey.at < at)
    const wanted = (above === -1 ? journeys.length : above) * rowPx + offset
    if (Math.abs(list.scrollTop - wanted) >= 1) list.scrollTop = wanted
    setTop(list.scrollTop)
  }, [journeys, rowPx, listRef])
  const onScroll = ({ scrollTop }: HTMLDivElement): void => {
    const first = scrollTop < rowPx ? undefined : journeys[Math.floor(scrollTop / rowPx)]
    anchor.current = first && { id: first.id, at: first.at, offset: scrollTop % rowPx }
    setTop(scrollTop)
  }

  const activeIndex = activeId === undefined ? -1 : journeys.findIndex(({ id }) => id === activeId)
  useLayoutEffect(() => {
    const list = listRef.current
    if (list === null || activeIndex === -1) return
    const at = activeIndex * rowPx
    if (at < list.scrollTop) list.scrollTop = at
    if (at + rowPx > list.scrollTop + list.clientHeight) list.scrollTop = at + rowPx - list.clientHeight
    // The list scrolls when another row becomes active, but not when new rows move the active row.
  }, [activeId])

  const slots = Math.ceil(height / rowPx) + 1 + 2 * SPARE
  const first = Math.floor(top / rowPx) - SPARE
  const indexes = Array.from({ length: slots }, (_, slot) => first + slot).filter(
    (index) => journeys[index] !== undefined,
  )
  // Assistive technology reads the active row, so it stays in the document.
  if (activeIndex !== -1 && !indexes.includes(activeIndex)) indexes.push(activeIndex)

  return (
    <div class={`list ${isWide ? 'is-wide' : ''}`}>
      {isWide && (
        <div class="message-row columns muted" aria-hidden="true">
          {COLUMNS.map((name) => (
            <span key={name} class={NUMBERS.has(name) ? 'number' : ''}>
              {name}
            </span>
          ))}
        </div>
      )}
      <div
        ref={listRef}
        class="rows"
        role="listbox"
        aria-label="Messages, newest first"
        tabIndex={0}
        aria-activedescendant={activeIndex === -1 ? undefined : `row-${activeId}`}
        onScroll={({ currentTarget }) => onScroll(currentTarget)}
      >
        <div class="rows-height" role="presentation" style={{ height: `${journeys.length * rowPx}px` }}>
          {indexes.map((index) => {
            const journey = journeys[index] as Journey
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
              <div
                // The key is the number of a slot, so that the elements of removed rows are reused.
                key={index >= first && index < first + slots ? index % slots : 'active'}
                id={`row-${journey.id}`}
                class="message-row"
                role="option"
                tabIndex={-1}
                aria-selected={journey.id === activeId}
                aria-setsize={journeys.length}
                aria-posinset={index + 1}
                style={{ transform: `translateY(${index * rowPx}px)` }}
                onClick={() => onOpen(journey)}
              >
                {isWide ? <Columns {...journey} /> : <Lines {...journey} />}
              </div>
            )
          })}
        </div>
      </div>
      {top >= rowPx && (
        <button type="button" class="newest" onClick={() => listRef.current?.scrollTo({ top: 0 })}>
          ↑ Newest
        </button>
      )}
    </div>
  )
}

const COLUMNS = ['State', 'Time', 'Path', 'Type', 'Name', 'User', 'Answer', 'Outcome', 'Attempts', 'Retry', 'Took']
const NUMBERS = new Set(['Attempts', 'Retry', 'Took'])

function Columns({ at, rows, current }: Journey) {
  const { attempts, durationMs } = current
  const { type, name, user } = describe(rows)
  return (
    <>
      <RowStateName row={current} />
      <Time at={at}>{formatExactTime(at)}</Time>
      <Cut>
        <Path rows={rows} current={current} />
      </Cut>
      <Cut class="mono">{type ?? '–'}</Cut>
      <Cut>
        <span class="strong">{name && <Text value={name} />}</span> <ReplayTag {...current} />
      </Cut>
      <Cut class="mono">{user && <Text value={user} />}</Cut>
      <span class="mono">{current.status}</span>
      <Cut>
        <Outcome row={current} />
      </Cut>
      <span class="number">{attempts}</span>
      <span class="number">
        <NextAttempt row={current} />
      </span>
      <span class="number muted">{durationMs !== undefined && formatDuration(durationMs)}</span>
    </>
  )
}

function Lines({ at, rows, current }: Journey) {
  const { attempts, retryAt } = current
  const { type, name, user } = describe(rows)
  return (
    <>
      <span class="line">
        <RowStateName row={current} />
        <Cut class="grow">
          <span class="mono">{type ?? 'not a message'}</span>{' '}
          <span class="strong">{name && <Text value={name} />}</span> <ReplayTag {...current} />
        </Cut>
        <Time at={at}>{formatTime(at)}</Time>
      </span>
      <span class="line muted">
        <Cut>
          {current.status !== undefined && <span class="mono">{current.status} </span>}
          <Outcome row={current} />
        </Cut>
        <Cut class="user">{user && <Text value={user} />}</Cut>
        <Cut class="grow">
          <Path rows={rows} current={current} />
        </Cut>
        <span>
          {attempts > 1 && `${attempts} attempts`}
          {attempts > 1 && retryAt !== undefined && ' · '}
          <NextAttempt row={current} />
        </span>
      </span>
    </>
  )
}

function Cut({ class: name = '', children }: { readonly class?: string; readonly children: ComponentChildren }) {
  return <span class={`cut ${name}`}>{children}</span>
}

/** Shows the state of the message at each part, with the name of the current part and the initials of the others. */
function Path({ rows, current }: Pick<Journey, 'rows' | 'current'>) {
  const names = useStore(({ setup }) => setup?.parts)?.map(({ name }) => name) ?? []
  const parts = [...Map.groupBy(rows, ({ part }) => part).values()]
  return (
    <span class="path">
      {parts.map((ofPart) => {
        const row = ofPart.includes(current) ? current : (ofPart.at(-1) as Row)
        return (
          <span key={row.part} title={`${row.part}: ${nameState(row)}`}>
            <Sign state={row.state} />
            {row === current ? (
              <Text value={row.part} />
            ) : (
              <>
                <span class="muted" aria-hidden="true">
                  {formatInitials(row.part, names)}
                </span>
                <span class="unseen">
                  <Text value={row.part} />: {nameState(row)},{' '}
                </span>
              </>
            )}
          </span>
        )
      })}
    </span>
  )
}

function Outcome({ row: { code, state, refusedCalls } }: { readonly row: Row }) {
  if (code !== undefined) return <span class={`state-${state}`}>{formatCode(code, state)}</span>
  if (state === 'ignored') return <span class="state-ignored">no handler</span>
  return refusedCalls === undefined ? null : (
    <span class="state-refused">{formatCount(refusedCalls, 'call')} refused</span>
  )
}
