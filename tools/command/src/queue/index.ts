/** `hookline queue`: counts the waiting messages of a queue, lists and redrives its dead letters, and replays its history. */

import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { type FieldValue, HooklineError, MESSAGE_TYPES, type MessageFilter, type ReceivedMessage } from 'hookline'
import { type InspectedQueue, type InspectQueueOptions, inspectQueue, type Queue } from 'hookline/queues'
import type { SqliteQueue } from 'hookline/queues/sqlite'
import { nearest } from '../../../../src/internals.ts'
import { addField, choice, confirm, readKeyFile, time, whole } from '../arguments.ts'
import { createPlace, type Place, type PlaceOptions, rewordError } from '../place.ts'
import { counted, escaped, note, print, printJson, UsageError } from '../terminal.ts'
import { ageOf, change, type LetterOptions, listReasons, printDead, showMessage, sortReasons } from './dead-letters.ts'
import { type HistoryOptions, printHistory, replayMessages } from './history.ts'

interface Options extends PlaceOptions, LetterOptions, HistoryOptions {
  readonly since?: Date
  readonly until?: Date
  readonly type?: ReceivedMessage['type']
  readonly event?: string
  readonly user?: string
  readonly where?: Readonly<Record<string, FieldValue>>
  readonly name?: string
  readonly keyFile?: string
  readonly ui?: number | true
}

const ACTIONS = [
  'counts',
  'history',
  'replay',
  'dead',
  'show',
  'redrive',
  'drop',
  'pause',
  'resume',
  'rewrite',
  'backup',
] as const
type Action = (typeof ACTIONS)[number]

export function define(command: Command): void {
  command
    .usage(
      '[LOCATION] [counts | history | replay [ID…] | dead | show ID | redrive [ID…] | drop [ID…] | pause | resume | rewrite | backup FILE] [options]',
    )
    .argument('[words...]', 'a SQLite file, redis://… or postgres://…, and an action. Default: counts')
    .option('--name <queue>', 'the queue; required if there are several')
    .option('--key-file <file>', 'the file of the encryption keys: an id, a space and base64 on each line')
    .option(
      '--since <time>',
      'messages handled or failed at this time or later: 3d, 12h, 30m or 2026-11-20T09:30:00Z',
      time,
    )
    .option('--until <time>', 'messages handled or failed before this time', time)
    .addOption(choice('--type <type>', 'messages of this type', [...MESSAGE_TYPES, 'custom']))
    .option('--event <name>', 'track messages of this event')
    .option('--user <id>', 'messages of this user')
    .option('--where <field>', 'messages with this value: properties.order_id=42; repeatable', addField)
    .option(
      '--handler <name>',
      'history: handled by this handler; replay: run only these: crm,mail; dead, redrive, drop: failed in this handler',
    )
    .option('--reason <text>', 'dead, redrive, drop: with this reason')
    .option('--id <name>', 'replay: its id. The same id again skips the messages that were queued')
    .option('--max-per-second <n>', 'replay: the maximum number of messages per second', whole(1, 1_000_000))
    .option('--dry-run', 'replay, redrive, drop: print what would happen, and change nothing')
    .option('--yes', 'replay, redrive, drop, rewrite: do not ask for confirmation')
    .option(
      '--limit <n>',
      'history: the maximum number of messages. Default: 100. dead: the maximum number for each error. Default: 3',
      whole(0, 1_000_000),
    )
    .option('--prefix <text>', 'the prefix of the keys in Redis. Default: bull')
    .option('--schema <name>', 'the pg-boss schema in PostgreSQL. Default: pgboss')
    .option('--json', 'print JSON objects, one per line')
    .option(
      '--ui [port]',
      'show the queues on a page, on a port of this machine. Default: a free port',
      whole(0, 65_535),
    )
    .action(runAction)
    .addHelpText('after', HELP)
}

