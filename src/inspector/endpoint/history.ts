/** Messages that were handled: lists them as they are found, and replays them while the page shows how far it is. */

import type { EndpointRequest } from '../../http/endpoint.ts'
import {
  type HandledMessage,
  type HistoryFilter,
  type ReplayOptions,
  requireReplayOptions,
} from '../../inbox/history.ts'
import { HooklineError } from '../../message/error.ts'
import type { Json } from '../../message/json.ts'
import type { Journal } from '../journal.ts'
import type { HandledLine, Problem, ReplayPlan, ReplayRequest, ReplayStatus } from '../wire.ts'
import { Refusal } from './answers.ts'
import { describeBytes, type PartHistory, type WatchedPart } from './queues.ts'
import type { Source } from './stream.ts'

export type PartWithHistory = WatchedPart & { readonly history: PartHistory }

export interface History extends Source {
  /** Yields a line of JSON for each message, 100 at most; at the end a {@link Problem} if it failed. */
  list(part: PartWithHistory, query: URLSearchParams, request: EndpointRequest): AsyncIterable<string>
  /**
   * Counts, with `dryRun`. Else begins: the stream says how far it is.
   *
   * @throws Refusal (as a rejection) for a wrong option.
   */
  replay(part: PartWithHistory, body: Json, request: EndpointRequest): Promise<ReplayPlan | ReplayStatus>
  /** @throws Refusal for a replay that does not run. */
  stop(body: Json): ReplayStatus
  /** Stops the replays: they can be continued with their ids. */
  close(): void
}

interface Running {
  status: ReplayStatus
  readonly controller: AbortController
}

const MAX_LISTED = 100
/** Each may read the whole history. */
const MAX_WALKS = 4
/** The most frequent of a plan. */
const MAX_EVENTS = 20
/** So many that have ended are shown. */
const MAX_ENDED = 10

export function createHistory(journal: Journal, onChange: () => void, report: (thrown: unknown) => void): History {
  const replays = new Map<string, Running>()
  let version = 0
  let walks = 0

  function note(running: Running, change: Partial<ReplayStatus>): void {
    running.status = { ...running.status, ...change }
    version += 1
    onChange()
  }

  /** Returns what ends it. */
  function startWalk(): () => void {
    if (walks >= MAX_WALKS) {
      const text = `The inspector reads ${MAX_WALKS} histories at a time. Got one more. Wait for the others.`
      throw new Refusal(429, text, { 'retry-after': '1' })
    }
    walks += 1
    return () => {
      walks -= 1
    }
  }

  async function count({ history }: PartWithHistory, options: ReplayOptions): Promise<ReplayPlan> {
    const endWalk = startWalk()
    try {
      const { count, types, events } = await history.replay({ ...options, dryRun: true })
      const most = Object.entries(events).sort(([, one], [, other]) => other - one)
      return { count, types, events: Object.fromEntries(most.slice(0, MAX_EVENTS)) }
    } catch (thrown) {
      throw thrown instanceof TypeError ? new Refusal(400, thrown.message) : thrown
    } finally {
      endWalk()
    }
  }

  /** @throws whatever is no fault of the caller or of the engine. */
  function explain(thrown: unknown): string {
    if (thrown instanceof HooklineError || thrown instanceof TypeError || thrown instanceof Refusal)
      return thrown.message
    report(thrown)
    return 'The history failed. Got an unexpected error. Look at the log of the app.'
  }

  function lineOf(part: string, message: HandledMessage): HandledLine {
    const { id, bytes, handledAt, handlers, ignored, replayId, cursor } = message
    const row = journal.rowOf(part, id)
    return {
      ...{ id, handledAt: handledAt.getTime(), handlers, ignored, cursor, ...describeBytes(bytes) },
      ...(replayId !== undefined && { replayId }),
      ...(row !== undefined && { row }),
    }
  }

  async function run({ history }: PartWithHistory, options: ReplayOptions, running: Running): Promise<void> {
    const { signal } = running.controller
    const { count: before } = running.status
    try {
      const onProgress = (count: number): void => note(running, { count: before + count })
      const { count } = await history.replay({ ...options, signal, onProgress })
      note(running, { state: 'complete', count: before + count })
    } catch (thrown) {
      note(running, signal.aborted ? { state: 'stopped' } : { state: 'failed', error: explain(thrown) })
    }
    const ended = [...replays].filter(([, { status }]) => status.state !== 'running')
    for (const [key] of ended.slice(0, -MAX_ENDED)) replays.delete(key)
  }

  return {
    name: 'replays',
    get version() {
      return version
    },
    read: () => [...replays.values()].map(({ status }) => status),

    async *list({ name, history }, query, { signal }) {
      let endWalk = (): void => {}
      try {
        endWalk = startWalk()
        const filter = { ...readFilter(Object.fromEntries(query)), limit: MAX_LISTED, signal } as HistoryFilter
        for await (const message of history.list(filter)) yield `${JSON.stringify(lineOf(name, message))}\n`
      } catch (thrown) {
        if (!signal.aborted) yield `${JSON.stringify({ error: explain(thrown) } satisfies Problem)}\n`
      } finally {
        endWalk()
      }
    },

    async replay(part, body, { signal }) {
      const { dryRun, total, ...given } = body
      const options = readFilter(given) as ReplayOptions
      requireOptions(options)
      if (dryRun === true) return count(part, { ...options, signal })
      if (typeof given.id !== 'string') {
        throw new Refusal(400, '`id` must name the replay. Got none. Send one, so that it can be continued.')
      }
      const key = JSON.stringify([part.name, given.id])
      const before = replays.get(key)?.status
      if (before?.state === 'running') {
        throw new Refusal(409, 'A replay runs once at a time. Got the id of one that runs. Wait for its end.')
      }
      const request = { ...given, part: part.name, dryRun: false, ...(Number.isInteger(total) && { total }) }
      const status: ReplayStatus = {
        request: request as unknown as ReplayRequest,
        state: 'running',
        count: before?.count ?? 0,
      }
      const running = { status, controller: new AbortController() }
      replays.delete(key) // The one that began last is the last.
      replays.set(key, running)
      note(running, {})
      void run(part, options, running)
      return running.status
    },

    stop({ part, id }) {
      const running = replays.get(JSON.stringify([part, id]))
      if (running?.status.state !== 'running') {
        throw new Refusal(404, 'The replay must be one that runs here. Got another one. Reload the page.')
      }
      running.controller.abort()
      return running.status
    },

    close() {
      for (const { controller } of replays.values()) controller.abort()
    },
  }
}

/** @throws Refusal */
function requireOptions(options: ReplayOptions): void {
  try {
    requireReplayOptions(options)
  } catch (error) {
    throw new Refusal(400, (error as TypeError).message)
  }
}

/** Times as dates. What else is wrong, the history says itself. */
function readFilter({ part: _, since, until, ...others }: Json): Json {
  return { ...others, ...toDate('since', since), ...toDate('until', until) }
}

function toDate(name: string, time: unknown): Json {
  return time === undefined ? {} : { [name]: new Date(Number(time)) }
}
