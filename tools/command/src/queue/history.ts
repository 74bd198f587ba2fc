/** Lists the handled messages of a queue for `hookline queue`, and replays them to the running workers. */

import { setTimeout as delay } from 'node:timers/promises'
import type { HandledMessage, MessageFilter, Replay, ReplayOptions } from 'hookline'
import type { InspectedQueue, Queue } from 'hookline/queues'
import { confirm } from '../arguments.ts'
import { counted, escaped, interruption, note, paint, print, printJson, UsageError } from '../terminal.ts'
import { identify, isWhole, nameOf, noteMissing } from './dead-letters.ts'

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

export async function printHistory(
  queue: InspectedQueue,
  filter: MessageFilter,
  { handler, limit = LISTED, json = false }: HistoryOptions,
): Promise<void> {
  const handled = { ...filter, ...(handler !== undefined && { handler }), limit: limit + 1 }
  let count = 0
  for await (const message of queue.history(handled)) {
    count += 1
    if (count > limit) note(`Only the first ${limit} messages are listed. Pass --limit to list more.`)
    else if (json) printJson(summaryOf(message))
    else print(lineOf(message))
  }
  if (count === 0) note(await describeNone(queue))
}

async function describeNone({ history }: InspectedQueue): Promise<string> {
  for await (const _ of history({ limit: 1 })) return 'No message in the history matches.'
  return 'The history of this queue is empty. Set `inbox.history` to keep handled messages.'
}

function summaryOf({ id, bytes, handledAt, receivedAt, handlers, ignored }: HandledMessage): object {
  return { id, handledAt, receivedAt, ...identify(bytes), handlers, ignored }
}

function lineOf({ id, bytes, handledAt, handlers, ignored }: HandledMessage): string {
  const names = handlers.filter((name) => name !== '').join(', ')
  const how = ignored ? 'ignored' : names && `by ${names}`
  return `${handledAt.toISOString()}  ${escaped(id)}  ${nameOf(identify(bytes))}${how && `  (${escaped(how)})`}`
}

/**
 * Replays messages. Without `--yes`, asks for confirmation if there are several. Ctrl-C stops the replay; another run with the same id
 * continues it.
 *
 * @param given The ids of the messages. If empty, all messages that match the options are replayed.
 * @param commandOf Returns the command that continues the replay with this id.
 */
export async function replayMessages(
  queue: InspectedQueue,
  name: string,
  given: readonly string[],
  filter: MessageFilter,
  { handler, id = defaultId(), maxPerSecond, dryRun = false, yes = false, json = false }: HistoryOptions,
  commandOf: (id: string) => string,
  counts: Queue['counts'],
): Promise<void> {
  const ids = given.map((each) => each.toLowerCase())
  const handlers = handler?.split(',')
  const options: ReplayOptions = {
    ...filter,
    id,
    ...(ids.length > 0 && { ids }),
    ...(handlers && { handlers }),
    ...(maxPerSecond !== undefined && { maxPerSecond }),
  }
  requireWhole(ids)
  const found = await queue.replay({ ...options, dryRun: true })
  if (ids.length > 0) await noteUnknown(queue, ids)
  const known = Object.keys(found.handlers)
  const unknown = handlers?.filter((each) => !known.includes(each)) ?? []
  if (found.count > 0 && unknown.length > 0) noteHandlers(unknown, known)
  const what = `${counted(found.count, 'message')} of queue ${escaped(name)}${found.count === 0 ? '' : `: ${partsOf(found)}`}`
  if (dryRun || found.count === 0) {
    if (json) return printJson({ queue: name, action: 'replay', dryRun, ...found, done: 0 })
    return print(found.count > 0 ? `Would replay ${what}.` : await describeNone(queue))
  }
  if (unknown.length > 0 && yes) throw new UsageError(`Nothing was replayed. ${ASK_ANYWAY}`)
  const asks = unknown.length > 0 || (found.count > 1 && !yes)
  if (asks && !(await confirm(`Replay ${what}?`))) throw new UsageError('You did not confirm, so nothing was replayed.')
  const toGoOn = `To continue: ${paint('bold', escaped(commandOf(id)))}`
  const signal = interruption()
  const bar = createBar(found.count)
  let done = 0
  try {
    const onProgress = (count: number): void => {
      done = count
      bar.show(count)
    }
    done = (await queue.replay({ ...options, signal, onProgress })).count
  } catch (error) {
    if (!signal.aborted) {
      note(toGoOn)
      throw error
    }
  } finally {
    bar.finish()
  }
  if (json) printJson({ queue: name, action: 'replay', dryRun, ...found, done })
  else print(`Queued again: ${done === found.count ? what : `${done} of ${what}`}.`)
  if (!signal.aborted && done < found.count) note('An earlier run with this id queued the others.')
  if (!signal.aborted) await noteWaiting(counts, signal)
  else if (!json) print(toGoOn)
}

