/** One message in the journal, as a plain object. Watchers set its fields and notify the journal. */

import { hash } from 'node:crypto'
import type { EndpointHeaders, ReceivedMessage } from 'hookline'
import { isRetryable, RETRY_WINDOW_MS, usersOf } from '../../../src/internals.ts'
import { isObject } from '../../json.ts'
import { cut, type Described, linesOf, nameOf, SHORT, showBody, userOf } from './redact.ts'
import type { Detail, Row, Step } from './wire.ts'

type Writable<T> = { -readonly [Field in keyof T]: object extends Pick<T, Field> ? T[Field] | undefined : T[Field] }

export interface LoggedHead extends Pick<Row, 'at' | 'kind' | 'isRefused'> {
  /** The id of the delivery; undefined if no later event can belong to the message. */
  readonly deliveryId?: string | undefined
}

/** A message: the fields of its row, and everything else that is known about the message. */
export interface LoggedMessage extends Writable<Omit<Row, 'finalUrls'>> {
  readonly deliveryId?: string | undefined
  /** The version of the journal after the latest change to the message. */
  version: number
  /** Whether the message is or was in the queue of the part. */
  isStored?: boolean | undefined
  source?: string | undefined
  /** The user ids, shortened; undefined if the body was not parsed or has too many users. In that case, the body must be searched. */
  users?: readonly string[] | undefined
  /** The time at which the latest attempt ended. */
  endedAt?: number | undefined
  /** The time at which the first attempt of a sent message began. */
  startedAt?: number | undefined
  method: string
  path: string
  remoteAddress?: string | undefined
  headers: EndpointHeaders
  /** The body, or its beginning. */
  body: Uint8Array
  readonly steps: Step[]
}

const NO_BYTES = new Uint8Array()

/** Creates a message from its id, part and head. The other fields are still empty. */
export function createLogged(id: number, part: string, head: LoggedHead): LoggedMessage {
  const request = { method: 'POST', path: '', headers: {}, bytes: 0, body: NO_BYTES }
  return { id, part, ...head, version: 0, state: 'waiting', attempts: 0, ...request, steps: [] }
}

/** Stores a body. Copies the body if it is part of a larger buffer, which would otherwise stay in memory. */
export function setBody(logged: LoggedMessage, bytes: Uint8Array): void {
  logged.bytes = bytes.length
  logged.body = bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}

/** Stores the fields that identify a message, as short strings. The parsed message is not retained. */
export function describeMessage(logged: LoggedMessage, message: ReceivedMessage): void {
  const fields: unknown = message.type === 'custom' ? message.body : message
  const described: Described = isObject(fields) ? fields : {}
  logged.type = message.type
  logged.name = cut(nameOf(described), SHORT)
  logged.user = cut(userOf(described), SHORT)
  logged.users = textsOf(usersOf(fields))
  logged.messageIds = [cut(described.messageId, SHORT) ?? hash('sha1', logged.body, 'base64url')]
}

/** The maximum number of user ids to keep for a message. A single call or message has at most three ids; a batch may have more. */
const MAX_USERS = 100

/** Shortens the ids, and omits values that are not strings. Returns undefined if there are too many ids. */
function textsOf(users: readonly unknown[]): readonly string[] | undefined {
  const texts = new Set(users.map((id) => cut(id, SHORT)).filter((id) => id !== undefined))
  return texts.size > MAX_USERS ? undefined : [...texts]
}

const OUTCOMES: readonly Step['what'][] = ['handled', 'failed', 'ignored']
const FIRST_STEPS = 10
const LAST_STEPS = 90

/**
 * Inserts a step in chronological order. When there are more than 100 steps, drops one from the middle.
 *
 * @param isFirst Whether the step goes before other steps with the same time. Even then, it goes after an answer, because the answer
 *   belongs to an earlier request. An answer to a stored message goes before the steps of a worker with the same time.
 */
export function addStep({ steps, isStored }: LoggedMessage, step: Step, isFirst = false): void {
  let index = steps.length
  for (; index > 0; index -= 1) {
    const { at, what } = steps[index - 1] as Step
    const isLater = step.what === 'answered' ? isStored && OUTCOMES.includes(what) : isFirst && what !== 'answered'
    if (at < step.at || (at === step.at && !isLater)) break
  }
  steps.splice(index, 0, step)
  if (steps.length > FIRST_STEPS + LAST_STEPS) steps.splice(FIRST_STEPS, 1)
}

/** Estimates how much memory a message uses, in bytes. */
export function sizeOf({ headers, path, steps, messageIds, users, name, user, body }: LoggedMessage): number {
  const texts = [headers, path, steps, messageIds, users, name, user]
  return 500 + body.length + JSON.stringify(texts).length
}

export function rowOf(logged: LoggedMessage): Row {
  const { deliveryId, version, isStored, source, users, endedAt, startedAt, ...shown } = logged
  const { method, path, remoteAddress, headers, body, steps, isRefused, ...row } = shown
  const finalUrls = row.state === 'waiting' ? findFinalUrls(steps) : []
  // The cast allows undefined fields, because JSON omits them.
  return { ...row, ...(finalUrls.length > 0 && { finalUrls }), ...(isRefused && { isRefused }) } as Row
}

/** Returns the URLs that gave a final response. */
function findFinalUrls(steps: readonly Step[]): readonly string[] {
  const final = new Set<string>()
  for (const step of steps) {
    if (step.what === 'redriven') final.clear() // After a redrive, all URLs are tried again.
    if (step.what !== 'attempt') continue
    if (isRetryable(step.attempt)) final.delete(step.attempt.url)
    else final.add(step.attempt.url)
  }
  return [...final]
}

/** Returns whether the signature of a message was verified. */
function isVerified({ steps }: LoggedMessage): boolean {
  return steps.some((step) => step.what === 'checked' && step.isVerified && !step.hasHeader)
}

/** Returns whether the page can explain why the signature of a message was refused. */
export function canExplain({ isRefused, code }: LoggedMessage): boolean {
  return isRefused === true && code?.startsWith('signature_') === true
}

export function detailOf(logged: LoggedMessage): Detail {
  const { kind, method, path, remoteAddress, deliveryId, startedAt, steps, headers, body, bytes } = logged
  const address = remoteAddress === undefined ? {} : { remoteAddress }
  return {
    row: rowOf(logged),
    ...(kind !== 'sent' && { request: { method, path, ...address, headers: linesOf(headers, isVerified(logged)) } }),
    body: showBody(body, bytes, kind === 'collected'),
    steps,
    ...(deliveryId !== undefined && { deliveryId }),
    isStored: logged.isStored === true,
    canExplain: canExplain(logged),
    ...(startedAt !== undefined && { window: { startedAt, endsAt: startedAt + RETRY_WINDOW_MS } }),
  }
}
