/** A message as the inbox keeps it: how it arrived as a line of JSON, then the exact bytes of its body. */

import type { BodySource } from '../protocol/body.ts'
import type { EndpointHeaders } from '../protocol/endpoint.ts'
import { HooklineError } from '../protocol/error.ts'
import { isObject } from '../protocol/json.ts'
import { OpenDelivery } from './delivery.ts'

/** The line, in the order it is written. */
interface Line {
  readonly hookline: typeof VERSION
  /** When the request arrived, in milliseconds since the epoch. */
  readonly at: number
  readonly source: BodySource
  /** The verified signature and the secret that made it; none when unsigned. */
  readonly signature: string | undefined
  readonly secretIndex: number | undefined
  readonly headers: EndpointHeaders
}

const VERSION = 1

/** Names of headers that hold secrets of the sender, of a proxy or of a platform, and say nothing about the message. */
const SECRET = /authorization|cookie|credential|token|secret|passw|api-?key|functions-key|assertion|jwt|oidc|session/

/** Writes a delivery, for the inbox to keep. */
export function writeEnvelope(delivery: OpenDelivery): Uint8Array {
  const headers: Record<string, EndpointHeaders[string]> = {}
  for (const name in delivery.headers) if (!SECRET.test(name)) headers[name] = delivery.headers[name]
  const line: Line = {
    hookline: VERSION,
    at: delivery.receivedAt.getTime(),
    source: delivery.source,
    signature: delivery.verified ? delivery.id : undefined,
    secretIndex: delivery.secretIndex,
    headers,
  }
  const text = `${JSON.stringify(line)}\n`
  const length = Buffer.byteLength(text)
  const envelope = Buffer.allocUnsafe(length + delivery.bytes.length)
  envelope.write(text)
  envelope.set(delivery.bytes, length)
  return envelope
}

/**
 * Reads what {@link writeEnvelope} wrote.
 *
 * @throws HooklineError `internal` for anything else, and for what another version wrote.
 */
export function readEnvelope(stored: Uint8Array): OpenDelivery {
  const envelope = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  const end = envelope.indexOf(LINE_FEED)
  const { at, source, signature, secretIndex, headers } = readLine(envelope.subarray(0, Math.max(end, 0)))
  const delivery = new OpenDelivery(headers, at)
  // A copy: a queue in memory keeps the original, for the next attempt.
  delivery.setBody({ bytes: Buffer.from(envelope.subarray(end + 1)), source })
  if (signature !== undefined) delivery.confirm(signature, secretIndex as number)
  return delivery
}

const LINE_FEED = 0x0a
const decoder = new TextDecoder()

function readLine(bytes: Uint8Array): Line {
  let line: unknown
  try {
    line = JSON.parse(decoder.decode(bytes))
  } catch {
    // What JSON.parse says quotes its input.
  }
  if (!isObject(line) || !Number.isInteger(line.hookline)) throw unreadable('it is no message of an inbox')
  if (line.hookline !== VERSION) throw unreadable(`it was written in form ${line.hookline}, this is form ${VERSION}`)
  const isWhole =
    Number.isFinite(new Date(line.at as number).getTime()) &&
    typeof line.source === 'string' &&
    isObject(line.headers) &&
    (line.signature === undefined || (typeof line.signature === 'string' && Number.isInteger(line.secretIndex)))
  if (!isWhole) throw unreadable('parts of it are missing')
  return line as unknown as Line
}

function unreadable(why: string): HooklineError {
  return new HooklineError('internal', `What is in the inbox cannot be read: ${why}.`)
}