function requireWhole(ids: readonly string[]): void {
  const found = ids.find((id) => !isWhole(id))
  if (found === undefined) return
  throw new UsageError(
    `The ids of a replay must be complete. Got ${escaped(found)}. Pass ids as \`history\` lists them.`,
  )
}

async function noteUnknown({ history }: InspectedQueue, ids: readonly string[]): Promise<void> {
  const missing = new Set(ids)
  for await (const { id } of history({ ids })) missing.delete(id)
  for (const id of missing) noteMissing(id, 'message in the history')
}

/** Warns about names of handlers that are not in the history. Such handlers may exist: only workers know all handlers. */
function noteHandlers(unknown: readonly string[], known: readonly string[]): void {
  const names = unknown.map((name) => `'${name}'`).join(' and ')
  const others = [...known].sort().join(', ') || 'none'
  note(`${names} handled none of these messages. Named handlers that did: ${escaped(others)}. ${CHECK_NAME}`)
}

const CHECK_NAME = 'Check the name: the messages fail on workers without such a handler.'
const ASK_ANYWAY =
  '--yes does not confirm an unknown handler. For a new handler, run the command on a terminal, or call receiver.replay.'

/** Warns if no worker claims a job within two seconds. */
async function noteWaiting(counts: Queue['counts'], signal: AbortSignal): Promise<void> {
  const { oldestDueAt: first = 0 } = await counts()
  for (const end = performance.now() + TAKEN_MS; performance.now() < end && !signal.aborted; await delay(100)) {
    const { active, oldestDueAt } = await counts()
    if (active > 0 || oldestDueAt === undefined || oldestDueAt > first) return
  }
  if (!signal.aborted) note('No worker has claimed a message yet. Start the app that handles this queue.')
}

/** Returns an id such as `replay-20261124-165103042`. */
function defaultId(): string {
  const digits = new Date().toISOString().replace(/\D/g, '')
  return `replay-${digits.slice(0, 8)}-${digits.slice(8)}`
}

/** Counts the messages of a replay by kind: `2 track Order Completed, 1 identify`. */
function partsOf({ types, events }: Replay): string {
  const { track: _, unreadable: __, ...others } = types // `events` counts the track messages. Unreadable messages are not replayed.
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
const NOTE_AFTER_MS = 5_000
const TAKEN_MS = 2_000

/** Creates a progress bar, which is shown only on a terminal. Prints a note when the replay makes no progress for five seconds. */
function createBar(total: number) {
  const { stderr } = process
  let waiting: NodeJS.Timeout | undefined
  const watch = (): void => {
    clearTimeout(waiting)
    waiting = setTimeout(() => note(`${stderr.isTTY ? '\n' : ''}${WAITING}`), NOTE_AFTER_MS)
  }
  watch()
  return {
    show(count: number): void {
      watch()
      if (!stderr.isTTY) return
      const filled = Math.round((WIDTH * count) / total)
      stderr.write(`\r${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${count} of ${total}`)
    },
    finish(): void {
      clearTimeout(waiting)
      if (stderr.isTTY) stderr.write('\n')
    },
  }
}

const WAITING =
  'Messages that are already waiting are handled first. Check that a worker is running. Ctrl-C stops the replay.'