const HELP = `
If LOCATION is omitted, it is read from HOOKLINE_QUEUE, which keeps a password out of the process list.
The queue is opened as an observer, beside running workers: nothing is claimed, created or migrated.
Exit codes: 0 done, or --ui ended by Ctrl-C, 1 no message has that id, 2 wrong usage, or the queue cannot be reached.

Examples:
  hookline queue inbox.sqlite
      Counts the waiting messages in the queues of a file.
  hookline queue inbox.sqlite --ui
      Shows the queues on a page, where dead letters can be redriven.
  HOOKLINE_QUEUE=inbox.sqlite hookline queue dead
      Lists the dead letters, grouped by their errors.
  hookline queue inbox.sqlite pause
      Makes messages wait: no process handles any until the queue is resumed.
  hookline queue inbox.sqlite backup inbox-copy.sqlite
      Copies a file while it is in use.
  hookline queue inbox.sqlite redrive --reason handler_failed --dry-run
      Says what a redrive would do.
  hookline queue inbox.sqlite history --since 1h --user user-1
      Lists the messages of a user that were handled in the last hour.
  hookline queue inbox.sqlite history --where properties.order_id=42
      Lists the messages of an order. Put an id that is text in quotes: --where 'properties.order_id="42"'
  hookline queue inbox.sqlite replay --id fix-42 --since 3d --handler crm
      Gives the messages of the last three days to the handler crm again.`

async function runAction(words: readonly string[], options: Options): Promise<void> {
  const { location, action, ids } = readWords(words)
  requireFitting(action, options)
  const how = options.keyFile === undefined ? {} : { encryption: await readKeyFile(options.keyFile) }
  const place = createPlace(location, options)
  try {
    const names = options.name === undefined ? await place.list() : [options.name]
    if (names.length === 0)
      throw new UsageError(`${place.shown} has no queues. First start an app that pushes jobs to a queue.`)
    if (options.ui !== undefined)
      return await (await import('../page.ts')).showQueues(names, place.openQueue, options.ui, how)
    if (action === 'counts') return await printCounts(names, place, options.json)
    const [name = ''] = names
    if (names.length > 1 && action !== 'backup')
      throw new UsageError(`${place.shown} has ${names.length} queues: ${listed(names)}. Pass --name to select one.`)
    const queue = await place.openQueue(name)
    try {
      const [filter, inspected, id = ''] = [filterOf(options), inspectQueue(queue, how), ...ids]
      if (action === 'history') await printHistory(inspected, filter, options)
      else if (action === 'replay') {
        const given = { until: new Date(), ...options } // With a fixed end, counting, replaying and continuing select the same messages.
        const commandToGoOn = (id: string) => commandOf(location, place, ids, { ...given, id })
        await replayMessages(inspected, name, ids, filterOf(given), options, commandToGoOn, queue.counts)
      } else if (action === 'dead') await printDead(inspected, filter, options)
      else if (action === 'show') await showMessage(inspected, id, options)
      else if (action === 'pause' || action === 'resume') await setPaused(inspected, name, action, options)
      else if (action === 'rewrite') await rewrite(queue, name, how, options)
      else if (action === 'backup') await backUp(queue, id, options)
      else await change(inspected, name, action, ids, filter, options)
    } finally {
      await queue.close({ graceMs: 0 })
    }
  } catch (error) {
    if (error instanceof HooklineError) throw rewordError(error, place)
    if (!(error instanceof TypeError && /^`\w+: \w+`/.test(error.message))) throw error
    const flagOf = (_: string, name: string): string => FLAGS[name] ?? `--${name}`
    throw new UsageError(error.message.replace(/`(?:\w+: )?(\w+)`/g, flagOf))
  }
}

