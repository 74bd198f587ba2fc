/** One message in the journal, as a plain object: watchers write its fields, and tell the journal. */

import { hash } from 'node:crypto'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { usersOf } from '../message/identity.ts'
import { isObject } from '../message/json.ts'
import { RETRY_WINDOW_MS } from '../message/limits.ts'
import type { ReceivedMessage } from '../message/message.ts'
import type { LogEntry } from '../request-log/log-file.ts'
import { cut, type Described, linesOf, nameOf, SHORT, showBody, userOf } from './redact.ts'
import type { Detail, Row, RowState, Step } from './wire.ts'

export interface LoggedHead {
  readonly at: number
  readonly kind: Row['kind']
  /** Undefined when no other event belongs to it. */
  readonly deliveryId?: string | undefined
  /** Whether strangers may have sent it: it pushes out refused requests alone. */
  readonly isRefused?: boolean
}

export interface LoggedMessage extends LogEntry, LoggedHead {
  readonly part: string
  /** How many messages that succeeded it stands for, when only a sample of them is kept. */
  of?: number | undefined
  /** Whether it is in the queue of the part, or was. */
  isStored?: boolean | undefined
  source?: string | undefined
  state: RowState
  type?: string | undefined
  name?: string | undefined
  user?: string | undefined
  /** The ids of all users whom it is about; undefined while nobody has parsed its body. */
  users?: readonly unknown[] | undefined
  /** The page joins rows that have one of these in common. */
  messageIds?: readonly string[] | undefined
  /** How many calls of a collected request were refused. */
  refusedCalls?: number | undefined
  status?: number | undefined
  code?: string | undefined
  attempts: number
  retryAt?: number | undefined
  durationMs?: number | undefined
  /** When its latest attempt ended. */
  endedAt?: number | undefined
  /** When the first attempt of a sent one began. */
  startedAt?: number | undefined
  method: string
  path: string
  ownPath: string
  remoteAddress?: string | undefined
  headers: EndpointHeaders
  /** The size of its body, of which `body` may be the beginning. */
  bytes: number
  body: Uint8Array
  steps: Step[]
}

const NO_BYTES = new Uint8Array()

/** Creates a message of which nothing else is known. */
export function createLogged(id: number, part: string, head: LoggedHead): LoggedMessage {
  const request = { method: 'POST', path: '', ownPath: '', headers: {}, bytes: 0, body: NO_BYTES }
  return { id, part, ...head, state: 'waiting', attempts: 0, ...request, steps: [] }
}

/** Keeps a body: a copy where it is a part of more, because the whole chunk of a connection would be kept. */
export function setBody(logged: LoggedMessage, bytes: Uint8Array): void {
  logged.bytes = bytes.length
  logged.body = bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}

/** Keeps what a message says of itself, as short strings alone: what it was parsed to is not held. */
export function describeMessage(logged: LoggedMessage, message: ReceivedMessage): void {
  const fields: unknown = message.type === 'custom' ? message.body : message
  const described: Described = isObject(fields) ? fields : {}
  logged.type = message.type
  logged.name = cut(nameOf(described), SHORT)
  logged.user = cut(userOf(described), SHORT)
  logged.users = usersOf(fields)
  logged.messageIds = [cut(described.messageId, SHORT) ?? hash('sha1', logged.body, 'base64url')]
}

const FIRST_STEPS = 10
const LAST_STEPS = 90

/**
 * Adds a step at its time. Of too many, those in the middle are dropped.
 *
 * @param isFirst Whether it began what else is known of that time: only the answer to an earlier request stays before it.
 */
export function addStep({ steps }: LoggedMessage, step: Step, isFirst = false): void {
  let index = steps.length
  for (; index > 0; index -= 1) {
    const { at, what } = steps[index - 1] as Step
    if (at < step.at || (at === step.at && !(isFirst && what !== 'answered'))) break
  }
  steps.splice(index, 0, step)
  if (steps.length > FIRST_STEPS + LAST_STEPS) steps.splice(FIRST_STEPS, 1)
}

/** An estimate, in bytes, of what it takes. */
export function sizeOf({ headers, steps, messageIds, body }: LoggedMessage): number {
  return 500 + body.length + JSON.stringify([headers, steps, messageIds]).length
}

export function rowOf(logged: LoggedMessage): Row {
  const { id, at, kind, part, state, type, name, user, status, code, bytes, attempts } = logged
  const { retryAt, durationMs, of, messageIds, refusedCalls } = logged
  const message = { type, name, user, messageIds }
  const row = {
    id,
    at,
    kind,
    part,
    state,
    ...message,
    status,
    code,
    bytes,
    attempts,
    retryAt,
    durationMs,
    of,
    refusedCalls,
  }
  // Fields that are undefined are left out when it is sent.
  return { ...row, ...(logged.isRefused && { isRefused: true }) } as Row
}

/** Whether its signature is right. */
export function isVerified({ steps }: LoggedMessage): boolean {
  return steps.some((step) => step.what === 'checked' && step.isVerified && !step.hasHeader)
}

/** Whether its bytes can tell why its signature was refused. */
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
