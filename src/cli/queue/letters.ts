/** Dead letters: read page by page, grouped by their reasons (`dead`), and one in full (`show`). */

import { isUtf8 } from 'node:buffer'
import { readRetryState } from '../../destination/retry-state.ts'
import { bodyOf, isSecretHeader, readEnvelope } from '../../inbox/envelope.ts'
import { type DeadLetterMessage, readDeadLetter } from '../../inbox/stored.ts'
import { isObject } from '../../message/json.ts'
import type { DeadLetter, Queue } from '../../queues/queue.ts'
import type { Attempt } from '../../sender/api.ts'
import { prettyOf } from '../body.ts'
import { escaped, note, paint, print, printJson } from '../terminal.ts'

/** Reads all of them, the oldest first. Those that arrive meanwhile may be among them. */
export async function* readLetters(queue: Queue): AsyncGenerator<DeadLetter> {
  for (let after: string | undefined; ; ) {
    const page = await queue.deadLetters({ limit: PAGE, ...(after !== undefined && { after }) })
    yield* page
    after = page.at(-1)?.id
    if (page.length < PAGE || after === undefined) return
  }
}

/** The bodies of so many are in memory at once. */
const PAGE = 500

/** What a message says of itself, as far as it can be read. */
interface Identity {
  readonly type?: string
  readonly event?: string
  readonly userId?: string
  readonly anonymousId?: string
  readonly groupId?: string
}

/** The bytes of the message: of an inbox, without the envelope. */
function messageOf({ body }: DeadLetter): Uint8Array {
  return isOfInbox(body) ? bodyOf(body) : body
}

/** Whether an inbox stored it: a destination stores the message alone. */
function isOfInbox(body: Uint8Array): boolean {
  try {
    readEnvelope(body)
    return true
  } catch {
    return false
  }
}

/** Reads what identifies a message, also one that is not valid. */
function identify(bytes: Uint8Array): Identity {
  let message: unknown
  try {
    message = JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return {}
  }
  if (!isObject(message)) return {}
  const names = ['type', 'event', 'userId', 'anonymousId', 'groupId'] as const
  return Object.fromEntries(names.flatMap((name) => (typeof message[name] === 'string' ? [[name, message[name]]] : [])))
}

/** `track Order Completed, user u1`. */
function nameOf({ type, event, userId, anonymousId, groupId }: Identity): string {
  const what = [type ?? 'no message', event].filter(Boolean).join(' ')
  const who = userId === undefined ? anonymousId && `anonymous ${anonymousId}` : `user ${userId}`
  return escaped([what, groupId && `group ${groupId}`, who].filter(Boolean).join(', '))
}

/** The dead letters of one reason. */
interface Group {
  readonly reason: string
  count: number
  oldest: Date
  newest: Date
  readonly letters: (Identity & { readonly id: string; readonly failedAt: Date })[]
}

/** Groups them by reason, the largest group first, with at most so many of each in the list. */
export async function groupLetters(queue: Queue, limit: number): Promise<readonly Group[]> {
  const groups = new Map<string, Group>()
  for await (const letter of readLetters(queue)) {
    const { id, reason, failedAt } = letter
    const group = groups.get(reason) ?? { reason, count: 0, oldest: failedAt, newest: failedAt, letters: [] }
    groups.set(reason, group)
    group.count += 1
    if (failedAt < group.oldest) group.oldest = failedAt
    if (failedAt > group.newest) group.newest = failedAt
    if (group.letters.length < limit) group.letters.push({ id, failedAt, ...identify(messageOf(letter)) })
  }
  return [...groups.values()].sort((one, other) => other.count - one.count)
}

/** `2 handler_failed, 1 crashed`. */
export function listReasons(groups: readonly Pick<Group, 'reason' | 'count'>[]): string {
  return groups.map(({ reason, count }) => `${count} ${escaped(reason)}`).join(', ')
}

