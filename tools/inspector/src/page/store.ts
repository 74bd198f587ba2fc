/** Keeps the state of the page. Reads the stream and the API of the inspector, and has the hooks that components use. */

import { useCallback, useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { Problem, QueueStatus, ReplayStatus, Row, Setup, StreamEvents } from '../wire.ts'
import { keptRows } from './filter.ts'
import { type Journey, joinRows } from './journeys.ts'

export interface State {
  /** The setup; undefined until the inspector has answered. */
  readonly setup: Setup | undefined
  readonly refusal: string | undefined
  /** The state of the connection. When it is `lost`, the page reconnects automatically. */
  readonly link: 'connecting' | 'open' | 'lost'
  /** Whether the first rows have arrived from the stream. */
  readonly hasRows: boolean
  readonly rows: readonly Row[]
  /** The rows, grouped by message. */
  readonly journeys: readonly Journey[]
  readonly queues: readonly QueueStatus[]
  readonly replays: readonly ReplayStatus[]
}

const RETRY_MS = 1_000
const PAUSE_MS = 100

const TOKEN = /^#token=(.+)/
/** The header with the token from the fragment of the inspector's URL. The token is stored only in this tab, for this origin. */
const OWN_HEADERS: Readonly<Record<string, string>> = { 'x-hookline-inspector': readToken() }
addEventListener('hashchange', () => TOKEN.test(location.hash) && location.reload())

function readToken(): string {
  const key = `hookline-token ${location.pathname}`
  const [, token] = TOKEN.exec(location.hash) ?? []
  try {
    if (token !== undefined) sessionStorage.setItem(key, token)
    return token ?? sessionStorage.getItem(key) ?? '1'
  } catch {
    return token ?? '1' // The browser does not allow storage, so a reload needs the complete URL again.
  } finally {
    if (token !== undefined) history.replaceState(null, '', '#/')
  }
}

let state: State = {
  setup: undefined,
  refusal: undefined,
  link: 'connecting',
  hasRows: false,
  rows: [],
  journeys: [],
  queues: [],
  replays: [],
}
const listeners = new Set<() => void>()
let rowsById = new Map<number, Row>()
let isSorted = true
/** The time by which the clock of the app is ahead of the clock of the browser, in milliseconds. */
let offsetMs = 0
let isScheduled = false
let renderedAt = Number.NEGATIVE_INFINITY

/** Changes the state. The first change is rendered at once. Changes that follow soon are rendered together. */
function update(change: Partial<State>): void {
  state = { ...state, ...change }
  if (isScheduled) return
  isScheduled = true
  setTimeout(
    () => {
      isScheduled = false
      renderedAt = performance.now()
      if (!isSorted) sortRows()
      for (const listener of [...listeners]) listener()
    },
    renderedAt + PAUSE_MS - performance.now(),
  )
}

function sortRows(): void {
  const rows = keptRows(rowsById.values(), state.setup?.keep)
  if (rows.length < rowsById.size) rowsById = new Map(rows.map((row) => [row.id, row]))
  isSorted = true
  const before = new Map(state.journeys.map((journey) => [journey.id, journey]))
  state = { ...state, rows, journeys: joinRows(rows, before) }
}

/** Returns a selected part of the state. The component is rendered again when that part changes. */
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

/** Returns the time of the app's clock in milliseconds. The component is rendered again every `everyMs` milliseconds. */
export function useNow(everyMs = 1_000): number {
  const [, tick] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    const timer = window.setInterval(tick, everyMs)
    return () => window.clearInterval(timer)
  }, [everyMs])
  return nowOfApp()
}

/** Returns the time of the app's clock in milliseconds. */
export function nowOfApp(): number {
  return Date.now() + offsetMs
}

type Query = Readonly<Record<string, string | number | undefined>>

export interface Answered<Answer> {
  /** The latest answer; undefined before the first answer. After the query changes, the old answer stays until the new answer arrives. */
  readonly answer?: Answer
  readonly error?: string
  /** Requests the answer again. */
  reload(): void
}

/**
 * Requests an answer from the API, and again when the query changes. Sends requests only while the page is visible.
 *
 * @param path The path below `api/`; undefined to request nothing.
 * @param again Other reasons to request the answer again: every `everyMs` milliseconds, and when the value of `cause` changes.
 */
