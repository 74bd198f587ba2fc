/** Selects the rows that the page keeps, and the messages that the list shows for the query in the URL. */

import type { ReceivedMessage } from 'hookline'
import type { Row, Setup } from '../wire.ts'
import { formatLiteral } from './format.ts'
import type { Journey } from './journeys.ts'

/** The seven message types, and `custom` for any other message. */
export const TYPES = [
  'page',
  'screen',
  'identify',
  'track',
  'alias',
  'group',
  'delete',
  'custom',
] as const satisfies readonly ReceivedMessage['type'][]

/** Returns the newest rows within the limits of the inspector. Refused requests displace only other refused requests. */
export function keptRows(rows: Iterable<Row>, keep?: Setup['keep']): readonly Row[] {
  const sorted = [...rows].sort((one, other) => other.id - one.id)
  const left = { messages: Number.POSITIVE_INFINITY, refused: Number.POSITIVE_INFINITY, ...keep }
  const kept = sorted.filter(({ isRefused = false }) => {
    const pool = isRefused ? 'refused' : 'messages'
    left[pool] -= 1
    return left[pool] >= 0
  })
  return kept.sort((one, other) => other.at - one.at)
}

const FILTERS = ['text', 'state', 'type', 'part', 'event', 'user', 'status'] as const

export type FilterName = (typeof FILTERS)[number]

export function countFilters(query: URLSearchParams): number {
  return FILTERS.filter((name) => query.has(name)).length
}

/** Returns the query with a filter set, or without the filter when the value is empty. */
export function withFilter(query: URLSearchParams, name: FilterName, value: string): URLSearchParams {
  const next = new URLSearchParams(query)
  if (value === '') next.delete(name)
  else next.set(name, value)
  return next
}

/**
 * Returns a filter for messages. A single row of a message must meet all conditions. If the query has a state but no
 * part, the current row must meet them.
 */
export function filterOf(query: URLSearchParams): (journey: Journey) => boolean {
  const wanted = FILTERS.map((name) => [name, query.get(name)?.trim().toLowerCase() ?? ''] as const)
  const set = wanted.filter(([, value]) => value !== '')
  const tests = set.map(([name, value]) => testOf(name, value))
  const isOfCurrent = set.some(([name]) => name === 'state') && !set.some(([name]) => name === 'part')
  return ({ rows, current }) => (isOfCurrent ? [current] : rows).some((row) => tests.every((test) => test(row)))
}

function testOf(name: FilterName, value: string): (row: Row) => boolean {
  switch (name) {
    case 'text': {
      const words = value.split(/\s+/)
      return (row) => words.every((word) => textOf(row).includes(word))
    }
    case 'state':
      return ({ state }) => state === value
    case 'type':
      return ({ type }) => (type ?? 'none') === value
    case 'part':
      return ({ part }) => part.toLowerCase() === value
    case 'event':
      return (row) => row.name?.toLowerCase().includes(value) ?? false
    case 'user':
      return ({ user }) => user?.toLowerCase().includes(value) ?? false
    case 'status': // For example, the value is 503, 50 or 5xx.
      return ({ status }) => String(status ?? '').startsWith(value.replaceAll('x', '')) && status !== undefined
  }
}

const texts = new WeakMap<Row, string>()

function textOf(row: Row): string {
  const { id, kind, part, state, type, name, user, status, code = '', replayId } = row
  const shown = [id, kind, part, state, type, name, user, status, code, formatLiteral(code), replayId]
  const text = texts.get(row) ?? shown.join('\n').toLowerCase()
  texts.set(row, text)
  return text
}
