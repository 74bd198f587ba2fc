/** The history of `hookline queue`: lists messages that were handled, and replays them to the workers that run. */

import {
  type HandledMessage,
  listHistory,
  type Replay,
  type ReplayOptions,
  replay,
  requireReplayOptions,
} from '../../inbox/history.ts'
import type { Queue, QueueHistory } from '../../queues/api.ts'
import type { MessageFilter } from '../../queues/filter.ts'
import { systemClock } from '../../time/clock.ts'
import { confirm } from '../arguments.ts'
import { counted, escaped, interruption, note, paint, print, printJson, UsageError } from '../terminal.ts'
import { identify, nameOf } from './dead-letters.ts'

export interface HistoryOptions {
  readonly handler?: string
  readonly id?: string
  readonly limit?: number
  readonly maxPerSecond?: number
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly json?: boolean
}

const LISTED = 100

/** @throws UsageError for an engine without one. */
function historyOf({ history }: Queue): QueueHistory {
  if (history === undefined) throw new UsageError('The engine of this queue keeps no history.')
  return history
}

export async function printHistory(
  queue: Queue,
  filter: MessageFilter,
  { handler, limit = LISTED, json = false }: HistoryOptions,
): Promise<void> {
  const handled = { ...filter, ...(handler !== undefined && { handler }), limit: limit + 1 }
  let count = 0
  for await (const message of listHistory(historyOf(queue), handled)) {
    count += 1
    if (count > limit) note(`Only the first ${limit} are listed: see --limit.`)
    else if (json) printJson(summaryOf(message))
    else print(lineOf(message))
  }
  if (count === 0)
    note('No message in the history matches. It has messages that were handled while `inbox.history` was set.')
}

function summaryOf({ id, bytes, handledAt, receivedAt, handlers, ignored, replayId }: HandledMessage): object {
  return { id, handledAt, receivedAt, ...identify(bytes), handlers, ignored, replayId }
}

function lineOf({ id, bytes, handledAt, handlers, ignored, replayId }: HandledMessage): string {
  const names = handlers.filter((name) => name !== '').join(', ')
  const how = [ignored && 'ignored', names && `by ${names}`, replayId && `replay ${replayId}`]
    .filter(Boolean)
    .join(', ')
  return `${handledAt.toISOString()}  ${escaped(id)}  ${nameOf(identify(bytes))}${how && `  (${escaped(how)})`}`
}

/**
 * Replays messages, after a question when they are more than one. Ctrl-C stops it; the same id goes on.
 *
 * @param ids Those with these ids alone, when there are any.
 */
export async function replayMessages(
  queue: Queue,
  name: string,
  ids: readonly string[],
  filter: MessageFilter,
  { handler, id = defaultId(), maxPerSecond, dryRun = false, yes = false, json = false }: HistoryOptions,
): Promise<void> {
  const context = { queue: { counts: queue.counts, history: historyOf(queue) }, clock: systemClock }
  const options: ReplayOptions = {
    ...filter,
    id,
    ...(ids.length > 0 && { ids }),
    ...(handler !== undefined && { handlers: handler.split(',') }),
    ...(maxPerSecond !== undefined && { maxPerSecond }),
  }
  requireReplayOptions(options)
  const found = await replay(context, { ...options, dryRun: true })
  const what = `${counted(found.count, 'message')} of queue ${escaped(name)}${found.count === 0 ? '' : `: ${partsOf(found)}`}`
  if (dryRun || found.count === 0) {
    if (json) return printJson({ queue: name, action: 'replay', dryRun, ...found, done: 0 })
    return print(found.count === 0 ? 'No messages to replay.' : `Would replay ${what}.`)
  }
  if (found.count > 1 && !yes && !(await confirm(`Replay ${what}?`))) throw new UsageError('Nothing was replayed.')
  const signal = interruption()
  const bar = createBar(found.count)
  let done = 0
  try {
    const onProgress = (count: number): void => {
      done = count
      bar.show(count)
    }
    done = (await replay(context, { ...options, signal, onProgress })).count
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    bar.end()
  }
  if (json) return printJson({ queue: name, action: 'replay', dryRun, ...found, done })
  print(`Replayed: ${done === found.count ? what : `${done} of ${what}`}. Running workers handle them.`)
  if (signal.aborted) print(`To go on, run the command again with ${paint('bold', `--id ${id}`)}.`)
}

/** `replay-20261124-165103`. */
function defaultId(): string {
  const [date = '', time = ''] = new Date()
    .toISOString()
    .replace(/[-:]|\..*/g, '')
    .split('T')
  return `replay-${date}-${time}`
}

/** `2 track Order Completed, 1 identify`. */
function partsOf({ types, events }: Replay): string {
  const { track: _, ...others } = types
  const parts = [
    ...Object.entries(events).map(([event, count]) => [`track ${event}`, count] as const),
    ...Object.entries(others),
  ]
  const sorted = parts.sort(([, one], [, other]) => other - one)
  const listed = sorted.slice(0, MOST_PARTS).map(([part, count]) => `${count} ${escaped(part)}`)
  return [...listed, ...(sorted.length > MOST_PARTS ? ['others'] : [])].join(', ')
}

const MOST_PARTS = 8
const WIDTH = 30
const PATIENCE_MS = 10_000

/** A bar on a terminal; elsewhere only what keeps the replay waiting. */
function createBar(total: number) {
  const { stderr } = process
  let waiting: NodeJS.Timeout | undefined
  const watch = (): void => {
    clearTimeout(waiting)
    waiting = setTimeout(() => note(`${stderr.isTTY ? '\n' : ''}${WAITING}`), PATIENCE_MS)
  }
  watch()
  return {
    show(count: number): void {
      watch()
      if (!stderr.isTTY) return
      const filled = Math.round((WIDTH * count) / total)
      stderr.write(`\r${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${count} of ${total}`)
    },
    end(): void {
      clearTimeout(waiting)
      if (stderr.isTTY) stderr.write('\n')
    },
  }
}

const WAITING =
  'The messages that were replayed so far wait to be handled. Check that a worker runs. Ctrl-C stops the replay.'
