/** What the page knows, and how it learns it: the API of the inspector, and its stream. */

import { useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import type { Fault, Problem, QueueStatus, Row, Setup, StreamEvents, Time } from '../wire.ts'
import { keptRows } from './rows.ts'

/** Everything that the views show, apart from what they fetch themselves. */
export interface State {
  /** Undefined until the inspector has answered. */
  readonly setup: Setup | undefined
  /** Why the inspector refused to answer. */
  readonly refusal: string | undefined
  /** `lost`: it is tried again by itself. */
  readonly link: 'connecting' | 'open' | 'lost'
  /** Whether the rows have arrived once. */
  readonly hasRows: boolean
  /** The newest first. */
  readonly rows: readonly Row[]
  readonly queues: readonly QueueStatus[]
  readonly faults: readonly Fault[]
  /** Undefined where the clock cannot be moved. */
  readonly time: Time | undefined
}

const RETRY_MS = 2_000
/** The least time between two pictures. */
const PAUSE_MS = 100

let state: State = {
  setup: undefined,
  refusal: undefined,
  link: 'connecting',
  hasRows: false,
  rows: [],
  queues: [],
  faults: [],
  time: undefined,
}
const listeners = new Set<() => void>()
const rowsById = new Map<number, Row>()
/** Between the clock of this machine and that of the app. */
let offsetMs = 0
let isScheduled = false
let shownAt = Number.NEGATIVE_INFINITY

/** Changes the state. Shows it at once, then once for all changes of the next moment. */
function update(change: Partial<State>): void {
  state = { ...state, ...change }
  if (isScheduled) return
  isScheduled = true
  setTimeout(
    () => {
      isScheduled = false
      shownAt = performance.now()
      if (state.rows === STALE) state = { ...state, rows: sortedRows() }
      for (const listener of [...listeners]) listener()
    },
    shownAt + PAUSE_MS - performance.now(),
  )
}

/** Stands for rows that are sorted before the views see them. */
const STALE: readonly Row[] = []

function sortedRows(): readonly Row[] {
  const rows = keptRows(rowsById.values(), state.setup?.keep)
  if (rows.length === rowsById.size) return rows
  rowsById.clear()
  for (const row of rows) rowsById.set(row.id, row)
  return rows
}

/** Returns a part of the state, and renders the component again when that part changes. */
export function useStore<Part>(select: (state: State) => Part): Part {
  const [, render] = useReducer((count: number) => count + 1, 0)
  const part = select(state)
  const latest = useRef({ select, part })
  latest.current = { select, part }
  useLayoutEffect(() => {
    const check = (): void => {
      if (latest.current.select(state) !== latest.current.part) render(undefined)
    }
    listeners.add(check)
    check()
    return () => void listeners.delete(check)
  }, [])
  return part
}

/** The time by the clock of the app, in milliseconds. */
export function now(): number {
  return state.time?.now ?? Date.now() + offsetMs
}

/** What the inspector answered instead of what was asked for. Its message is for the reader of the page. */
class ApiError extends Error {
  override readonly name = 'ApiError'
  /** Undefined: it did not answer. */
  readonly status: number | undefined

  constructor(message: string, status: number | undefined) {
    super(message)
    this.status = status
  }
}

/**
 * Reads from the API: `get('message', { id })`.
 *
 * @throws ApiError
 */
export async function get<Answer>(
  path: string,
  query: Readonly<Record<string, string | number | undefined>> = {},
): Promise<Answer> {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  const search = new URLSearchParams(pairs).toString()
  return await call<Answer>(`api/${path}${search === '' ? '' : `?${search}`}`, {})
}

/**
 * Changes something through the API.
 *
 * @throws ApiError
 */
export async function post<Answer>(path: string, body: unknown): Promise<Answer> {
  const headers = { 'content-type': 'application/json', 'x-hookline-inspector': '1' }
  return await call<Answer>(`api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function call<Answer>(url: string, init: RequestInit): Promise<Answer> {
  let response: Response
  let answer: unknown
  try {
    response = await fetch(url, init)
    answer = await response.json().catch(() => undefined)
  } catch {
    throw new ApiError('The server did not answer. Try again when it runs.', undefined)
  }
  noteDate(response.headers.get('date'))
  if (response.ok) return answer as Answer
  const problem = answer as Partial<Problem> | undefined
  throw new ApiError(problem?.error ?? `The server answered ${response.status}.`, response.status)
}

/** A `Date` has whole seconds: smaller differences say nothing. */
function noteDate(date: string | null): void {
  const difference = date === null ? 0 : Date.parse(date) + 500 - Date.now()
  if (Math.abs(difference) > 1_500) offsetMs = difference
}

/** Connects to the stream, and again whenever it ends. */
export function connect(): void {
  const source = new EventSource('api/stream')
  const on = <Name extends keyof StreamEvents>(name: Name, read: (data: StreamEvents[Name]) => void): void => {
    source.addEventListener(name, (event) => read(JSON.parse(event.data)))
  }
  source.addEventListener('open', () => {
    update({ link: 'open' })
    void loadSetup()
  })
  source.addEventListener('error', () => {
    if (state.link !== 'lost') update({ link: 'lost' })
    if (source.readyState !== EventSource.CLOSED) return
    // Refused, not interrupted: a browser does not try that again.
    void loadSetup()
    setTimeout(connect, RETRY_MS)
  })
  on('rows', ({ isReset, rows }) => {
    if (isReset) rowsById.clear()
    for (const row of rows) rowsById.set(row.id, row)
    update({ rows: STALE, hasRows: true })
  })
  on('queues', (queues) => update({ queues }))
  on('faults', (faults) => update({ faults }))
  on('time', showTime)
}

/** Takes the time that the inspector answered to a change of it. */
export function showTime(time: Time): void {
  update({ time })
}

async function loadSetup(): Promise<void> {
  try {
    const setup = await get<Setup>('setup')
    update({ setup, refusal: undefined })
    if (setup.time !== undefined) showTime(setup.time)
  } catch (error) {
    if (error instanceof ApiError && error.status !== undefined) update({ refusal: error.message })
  }
}
