/** Which rows the list shows, as the query of the URL says. */

import type { Row } from '../../../wire.ts'
import { formatLiteral } from '../../format.ts'

/** The names of the filters in the query. */
const FILTERS = ['text', 'state', 'type', 'part', 'event', 'user', 'status'] as const

/** The name of a filter in the query. */
export type FilterName = (typeof FILTERS)[number]

/** How many filters are set. */
export function countFilters(query: URLSearchParams): number {
  return FILTERS.filter((name) => query.has(name)).length
}

/** Returns the query with a filter set, or without it when the value is empty. */
export function withFilter(query: URLSearchParams, name: FilterName, value: string): URLSearchParams {
  const next = new URLSearchParams(query)
  if (value === '') next.delete(name)
  else next.set(name, value)
  return next
}

/** Returns what says whether a row passes all filters. */
export function filterOf(query: URLSearchParams): (row: Row) => boolean {
  const wanted = FILTERS.map((name) => [name, query.get(name)?.trim().toLowerCase() ?? ''] as const)
  const tests = wanted.filter(([, value]) => value !== '').map(([name, value]) => testOf(name, value))
  return (row) => tests.every((test) => test(row))
}

function testOf(name: FilterName, value: string): (row: Row) => boolean {
  if (name === 'text') {
    const words = value.split(/\s+/)
    return (row) => words.every((word) => textOf(row).includes(word))
  }
  if (name === 'state') return ({ state }) => state === value
  if (name === 'type') return ({ type }) => (type ?? 'none') === value
  if (name === 'part') return ({ part }) => part.toLowerCase() === value
  if (name === 'event') return (row) => row.name?.toLowerCase().includes(value) ?? false
  if (name === 'user') return ({ user }) => user?.toLowerCase().includes(value) ?? false
  // 503, 50, 5xx.
  const digits = value.replaceAll('x', '')
  return ({ status }) => status !== undefined && String(status).startsWith(digits)
}

const texts = new WeakMap<Row, string>()

/** What the row shows, in lower case. */
function textOf(row: Row): string {
  const known = texts.get(row)
  if (known !== undefined) return known
  const { id, kind, part, state, type, name, user, status, code } = row
  const reason = code === undefined ? undefined : `${code} ${formatLiteral(code)}`
  const shown = [id, kind, part, state, type, name, user, status, reason]
  const text = shown.filter((each) => each !== undefined).join('\n')
  texts.set(row, text.toLowerCase())
  return text.toLowerCase()
}
