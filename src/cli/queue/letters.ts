/** Dead letters, as the command reads them: page by page, with what each of them is. */

import { bodyOf, readEnvelope } from '../../inbox/envelope.ts'
import { isObject } from '../../message/json.ts'
import type { DeadLetter, Queue } from '../../queues/queue.ts'
import { escaped } from '../terminal.ts'

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
export interface Identity {
  readonly type?: string
  readonly event?: string
  readonly userId?: string
  readonly anonymousId?: string
  readonly groupId?: string
}

/** The bytes of the message: of an inbox, without the envelope. */
export function messageOf({ body }: DeadLetter): Uint8Array {
  return isOfInbox(body) ? bodyOf(body) : body
}

/** Whether an inbox stored it: a destination stores the message alone. */
export function isOfInbox(body: Uint8Array): boolean {
  try {
    readEnvelope(body)
    return true
  } catch {
    return false
  }
}

/** Reads what identifies a message, also one that is not valid. */
export function identify(bytes: Uint8Array): Identity {
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
export function nameOf({ type, event, userId, anonymousId, groupId }: Identity): string {
  const what = [type ?? 'no message', event].filter(Boolean).join(' ')
  const who = userId === undefined ? anonymousId && `anonymous ${anonymousId}` : `user ${userId}`
  return escaped([what, groupId && `group ${groupId}`, who].filter(Boolean).join(', '))
}

/** The dead letters of one reason. */
export interface Group {
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