/** Returns the command that continues a replay. Writes ages such as `3d` as dates, and omits a location that HOOKLINE_QUEUE contains. */
function commandOf(location: string, { shown }: Place, ids: readonly string[], options: Options): string {
  const { id, type, event, user, handler, maxPerSecond, keyFile, name, prefix, schema } = options
  const [since, until] = [options.since?.toISOString(), options.until?.toISOString()]
  const filter = { id, since, until, type, event, user, handler }
  const flags = Object.entries({ ...filter, 'max-per-second': maxPerSecond, 'key-file': keyFile, name, prefix, schema })
  const words = flags.flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}`, `${value}`]))
  for (const [path, value] of Object.entries(options.where ?? {}))
    words.push('--where', `${path}=${JSON.stringify(value)}`)
  const where = location === process.env.HOOKLINE_QUEUE ? [] : [shown]
  return ['npx hookline queue', ...[...where, 'replay', ...ids, ...words].map(quote)].join(' ')
}

function quote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  return process.platform === 'win32' ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'` // Paths on Windows cannot contain quotation marks.
}

/** The flags for options that the library's errors call by another name. Any other option has a flag of the same name. */
const FLAGS: Readonly<Record<string, string>> = {
  userId: '--user',
  name: '--handler',
  handlers: '--handler',
  ids: 'ids',
}

async function backUp(queue: Queue | SqliteQueue, to: string, { json = false }: Options): Promise<void> {
  if (!('backup' in queue)) {
    throw new UsageError(
      'backup needs a SQLite file. For Redis and PostgreSQL, use their own tools, such as BGSAVE and pg_dump.',
    )
  }
  await queue.backup(to)
  if (json) printJson({ action: 'backup', path: to })
  else print(`Written to ${escaped(to)}.`)
}

async function setPaused(
  queue: InspectedQueue,
  name: string,
  action: 'pause' | 'resume',
  { json = false }: Options,
): Promise<void> {
  await queue[action]()
  if (json) return printJson({ queue: name, action })
  const others = action === 'pause' ? 'Its workers stop claiming jobs' : 'Its workers claim jobs again'
  print(`${action === 'pause' ? 'Paused' : 'Resumed'}: queue ${escaped(name)}. ${others} within 2 seconds.`)
}

async function rewrite(
  queue: Queue,
  name: string,
  how: InspectQueueOptions,
  { json = false, yes = false }: Options,
): Promise<void> {
  const [first] = how.encryption?.keys ?? []
  if (first === undefined)
    throw new UsageError('rewrite needs --key-file FILE. Pass a file whose first key is the key to encrypt with.')
  const what = `Encrypt the dead letters and the history of queue ${escaped(name)} with key ${first.id}`
  if (!yes && !(await confirm(`${what}? All processes that use the queue must already have this key.`)))
    throw new UsageError('You did not confirm, so nothing was changed.')
  const { count, left } = await inspectQueue(queue, how).rewrite()
  if (json) return printJson({ queue: name, action: 'rewrite', key: first.id, done: count, left })
  print(`Re-encrypted: ${counted(count, 'message')}.`)
  const others = Object.entries(left).map(
    ([id, many]) => `${many} ${id === '' ? 'unencrypted' : `with key ${escaped(id)}`}`,
  )
  if (others.length > 0)
    note(`Other messages stay as they are until they are handled, or dropped from the history: ${others.join(', ')}.`)
}

function filterOf({ since, until, type, event, user, where }: Options): MessageFilter {
  return {
    ...(since && { since }),
    ...(until && { until }),
    ...(type && { type }),
    ...(event !== undefined && { event }),
    ...(user !== undefined && { userId: user }),
    ...(where && { where }),
  }
}

const LETTERS = ['dead', 'redrive', 'drop'] as const
const CHANGES = ['replay', 'redrive', 'drop'] as const
const FILTERED = ['history', 'replay', ...LETTERS] as const

/** The actions that use each option. Other actions refuse the option. If they ignored it, they might change more than the user intended. */
const USES = {
  since: FILTERED,
  until: FILTERED,
  type: FILTERED,
  event: FILTERED,
  user: FILTERED,
  where: FILTERED,
  handler: FILTERED,
  reason: LETTERS,
  id: ['replay'],
  maxPerSecond: ['replay'],
  dryRun: CHANGES,
  yes: [...CHANGES, 'rewrite'],
  keyFile: [...FILTERED, 'counts', 'show', 'rewrite'],
  limit: ['history', 'dead'],
  ui: ['counts'],
} as const

