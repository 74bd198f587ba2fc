/** The envelope of a message in the inbox: one line of JSON about its arrival, then the exact bytes of its body. */

import type { BodySource } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import { HooklineError } from '../protocol/error.ts'
import { isObject, type Json } from '../protocol/parse.ts'
import { sealedError, sealedWith } from '../store/encryption.ts'
import type { Job } from '../store/queue-types.ts'
import type { DeliveryMethod } from './delivery.ts'
import type { DeliveryParts } from './received-delivery.ts'

interface Head {
  readonly hookline: number
  readonly at: number
  readonly source: BodySource
  readonly signature: string | undefined
  readonly hasHeader?: boolean | undefined
  readonly secretIndex: number | undefined
  readonly from?: string | undefined
  /** The method of the request; undefined for POST. */
  readonly method?: DeliveryMethod | undefined
  readonly group?: string | undefined
  readonly replay?: StoredReplay | undefined
  readonly headers: EndpointHeaders
}

/** A replay, as its copies store it. */
interface StoredReplay {
  readonly id: string
  /** When the original message was handled, in milliseconds since the epoch. */
  readonly at: number
  /** The names of the handlers that the replay calls; undefined for all. */
  readonly only?: readonly string[] | undefined
}

const VERSION = 1

/** Matches the names of headers that are not stored, because they may hold secrets and say nothing about the message. */
const SECRET =
  /authorization|cookie|credential|token|secret|passw|(?:api|access|auth|functions|private|shared|subscription)-?key|protection-bypass|assertion|jwt|oidc|session/

export function writeEnvelope(parts: DeliveryParts, group: string | undefined): Uint8Array {
  const headers: Record<string, EndpointHeaders[string]> = {}
  for (const name in parts.headers) if (!SECRET.test(name)) headers[name] = parts.headers[name]
  const head: Head = {
    hookline: VERSION,
    at: parts.receivedAt,
    source: parts.bodySource,
    signature: parts.signature,
    hasHeader: parts.verified === 'header' || undefined,
    secretIndex: parts.secretIndex,
    from: parts.source,
    method: parts.method === 'POST' ? undefined : parts.method,
    group,
    headers,
  }
  return joinParts(head, parts.bytes)
}

function joinParts(head: Head, body: Uint8Array): Uint8Array {
  const line = `${JSON.stringify(head)}\n`
  const length = Buffer.byteLength(line)
  const envelope = Buffer.allocUnsafe(length + body.length)
  envelope.write(line)
  envelope.set(body, length)
  return envelope
}

/**
 * Copies a stored message for a replay. Returns the copy and its group.
 *
 * @throws HooklineError when the stored bytes are not an envelope.
 */
export function copyFor(replay: StoredReplay, stored: Uint8Array): Pick<Job, 'body' | 'group'> {
  const head = readHead(stored)
  return { body: joinParts({ ...head, replay }, bodyOf(stored)), group: head.group }
}

export function readEnvelope(stored: Uint8Array): DeliveryParts {
  const envelope = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  const { at, source, signature, hasHeader, secretIndex, from, method = 'POST', replay, headers } = readHead(envelope)
  return {
    method,
    headers,
    bytes: Buffer.from(bodyOf(envelope)), // A copy, because a queue in memory needs the original bytes for the next attempt.
    bodySource: source,
    receivedAt: at,
    verified: signature !== undefined && (hasHeader ? 'header' : 'signature'),
    signature,
    secretIndex,
    source: from,
    replay: replay && { id: replay.id, handledAt: new Date(replay.at), handlers: replay.only },
  }
}

export function sourceOf(stored: Uint8Array): string | undefined {
  try {
    return readHead(stored).from
  } catch {
    return undefined
  }
}

export function bodyOf(stored: Uint8Array): Uint8Array {
  return stored.subarray(stored.indexOf(LINE_FEED) + 1)
}

const LINE_FEED = 0x0a
const decoder = new TextDecoder()

function readHead(stored: Uint8Array): Head {
  const keyId = sealedWith(stored)
  if (keyId !== undefined) throw sealedError(keyId)
  let head: unknown
  try {
    head = JSON.parse(decoder.decode(stored.subarray(0, Math.max(stored.indexOf(LINE_FEED), 0))))
  } catch {
    // The error of JSON.parse is not passed on, because it quotes its input.
  }
  if (!isObject(head) || !Number.isInteger(head.hookline)) throw unreadable('has another format')
  if (head.hookline !== VERSION) throw unreadable(`has version ${head.hookline}, not ${VERSION}`)
  if (!isHead(head)) throw unreadable('lacks fields')
  return head
}

function isHead(head: Json): head is Json & Head {
  return (
    isTime(head.at) &&
    typeof head.source === 'string' &&
    isObject(head.headers) &&
    (head.replay === undefined || isReplay(head.replay)) &&
    [head.from, head.method, head.group].every((text) => text === undefined || typeof text === 'string') &&
    (head.signature === undefined || (typeof head.signature === 'string' && Number.isInteger(head.secretIndex)))
  )
}

function isReplay(replay: unknown): boolean {
  const { id, at, only = [] } = isObject(replay) ? replay : {}
  const isNamed = typeof id === 'string' && isTime(at)
  return isNamed && Array.isArray(only) && only.every((name) => typeof name === 'string')
}

function isTime(at: unknown): boolean {
  return Number.isFinite(new Date(at as number).getTime())
}

function unreadable(reason: string): HooklineError {
  const advice = 'Redrive the message with the release that wrote it, or drop the message.'
  return new HooklineError('internal', `The inbox cannot read the stored message: the data ${reason}. ${advice}`)
}