/** `5 min`. */
export function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 2 * 60 * 60) return `${Math.round(seconds / 60)} min`
  if (seconds < 48 * 60 * 60) return `${Math.round(seconds / 3_600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

/** Prints the dead letters, at most `limit` of each reason. */
export async function printDead(
  queue: Queue,
  { limit = 3, json = false }: { readonly limit?: number; readonly json?: boolean },
): Promise<void> {
  const groups = await groupLetters(queue, limit)
  if (json) return groups.forEach(printJson)
  if (groups.length === 0) note('No dead letters.')
  const ago = (at: Date): string => `${ageOf(Date.now() - at.getTime())} ago`
  for (const { reason, count, oldest, newest, letters } of groups) {
    print(`${paint('bold', escaped(reason))}: ${count}, the oldest ${ago(oldest)}, the newest ${ago(newest)}`)
    for (const { id, failedAt, ...identity } of letters)
      print(`  ${escaped(id)}  ${ago(failedAt)}  ${nameOf(identity)}`)
    if (count > letters.length && letters.length > 0) print(`  and ${count - letters.length} more: see --limit`)
  }
}

/** Prints one dead letter. Sets exit code 1 when it does not exist. */
export async function showLetter(
  queue: Queue,
  given: string,
  { json = false }: { readonly json?: boolean },
): Promise<void> {
  const letter = await find(queue, given.toLowerCase())
  if (letter === undefined) {
    note(`No dead letter has the id ${escaped(given)}.`)
    process.exitCode = 1
  } else if (json) {
    printJson(jsonOf(letter))
  } else {
    print(textOf(letter))
  }
}

async function find(queue: Queue, id: string): Promise<DeadLetter | undefined> {
  for await (const letter of readLetters(queue)) if (letter.id === id) return letter
  return undefined
}

function jsonOf(letter: DeadLetter): object {
  const { id, reason, failedAt, body: stored } = letter
  const bytes = messageOf(letter)
  const body = isUtf8(bytes)
    ? { body: Buffer.from(bytes).toString() }
    : { bodyBase64: Buffer.from(bytes).toString('base64') }
  const common = { id, reason, failedAt, ...identify(bytes), ...body }
  if (!isOfInbox(stored)) return { ...common, attempts: attemptsOf(letter) }
  const { attempts, error, receivedAt, verified, source, headers } = readDeadLetter(letter)
  return { ...common, attempts, error, receivedAt, verified, source, headers: shown(headers) }
}

function textOf(letter: DeadLetter): string {
  const { id, reason, failedAt, body: stored } = letter
  const bytes = messageOf(letter)
  const lines = [
    `id        ${escaped(id)}`,
    `message   ${nameOf(identify(bytes))}`,
    `reason    ${escaped(reason)}`,
    `failed    ${timeOf(failedAt)}`,
    ...(isOfInbox(stored) ? linesOfInbox(readDeadLetter(letter)) : attemptsOf(letter).map(lineOf)),
    `\nbody, ${bytes.length} bytes\n${prettyOf(bytes)}`,
  ]
  return lines.join('\n')
}

function linesOfInbox({ attempts, error, receivedAt, verified, source, headers }: DeadLetterMessage): string[] {
  const causes = error.causes.map(({ name, message }) => escaped(`          ${name}: ${message}`))
  return [
    `attempts  ${attempts}`,
    `error     ${escaped(error.message)}`,
    ...causes,
    `received  ${receivedAt === undefined ? 'unknown' : timeOf(receivedAt)}, ${verified ? 'with a right signature' : 'unverified'}`,
    ...(source === undefined ? [] : [`source    ${escaped(source)}`]),
    '\nheaders',
    ...Object.entries(shown(headers)).map(([name, value]) => escaped(`  ${name}: ${value}`)),
  ]
}

/** The attempts of a destination, without their URLs, which are not in the queue. */
function attemptsOf({ retryState }: DeadLetter): Omit<Attempt, 'url'>[] {
  return readRetryState(retryState, []).attempts.map(({ url: _, ...attempt }) => attempt)
}

function lineOf({ at, status, error, reason, durationMs, body }: Omit<Attempt, 'url'>): string {
  const outcome = status === undefined ? `${error}${reason === undefined ? '' : `: ${reason}`}` : `status ${status}`
  return escaped(`attempt   ${at.toISOString()}  ${outcome}, after ${Math.round(durationMs)} ms${body && `: ${body}`}`)
}

/** Releases before this one may have stored headers that this one leaves out. */
function shown(headers: DeadLetterMessage['headers']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, isSecretHeader(name) ? '(hidden)' : value]),
  )
}

function timeOf(at: Date): string {
  return `${at.toISOString()}, ${ageOf(Date.now() - at.getTime())} ago`
}
