/** Lists, redrives and drops the dead letters of a queue for `hookline queue`, and shows one message in full. */

import { isUtf8 } from 'node:buffer'
import type { HandledMessage, LetterCount, MessageFilter, StoredMessage } from 'hookline'
import type {
  InspectedDestinationLetter,
  InspectedInboxLetter,
  InspectedLetter,
  InspectedLetterFilter,
  InspectedQueue,
} from 'hookline/queues'
import { sealedWith, shownHeader } from '../../../../src/internals.ts'
import { isObject, tryParse } from '../../../json.ts'
import { groupOf } from '../../../letter-groups.ts'
import { confirm } from '../arguments.ts'
import { counted, escaped, interruption, note, paint, prettyOf, print, printJson, UsageError } from '../terminal.ts'

const IDENTITY = ['type', 'event', 'userId', 'anonymousId', 'groupId'] as const

/** The fields that identify a message. Any of them may be missing, because the message may be invalid. */
type Identity = { readonly [name in (typeof IDENTITY)[number] | 'sealedWith']?: string }

export function identify(bytes: Uint8Array): Identity {
  const keyId = sealedWith(bytes)
  if (keyId !== undefined) return { sealedWith: keyId }
  const message = tryParse(bytes)
  if (!isObject(message)) return {}
  const fields = IDENTITY.map((name) => {
    const value = message[name]
    return [name, typeof value === 'number' && name.endsWith('Id') ? `${value}` : value] as const
  })
  return Object.fromEntries(fields.filter(([, value]) => typeof value === 'string' && value !== ''))
}

/** Describes a message: `track Order Completed, user u1`. */
export function nameOf({ type, event, userId, anonymousId, groupId, sealedWith: keyId }: Identity): string {
  if (keyId !== undefined) return escaped(`encrypted with key ${keyId}: see --key-file`)
  const what = [type ?? 'not a message', event].filter(Boolean).join(' ')
  const who = userId === undefined ? anonymousId && `anonymous ${anonymousId}` : `user ${userId}`
  return escaped([what, groupId && `group ${groupId}`, who].filter(Boolean).join(', '))
}

interface Group {
  count: number
  oldest: Date
  newest: Date
  readonly letters: Summary[]
}

/** The parts of a dead letter that a line of output shows. */
interface Summary extends Identity {
  readonly id: string
  readonly reason: string
  readonly error: string
  readonly failedAt: Date
}

function summaryOf(letter: InspectedLetter): Summary {
  const { id, reason, failedAt, bytes } = letter
  return { id, reason, error: errorOf(letter), failedAt, ...identify(bytes) }
}

function errorOf(letter: InspectedLetter): string {
  if (letter.use !== 'destination') return letter.error.message
  const last = letter.attempts.at(-1)
  return letter.error ?? (last === undefined ? '' : (last.error ?? `HTTP ${last.status}`))
}

/** Groups dead letters by reason and error, newest group first. Keeps the newest letters of each group: at most `limit`, but at least one. */
async function groupLetters(letters: AsyncIterable<InspectedLetter>, limit: number): Promise<readonly Group[]> {
  const groups = new Map<string, Group>()
  for await (const letter of letters) {
    const summary = summaryOf(letter)
    const { failedAt } = letter
    const name = groupOf(summary)
    const group = groups.get(name) ?? { count: 0, oldest: failedAt, newest: failedAt, letters: [] }
    groups.set(name, group)
    group.count += 1
    if (failedAt < group.oldest) group.oldest = failedAt
    if (failedAt >= group.newest) group.newest = failedAt
    group.letters.unshift(summary)
    group.letters.splice(Math.max(1, limit))
  }
  return [...groups.values()].sort((one, other) => other.newest.getTime() - one.newest.getTime())
}

/** Formats reasons and their counts: `2 handler_failed, 1 crashed`. */
export function listReasons(reasons: readonly Reason[]): string {
  return reasons.map(({ reason, count }) => `${count} ${escaped(reason)}`).join(', ')
}

interface Reason {
  readonly reason: string
  readonly count: number
}

/** Returns the reasons, most frequent first. */
export function sortReasons({ reasons }: Pick<LetterCount, 'reasons'>): readonly Reason[] {
  return Object.entries(reasons)
    .map(([reason, count]) => ({ reason, count }))
    .sort((one, other) => other.count - one.count)
}