function requireFitting(action: Action, options: Options): void {
  for (const [option, actions] of Object.entries(USES)) {
    if (options[option as keyof typeof USES] === undefined || actions.some((use) => use === action)) continue
    const name = option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    throw new UsageError(`--${name} applies only to ${LIST.format(actions)}, not to ${action}. Omit it.`)
  }
  if (action === 'history' && options.limit === 0) {
    throw new UsageError('`history --limit` must be 1 or more. Got 0. Pass a higher limit.')
  }
}

const LIST = new Intl.ListFormat('en-GB')

async function printCounts(names: readonly string[], { openQueue: open }: Place, json = false): Promise<void> {
  const rows = [['QUEUE', 'WAITING', 'ACTIVE', 'OLDEST DUE', 'DEAD LETTERS']]
  for (const name of names) {
    const queue = await open(name)
    try {
      const { waiting, retrying, active, deadLetters, oldestDueAt, asOf, paused = false } = await queue.counts()
      const { redrive } = inspectQueue(queue)
      const reasons = deadLetters === 0 ? [] : sortReasons(await redrive('all', { dryRun: true }))
      const ageMs = oldestDueAt && Math.max(0, asOf.getTime() - oldestDueAt.getTime())
      if (json) {
        const oldest = { oldestDueAt: oldestDueAt ?? null, oldestDueAgeMs: ageMs ?? 0 }
        const counts = { waiting, retrying: retrying ?? null, active, deadLetters, ...oldest, reasons }
        printJson({ queue: name, ...counts, paused, asOf })
      }
      const age = ageMs === undefined ? '-' : `${ageOf(ageMs)} ago`
      const why = deadLetters === 0 ? '0' : `${deadLetters}: ${listReasons(reasons)}`
      const again = retrying ? ` (${retrying} retrying)` : ''
      rows.push([`${escaped(name)}${paused ? ' (paused)' : ''}`, `${waiting}${again}`, `${active}`, age, why])
    } finally {
      await queue.close({ graceMs: 0 })
    }
  }
  if (json) return
  const widths = [0, 1, 2, 3, 4].map((at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  for (const row of rows)
    print(
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

function listed(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(', ')
}

interface Words {
  readonly location: string
  readonly action: Action
  readonly ids: readonly string[]
}

function readWords(words: readonly string[]): Words {
  const { HOOKLINE_QUEUE: fromEnvironment = '' } = process.env
  const hasLocation = fromEnvironment === '' || (words[0] !== undefined && !isAction(words[0]))
  const [location = '', [action = 'counts', ...ids]] = hasLocation
    ? [words[0], words.slice(1)]
    : [fromEnvironment, words]
  if (location === '' || (fromEnvironment === '' && isAction(location) && words.length === 1)) {
    throw new UsageError(
      'LOCATION is required: a SQLite file, redis://… or postgres://…. Pass it, or set HOOKLINE_QUEUE.',
    )
  }
  if (fromEnvironment === '' && isAction(location) && !existsSync(location)) {
    throw new UsageError(`LOCATION must come first: hookline queue LOCATION ${location}.`)
  }
  if (!isAction(action)) {
    const near = nearest(action, ACTIONS)
    const advice = near === undefined ? '' : ` Did you mean ${near}?`
    throw new UsageError(`Unknown action '${action}'.${advice} Valid actions: ${ACTIONS.join(', ')}.`)
  }
  if (action === 'backup' && ids.length !== 1)
    throw new UsageError('backup needs exactly one path. Pass the path of a new file.')
  if (action === 'show' && ids.length !== 1)
    throw new UsageError('show needs exactly one id. Pass the id of a message.')
  if (['counts', 'dead', 'history', 'pause', 'resume', 'rewrite'].includes(action) && ids.length > 0)
    throw new UsageError(`${action} accepts no ids. Omit them.`)
  return { location, action, ids }
}

function isAction(word: string): word is Action {
  return ACTIONS.includes(word as Action)
}