export function useAnswer<Answer>(
  path: string | undefined,
  query: Query,
  { everyMs, cause }: { readonly everyMs?: number; readonly cause?: unknown } = {},
): Answered<Answer> {
  const [answered, setAnswered] = useState<{ readonly answer?: Answer; readonly error?: string }>({})
  const [turn, reload] = useReducer((count: number) => count + 1, 0)
  const url = path && urlOf(path, query)
  useEffect(() => {
    if (url === undefined) return
    let isCurrent = true
    let isDue = true
    const ask = async (): Promise<void> => {
      isDue = document.hidden
      if (isDue) return
      const next = await call<Answer>(url).then(
        (answer) => ({ answer }),
        ({ message: error }: Error) => ({ error }),
      )
      if (isCurrent) setAnswered((before) => ('error' in next ? { ...before, ...next } : next))
    }
    const onVisible = (): void => void (isDue && ask())
    void ask()
    const timer = everyMs && window.setInterval(() => void ask(), everyMs)
    document.addEventListener('visibilitychange', onVisible)
    return () => {
      isCurrent = false
      window.clearInterval(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [url, everyMs, cause, turn])
  return { ...answered, reload: useCallback(() => reload(undefined), []) }
}

export interface Action {
  readonly isBusy: boolean
  readonly error: string | undefined
  setError(error: string | undefined): void
  /** Posts to the API. On failure, sets `error` and resolves to undefined. */
  post<Answer>(path: string, body: unknown): Promise<Answer | undefined>
}

export function useAction(): Action {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<string>()
  return {
    isBusy,
    error,
    setError,
    async post(path, body) {
      setError(undefined)
      setBusy(true)
      try {
        const headers = { 'content-type': 'application/json' }
        return await call(`api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      } catch (thrown) {
        setError((thrown as Error).message)
        return undefined
      } finally {
        setBusy(false)
      }
    },
  }
}

/** An error that the inspector sent. The message of the error is meant for the user. */
class Refused extends Error {}

async function call<Answer>(url: string, init: RequestInit = {}): Promise<Answer> {
  const headers = { ...init.headers, ...OWN_HEADERS }
  const response = await fetch(url, { ...init, headers }).catch(() => {
    throw new Error('The server did not answer. Try again when it is running.')
  })
  const answer: unknown = await response.json().catch(() => undefined)
  if (response.ok) return answer as Answer
  const { error = `The server answered ${response.status}. Try again later.` } = (answer ?? {}) as Partial<Problem>
  throw new Refused(error)
}

/**
 * Reads lines of JSON as they arrive.
 *
 * @returns The error that the inspector sent instead of lines, or after the lines; undefined if there was no error.
 */
export async function readLines<Line>(
  path: string,
  query: Query,
  signal: AbortSignal,
  onLines: (lines: readonly Line[]) => void,
): Promise<string | undefined> {
  try {
    const response = await fetch(urlOf(path, query), { headers: OWN_HEADERS, signal })
    if (!response.ok || response.body === null) return ((await response.json()) as Problem).error
    for await (const lines of readParts(response.body, '\n')) {
      const parsed = lines.map((line) => JSON.parse(line) as Line & Partial<Problem>)
      onLines(parsed.filter((line) => line.error === undefined))
      const error = parsed.find((line) => line.error !== undefined)?.error
      if (error !== undefined) return error
    }
    return undefined
  } catch {
    return 'The server did not answer. Try again when it is running.'
  }
}

function urlOf(path: string, query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return `api/${path}?${new URLSearchParams(pairs)}`
}

/** Reads the stream, and reconnects whenever it ends. */
export async function connect(): Promise<never> {
  for (;;) {
    await readStream().catch(() => {})
    if (state.link !== 'lost') update({ link: 'lost' })
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

/** The event id of the latest rows. A new stream continues after these rows. */
let lastEventId = ''

async function readStream(): Promise<void> {
  const response = await fetch('api/stream', { headers: { ...OWN_HEADERS, 'last-event-id': lastEventId } })
  if (response.ok) update({ link: 'open' })
  void loadSetup() // If the stream was refused, this request shows why.
  if (!response.ok || response.body === null) return
  for await (const events of readParts(response.body, '\n\n')) for (const event of events) readEvent(event)
}

/** Yields the parts of a stream between separators, as the parts arrive. */
async function* readParts(stream: ReadableStream<BufferSource>, separator: string): AsyncGenerator<readonly string[]> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  for (let text = ''; ; ) {
    const { done, value } = await reader.read()
    if (done) return
    const parts = (text + value).split(separator)
    text = parts.pop() ?? ''
    yield parts
  }
}

function readEvent(text: string): void {
  const lines = text.split('\n').map((line) => /^(\w+): (.*)/.exec(line)?.slice(1) ?? ['', ''])
  const { event, id, data = '' } = Object.fromEntries(lines)
  if (Object.hasOwn(TAKE, event)) TAKE[event as keyof StreamEvents](JSON.parse(data))
  if (id !== undefined && lastEventId !== '' && id.split('.')[0] !== lastEventId.split('.')[0]) stopReplays()
  lastEventId = id ?? lastEventId
}

/** Marks running replays as stopped, because the process that ran them has ended. */
function stopReplays(): void {
  const replays = state.replays.map((replay) =>
    replay.state === 'running' ? { ...replay, state: 'stopped' as const } : replay,
  )
  update({ replays })
}

const TAKE: { readonly [Name in keyof StreamEvents]: (data: StreamEvents[Name]) => void } = {
  rows({ isReset, rows }) {
    if (isReset) rowsById.clear()
    for (const row of rows) rowsById.set(row.id, row)
    isSorted = false
    update({ hasRows: true })
  },
  queues: (queues) => update({ queues }),
  replays: (replays) => update({ replays }),
}

async function loadSetup(): Promise<void> {
  try {
    const setup = await call<Setup>('api/setup')
    offsetMs = setup.now - Date.now()
    update({ setup, refusal: undefined })
  } catch (error) {
    if (error instanceof Refused) update({ refusal: error.message })
  }
}