/** Formats a duration: `5 min`. */
export function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 2 * 60 * 60) return `${Math.round(seconds / 60)} min`
  if (seconds < 48 * 60 * 60) return `${Math.round(seconds / 3_600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

function agoOf(at: Date): string {
  return `${ageOf(Date.now() - at.getTime())} ago`
}

export interface LetterOptions {
  readonly reason?: string
  readonly handler?: string
  readonly limit?: number
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly json?: boolean
}

function filterOf(filter: MessageFilter, { reason, handler }: LetterOptions): InspectedLetterFilter {
  return { ...filter, ...(reason !== undefined && { reason }), ...(handler !== undefined && { handler }) }
}

export async function printDead(queue: InspectedQueue, filter: MessageFilter, options: LetterOptions): Promise<void> {
  const { limit = 3, json = false } = options
  const letters = queue.deadLetters(filterOf(filter, options))
  if (json) {
    for await (const letter of letters) printJson(summaryOf(letter))
    return
  }
  const groups = await groupLetters(letters, limit)
  if (groups.length === 0) note('No dead letters.')
  for (const { count, oldest, newest, letters } of groups) {
    const [{ reason, error }] = letters as [Summary]
    const what = `${paint('bold', escaped(reason))}${error && `: ${escaped(error)}`}`
    print(`${what}\n  ${count}, the oldest ${agoOf(oldest)}, the newest ${agoOf(newest)}`)
    const listed = letters.slice(0, limit)
    for (const { id, failedAt, ...identity } of listed) {
      print(`  ${escaped(id)}  ${agoOf(failedAt)}  ${nameOf(identity)}`)
    }
    if (count > listed.length && listed.length > 0) print(`  and ${count - listed.length} more: see --limit`)
  }
}

/** Shows the dead letter whose id starts with this text, or the handled message with this id. */
export async function showMessage(
  queue: InspectedQueue,
  given: string,
  { json = false }: LetterOptions,
): Promise<void> {
  const id = given.toLowerCase()
  let found: InspectedLetter | undefined
  for await (const letter of queue.deadLetters()) {
    if (!isMeant(letter, id)) continue
    if (found !== undefined) throw ambiguous(given)
    found = letter
  }
  if (found !== undefined) return printLetter(found, json)
  if (!isWhole(id)) return noteMissing(given, 'dead letter', ' To show a handled message, pass its complete id.')
  for await (const handled of queue.history({ ids: [id] })) return printHandled(handled, json)
  noteMissing(given, 'dead letter or handled message')
}

/** The minimum number of digits of a shortened id. Without a minimum, an empty variable in a script would match every id. */
const MIN_DIGITS = 4

function isMeant({ id }: Pick<InspectedLetter, 'id'>, given: string): boolean {
  return given.length >= MIN_DIGITS && id.startsWith(given)
}

function ambiguous(given: string): UsageError {
  return new UsageError(
    `Several dead letters have ids that begin with ${escaped(given)}. Pass more characters of the id.`,
  )
}

export function isWhole(id: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(id)
}

export function noteMissing(id: string, what = 'dead letter', advice = ''): void {
  const rule = `The beginning of an id must have ${MIN_DIGITS} characters or more. Got '${escaped(id)}'. Pass more characters of the id.`
  note(id.length < MIN_DIGITS ? rule : `No ${what} has the id ${escaped(id)}.${advice}`)
  process.exitCode = 1
}

function printLetter(letter: InspectedLetter, isJson: boolean): void {
  const { reason, failedAt, attempts } = letter
  const lines = [`reason    ${escaped(reason)}`, `failed    ${timeOf(failedAt)}`]
  if (letter.use !== 'destination') {
    const { error, handlers, replay } = letter
    const facts = { reason, failedAt, attempts, error, handlers, replay }
    printMessage(letter, facts, [...lines, ...linesOfInbox(letter)], isJson)
    return
  }
  const { error: message, stack } = letter
  const facts = { reason, failedAt, attempts, error: message && { message, stack } }
  const unknown = { headers: {}, source: undefined, verified: false, receivedAt: undefined, replay: undefined } as const
  printMessage(
    { ...letter, ...unknown },
    facts,
    [...lines, ...letter.attempts.map(lineOf), ...linesOfThrown(letter)],
    isJson,
  )
}

/** Formats the error that a `filter` or `transform` threw. */
function linesOfThrown({ error, stack }: InspectedDestinationLetter): string[] {
  if (error === undefined) return []
  const frames = stack?.split('\n').filter((line) => line.trimStart().startsWith('at ')) ?? []
  return [`error     ${escaped(error)}`, ...frames.map((line) => `          ${escaped(line.trim())}`)]
}

function printHandled(message: HandledMessage, isJson: boolean): void {
  const { handledAt, handlers, ignored } = message
  const names = ignored ? 'None matched.' : namesOf('Done', handlers)
  const lines = [`handled   ${timeOf(handledAt)}`, ...(names === '' ? [] : [escaped(`handlers  ${names}`)])]
  printMessage(message, { handledAt, handlers, ignored }, lines, isJson)
}

/**
 * @param facts Additional fields for the JSON output. The stored message does not contain them.
 * @param lines The same facts as text.
 */
function printMessage(stored: StoredMessage, facts: object, lines: readonly string[], isJson: boolean): void {
  const { id, bytes, receivedAt, verified, source, headers } = stored
  if (isJson) {
    const text = Buffer.from(bytes)
    const body = isUtf8(bytes) ? { body: text.toString() } : { bodyBase64: text.toString('base64') }
    const request = receivedAt && { receivedAt, verified, source, headers: shown(headers, verified === 'signature') }
    printJson({ id, ...facts, ...identify(bytes), ...body, ...request })
    return
  }
  const own = [`id        ${escaped(id)}`, `message   ${nameOf(identify(bytes))}`, ...lines]
  const body = `\nbody, ${bytes.length} bytes${sealedWith(bytes) === undefined ? `\n${prettyOf(bytes)}` : ''}`
  print([...own, ...linesOfRequest(stored), body].join('\n'))
}

function linesOfRequest({ receivedAt, verified, source, headers }: StoredMessage): string[] {
  if (receivedAt === undefined) return []
  return [
    `received  ${timeOf(receivedAt)}, ${verified ? `with a valid ${verified}` : 'unverified'}`,
    ...(source === undefined ? [] : [`source    ${escaped(source)}`]),
    '\nheaders',
    ...Object.entries(shown(headers, verified === 'signature')).map(([name, value]) => escaped(`  ${name}: ${value}`)),
  ]
}

function linesOfInbox({ attempts, error, handlers, replay }: InspectedInboxLetter): string[] {
  return [
    ...(replay === undefined ? [] : [`replay    ${replay.id}, of a message handled ${timeOf(replay.handledAt)}`]),
    `attempts  ${attempts}`,
    `error     ${escaped(error.message)}`,
    ...error.causes.slice(1).map(({ name, message }) => escaped(`          ${name}: ${message}`)),
    ...(handlers === undefined
      ? []
      : [escaped(`handlers  ${namesOf('Failed', handlers.failed)} ${namesOf('Done', handlers.done)}`.trim())]),
  ]
}

type Attempt = InspectedDestinationLetter['attempts'][number]

/** Returns a text such as `Done: crm, mail.`; an empty text if there are no handlers. */
function namesOf(how: string, handlers: readonly string[]): string {
  const names = handlers.map((name) => name || 'those without a name').join(', ')
  return names && `${how}: ${names}.`
}

function lineOf({ at, status, error, reason, durationMs, body }: Attempt): string {
  const outcome = status === undefined ? `${error}${reason === undefined ? '' : `: ${reason}`}` : `status ${status}`
  return escaped(`attempt   ${at.toISOString()}  ${outcome}, after ${Math.round(durationMs)} ms${body && `: ${body}`}`)
}

function shown(headers: StoredMessage['headers'], isVerified: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      [value ?? []]
        .flat()
        .map((each) => shownHeader(name, each, isVerified) ?? '(hidden)')
        .join(', '),
    ]),
  )
}

function timeOf(at: Date): string {
  return `${at.toISOString()}, ${agoOf(at)}`
}

const WORDS = {
  redrive: { ask: 'Redrive', would: 'Would redrive', done: 'Redriven' },
  drop: { ask: 'Drop', would: 'Would drop', done: 'Dropped' },
} as const

/** The maximum number of dead letters to change in one call. Ctrl-C stops the command between two calls. */
const AT_ONCE = 500

/**
 * Redrives or drops dead letters. Without `--yes`, asks for confirmation if there are several. Sets exit code 1 if an id matches no dead
 * letter.
 *
 * @param given The ids, or their beginnings. If empty, all dead letters that match the options are changed.
 */
export async function change(
  queue: InspectedQueue,
  name: string,
  action: 'redrive' | 'drop',
  given: readonly string[],
  filter: MessageFilter,
  options: LetterOptions,
): Promise<void> {
  const { dryRun = false, yes = false, json = false } = options
  const words = WORDS[action]
  const ids: string[] = []
  const wantedIds = new Map(given.map((id) => [id.toLowerCase(), 0]))
  const counts: Record<string, number> = {}
  for await (const { id, reason } of queue.deadLetters(filterOf(filter, options))) {
    const meant = [...wantedIds.keys()].filter((each) => isMeant({ id }, each))
    for (const each of meant) wantedIds.set(each, (wantedIds.get(each) ?? 0) + 1)
    if (given.length > 0 && meant.length === 0) continue
    ids.push(id)
    counts[reason] = (counts[reason] ?? 0) + 1
  }
  const reasons = sortReasons({ reasons: counts })
  for (const [id, count] of wantedIds) {
    if (count > 1) throw ambiguous(id)
    if (count === 0) noteMissing(id)
  }
  const found = `${counted(ids.length, 'dead letter')} of queue ${escaped(name)}`
  const what = reasons.length === 0 ? found : `${found}: ${listReasons(reasons)}`
  const report = { queue: name, action, dryRun, found: ids.length, reasons }
  if (dryRun || ids.length === 0) {
    if (json) return printJson({ ...report, done: 0 })
    return print(ids.length === 0 ? 'No dead letters to change.' : `${words.would} ${what}.`)
  }
  if (ids.length > 1 && !yes && !(await confirm(`${words.ask} ${what}?`))) {
    throw new UsageError('You did not confirm, so nothing was changed.')
  }
  const signal = interruption()
  let done = 0
  for (let start = 0; start < ids.length && !signal.aborted; start += AT_ONCE) {
    done += await queue[action](ids.slice(start, start + AT_ONCE))
  }
  if (done < ids.length)
    note(
      `${ids.length - done} of ${found} were not changed: the command was interrupted, or another process changed them first.`,
    )
  if (json) printJson({ ...report, done })
  else print(`${words.done}: ${done === ids.length ? what : `${done} of ${what}`}.`)
}
