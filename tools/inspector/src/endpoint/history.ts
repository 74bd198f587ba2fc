/** Lists handled messages as they are found, and replays them while the page shows the progress. */

import { type HandledMessage, type HistoryFilter, HooklineError, type ReplayOptions } from 'hookline'
import { type Json, readField } from '../../../json.ts'
import type { Journal } from '../journal.ts'
import type { HandledLine, Problem, ReplayPlan, ReplayRequest, ReplayStatus } from '../wire.ts'
import { Refusal, refuseUnless } from './answers.ts'
import type { PageRequest } from './listener.ts'
import { describeBytes, type PartHistory, type WatchedPart } from './queues.ts'

export type PartWithHistory = WatchedPart & { readonly history: PartHistory }

interface Running {
  status: ReplayStatus
  readonly controller: AbortController
}

const MAX_LISTED = 100
/** The maximum number of simultaneous walks through histories. Each walk may read a whole history. */
const MAX_WALKS = 4
/** The maximum number of events to list in the plan of a replay. The most frequent events are listed. */
const MAX_EVENTS = 20
/** The maximum number of ended replays to show. */
const MAX_ENDED = 10

export function createHistory(journal: Journal, onChange: () => void, report: (thrown: unknown) => void) {
  const replays = new Map<string, Running>()
  let version = 0
  let walks = 0

  function note(running: Running, change: Partial<ReplayStatus>): void {
    running.status = { ...running.status, ...change }
    version += 1
    onChange()
  }

  /** Starts a walk through a history. Returns a function that ends the walk. */
  function startWalk(): () => void {
    const text = `The inspector is already reading ${MAX_WALKS} histories. Wait until one is read, then try again.`
    refuseUnless(walks < MAX_WALKS, 429, text, { 'retry-after': '1' })
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

  /** Describes an error. Reports the error unless the caller or the engine caused it. */
  function explain(thrown: unknown): string {
    if (thrown instanceof HooklineError || thrown instanceof TypeError || thrown instanceof Refusal)
      return thrown.message
    report(thrown)
    return 'The history failed unexpectedly. See the log of the app.'
  }

  function lineOf(part: string, message: HandledMessage): HandledLine {
    const { id, bytes, handledAt, handlers, ignored, cursor } = message
    const row = journal.find(part, id)?.id
    return {
      ...{ id, handledAt: handledAt.getTime(), handlers, ignored, cursor, ...describeBytes(bytes) },
      ...(row !== undefined && { row }),
    }
  }

  async function runReplay({ history }: PartWithHistory, options: ReplayOptions, running: Running): Promise<void> {
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
    name: 'replays' as const,
    get version(): number {
      return version
    },
    snapshot: (): readonly ReplayStatus[] => [...replays.values()].map(({ status }) => status),

    /** Yields a line of JSON for each of at most 100 messages, and a {@link Problem} at the end if the history failed. */
    async *list({ name, history }: PartWithHistory, query: URLSearchParams, { signal }: PageRequest) {
      let endWalk = (): void => {}
      try {
        endWalk = startWalk()
        const filter = { ...readFilter(Object.fromEntries(query)), limit: MAX_LISTED, signal } as HistoryFilter
        for await (const message of history.list(filter)) {
          yield `${JSON.stringify(lineOf(name, message))}\n`
        }
      } catch (thrown) {
        if (!signal.aborted) yield `${JSON.stringify({ error: explain(thrown) } satisfies Problem)}\n`
      } finally {
        endWalk()
      }
    },

    /**
     * Starts a replay. The page follows its progress in the stream of changes. With `dryRun`, only counts the messages.
     *
     * @throws Refusal (as a rejection) for an invalid option.
     */
    async replay(part: PartWithHistory, body: Json, { signal }: PageRequest): Promise<ReplayPlan | ReplayStatus> {
      const { dryRun, total, ...others } = body
      // The end is fixed, so that a later call with the same id continues with the same messages.
      const given: Json = { until: journal.now() + 1, ...others }
      const options = readFilter(given) as ReplayOptions
      if (dryRun === true) return count(part, { ...options, signal })
      const advice = 'Send an id, so that the replay can be continued.'
      refuseUnless(typeof given.id === 'string', 400, `\`id\` must name the replay. ${advice}`)
      await requireOptions(part, options)
      const key = JSON.stringify([part.name, given.id])
      const before = replays.get(key)?.status
      const text = 'A replay with this id is already running. Wait until it ends.'
      refuseUnless(before?.state !== 'running', 409, text)
      const request = { ...given, part: part.name, dryRun: false, ...(Number.isInteger(total) && { total }) }
      const status: ReplayStatus = {
        request: request as unknown as ReplayRequest,
        state: 'running',
        count: before?.count ?? 0,
      }
      const running = { status, controller: new AbortController() }
      replays.delete(key) // Without this line, a continued replay would keep its old place in the list.
      replays.set(key, running)
      note(running, {})
      void runReplay(part, options, running)
      return running.status
    },

    /** @throws Refusal for a replay that is not running. */
    stop({ part, id }: Json): ReplayStatus {
      const running = replays.get(JSON.stringify([part, id]))
      const text = 'No replay with this id is running in this process. Reload the page.'
      refuseUnless(running?.status.state === 'running', 404, text)
      running.controller.abort()
      return running.status
    },

    /** Stops the replays. They can be continued with the same ids. */
    close(): void {
      for (const { controller } of replays.values()) controller.abort()
    },
  }
}

/**
 * Checks the options with a replay that ends before it reads anything.
 *
 * @throws Refusal (as a rejection) for an invalid option.
 */
async function requireOptions({ history }: PartWithHistory, options: ReplayOptions): Promise<void> {
  const signal = AbortSignal.abort()
  const thrown: unknown = await history.replay({ ...options, dryRun: true, signal }).catch((error: unknown) => error)
  if (thrown instanceof TypeError) throw new Refusal(400, thrown.message)
  if (thrown !== signal.reason) throw thrown
}

/**
 * Converts times to dates, and the text of `where` to a field and its value. The history checks everything else.
 *
 * @throws Refusal for an invalid `where`.
 */
function readFilter({ part: _, since, until, where, ...others }: Json): Json {
  return { ...others, ...toDate('since', since), ...toDate('until', until), ...toFields(where) }
}

function toFields(where: unknown): Json {
  if (where === undefined) return {}
  const field = readField(`${where}`)
  const rule = '`where` must be a path and a value with = between them, such as properties.order_id=42.'
  refuseUnless(field !== undefined, 400, rule)
  return { where: Object.fromEntries([field]) }
}

function toDate(name: string, time: unknown): Json {
  return time === undefined ? {} : { [name]: new Date(Number(time)) }
}
