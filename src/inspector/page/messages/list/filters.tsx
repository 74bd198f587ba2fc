/** The bar above the list: search, filters, pause. */

import type { RefObject } from 'preact'
import { useState } from 'preact/hooks'
import type { Row } from '../../../wire.ts'
import { useStore } from '../../connection.ts'
import { formatNumber } from '../../format.ts'
import { STATES } from '../../parts.tsx'
import { countFilters, type FilterName, withFilter } from './filter.ts'

const TYPES = ['page', 'screen', 'identify', 'track', 'alias', 'group', 'delete', 'batch']

interface FiltersProps {
  readonly query: URLSearchParams
  readonly onQuery: (query: URLSearchParams) => void
  readonly searchRef: RefObject<HTMLInputElement>
  /** Of all rows, and of those that the filters let pass. */
  readonly all: readonly Row[]
  readonly shown: number
  readonly isPaused: boolean
  /** How many came since the pause. */
  readonly fresh: number
  readonly onPause: () => void
}

/** Draws the bar. */
export function Filters({ query, onQuery, searchRef, all, shown, isPaused, fresh, onPause }: FiltersProps) {
  const [isOpen, setIsOpen] = useState(false)
  const parts = useStore((state) => state.setup?.parts)
  const set = (name: FilterName, value: string): void => onQuery(withFilter(query, name, value))
  const count = countFilters(query) - (query.has('text') ? 1 : 0)
  const isFiltered = countFilters(query) > 0
  const sample = all.find(({ state }) => state === 'done')?.of

  const select = (name: FilterName, label: string, options: readonly (readonly [string, string])[]) => (
    <label>
      {label}
      <select value={query.get(name) ?? ''} onChange={({ currentTarget }) => set(name, currentTarget.value)}>
        <option value="">Any</option>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
  const input = (name: FilterName, label: string, placeholder: string, list?: string) => (
    <label>
      {label}
      <input
        value={query.get(name) ?? ''}
        placeholder={placeholder}
        list={list}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => set(name, currentTarget.value)}
      />
    </label>
  )

  return (
    <search class="filters">
      <div class="row">
        <input
          ref={searchRef}
          class="search"
          type="search"
          aria-label="Search messages"
          placeholder="Search ( / )"
          value={query.get('text') ?? ''}
          onInput={({ currentTarget }) => set('text', currentTarget.value)}
        />
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          Filters{count > 0 && <span class="badge chosen">{count}</span>}
        </button>
        <button type="button" aria-pressed={isPaused} title="Key: p" onClick={onPause}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
        <output class="count">
          {isFiltered ? `${formatNumber(shown)} of ${formatNumber(all.length)}` : formatNumber(all.length)}
          {isPaused && ` · ${formatNumber(fresh)} new`}
          {sample !== undefined && (
            <span title="Of messages that succeed. What fails, is refused or tried again is all here.">
              {` · 1 of ${formatNumber(sample)} shown`}
            </span>
          )}
        </output>
      </div>
      {isOpen && (
        <div class="fields">
          {select('state', 'State', Object.entries(STATES))}
          {select('type', 'Type', [...TYPES.map((type) => [type, type] as const), ['none', 'not a message']])}
          {select('part', 'Part', parts?.map(({ name }) => [name.toLowerCase(), name] as const) ?? [])}
          {input('event', 'Event', 'Order Completed', 'event-names')}
          {input('user', 'User', 'user-1')}
          {input('status', 'Status', '503 or 5xx')}
          <datalist id="event-names">
            {namesOf(all).map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          {isFiltered && (
            <button type="button" class="quiet" onClick={() => onQuery(new URLSearchParams())}>
              Clear filters
            </button>
          )}
        </div>
      )}
    </search>
  )
}

function namesOf(rows: readonly Row[]): readonly string[] {
  const names = new Set<string>()
  for (const { name } of rows) if (name !== undefined && names.size < 50) names.add(name)
  return [...names].sort()
}
