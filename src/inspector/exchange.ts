/**
 * Messages that were done at once, as bytes. Hot path: nearly every message of a receiver is one of these, and each object that is
 * left to the garbage collector costs more than all that is computed here.
 */

import { MOST_ROOM, type Slab } from '../collections/slabs.ts'
import type { AnsweredEvent, ObservedHandled } from '../handling/observer.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { nameOf, SHORT, userOf } from './lines.ts'
import type { Step } from './wire-message.ts'

/**
 * The places of its numbers, of 8 bytes each. The durations of its handlers follow, then the lengths of its texts, of 2 bytes each,
 * then the body, and the texts in one piece.
 */
const AT = 0
const ENDED_AT = 1
const STATUS = 2
const ANSWER_MS = 3
const HANDLERS_MS = 4
const IS_VERIFIED = 5
const SECRET_INDEX = 6
const BODY_LENGTH = 7
const RUN_COUNT = 8
const TEXT_COUNT = 9
const END = 10
const RUNS = 11

/** The most handlers, texts, characters of all texts, which take up to three bytes each, and bytes of a body. */
const MOST_RUNS = 8
const MOST_TEXTS = 128
const MOST_TEXT = 2_400
const MOST_BODY = MOST_ROOM - 8 * (RUNS + MOST_RUNS) - 2 * MOST_TEXTS - 3 * MOST_TEXT

/** The texts of the message that is being written. */
let text = ''
let count = 0

/** What is no text, against its type, becomes one: the texts behind it would be cut at other places, and show what is to be hidden. */
function put(slab: Slab, lengthsAt: number, next: string): void {
  const { length } = text
  text += next
  slab.lengths[lengthsAt + count] = text.length - length
  count += 1
}

/** Holds nothing of a message that is kept otherwise. */
function giveUp(): undefined {
  text = ''
}

/** The room that a message may take whose body is so long; undefined for one that is too long for this. */
export function roomOf(length: number): number | undefined {
  return length > MOST_BODY ? undefined : MOST_ROOM - MOST_BODY + length
}

/**
 * Writes a message that arrived alone, was handled, and was answered at once, behind what is used of a slab with room for it.
 * Returns where it ends; undefined for one that does not fit, or that has other than texts in its headers.
 */
export function writeExchange(
  slab: Slab,
  key: string,
  { message, delivery, runs, durationMs }: ObservedHandled,
  { request, status, durationMs: answerMs }: AnsweredEvent,
  endedAt: number,
): number | undefined {
  const { bytes: body, headers, source = '', secretIndex = -1 } = delivery
  const { method = 'POST', path = '', originalPath = path, remoteAddress } = request
  const [name = '', user = ''] = [nameOf(message), userOf(message)]
  if (typeof name !== 'string' || typeof user !== 'string' || runs.length > MOST_RUNS) return undefined
  if (name.length > SHORT || user.length > SHORT) return undefined
  const { bytes, numbers, used } = slab
  const first = used / 8
  const lengthsAt = used / 2 + 4 * (RUNS + runs.length)
  text = ''
  count = 0
  put(slab, lengthsAt, key)
  put(slab, lengthsAt, message.type)
  put(slab, lengthsAt, name)
  put(slab, lengthsAt, user)
  put(slab, lengthsAt, source)
  put(slab, lengthsAt, method)
  put(slab, lengthsAt, originalPath)
  put(slab, lengthsAt, path)
  put(slab, lengthsAt, remoteAddress ?? '')
  for (let index = 0; index < runs.length; index += 1) {
    const run = runs[index] as (typeof runs)[number]
    put(slab, lengthsAt, run.on)
    put(slab, lengthsAt, run.name)
    numbers[first + RUNS + index] = run.durationMs
  }
  for (const header in headers) {
    const value = headers[header]
    if (typeof value !== 'string') return giveUp()
    put(slab, lengthsAt, header)
    put(slab, lengthsAt, value)
  }
  if (count > MOST_TEXTS || text.length > MOST_TEXT) return giveUp()
  numbers[first + AT] = delivery.receivedAt.getTime()
  numbers[first + ENDED_AT] = endedAt
  numbers[first + STATUS] = status
  numbers[first + ANSWER_MS] = answerMs
  numbers[first + HANDLERS_MS] = durationMs
  numbers[first + IS_VERIFIED] = delivery.verified ? 1 : 0
  numbers[first + SECRET_INDEX] = secretIndex
  numbers[first + BODY_LENGTH] = body.length
  numbers[first + RUN_COUNT] = runs.length
  numbers[first + TEXT_COUNT] = count
  const bodyAt = 2 * (lengthsAt + count)
  bytes.set(body, bodyAt)
  const textAt = bodyAt + body.length
  const end = textAt + bytes.write(text, textAt)
  numbers[first + END] = end
  text = ''
  return end
}

/** A message that was read back. */
export interface Exchange {
  readonly at: number
  readonly key: string
  /** What it is, and how it was sent, by the names of an entry. */
  readonly fields: Readonly<
    Record<'type' | 'method' | 'path' | 'ownPath', string> &
      Record<'name' | 'user' | 'source' | 'remoteAddress', string | undefined> &
      Record<'status' | 'durationMs' | 'endedAt', number>
  >
  /** A part of the slab. */
  readonly body: Uint8Array
  /** Its headers and steps, which its line in the list does not need. Call it once. */
  readRest(): { readonly headers: EndpointHeaders; readonly steps: readonly Step[] }
  /** Where it ends. */
  readonly end: number
}

/** Reads the message that was written from there on. */
export function readExchange({ bytes, numbers, lengths }: Slab, start: number): Exchange {
  const number = (place: number): number => numbers[start / 8 + place] as number
  const lengthsAt = start / 2 + 4 * (RUNS + number(RUN_COUNT))
  const bodyAt = 2 * (lengthsAt + number(TEXT_COUNT))
  const textAt = bodyAt + number(BODY_LENGTH)
  const text = bytes.toString('utf8', textAt, number(END))
  let read = 0
  let characters = 0
  const next = (): string => {
    const from = characters
    characters += lengths[lengthsAt + read] as number
    read += 1
    return text.slice(from, characters)
  }
  const [key, type, name, user] = [next(), next(), next() || undefined, next() || undefined]
  const [source, method, path, ownPath] = [next() || undefined, next(), next(), next()]
  const remoteAddress = next() || undefined
  const [at, endedAt, status, durationMs] = [number(AT), number(ENDED_AT), number(STATUS), number(HANDLERS_MS)]
  return {
    at,
    key,
    fields: { type, name, user, source, method, path, ownPath, remoteAddress, status, durationMs, endedAt },
    body: bytes.subarray(bodyAt, textAt),
    readRest() {
      const runs = Array.from({ length: number(RUN_COUNT) }, (_, index) => {
        return { on: next(), name: next(), durationMs: number(RUNS + index) }
      })
      const headers: [string, string][] = []
      while (read < number(TEXT_COUNT)) headers.push([next(), next()])
      const secretIndex = number(SECRET_INDEX) < 0 ? undefined : number(SECRET_INDEX)
      // Fields that are undefined are left out when they are sent.
      const steps: readonly unknown[] = [
        { at, what: 'arrived', bytes: textAt - bodyAt, isCopy: false, remoteAddress },
        { at, what: 'checked', isVerified: number(IS_VERIFIED) === 1, secretIndex, source },
        { at: endedAt, what: 'handled', attempt: 1, durationMs, runs },
        { at: endedAt, what: 'answered', status, durationMs: number(ANSWER_MS) },
      ]
      return { headers: Object.fromEntries(headers), steps: steps as readonly Step[] }
    },
    end: number(END),
  }
}

/** The key that it was written with. */
export function keyOf({ bytes, numbers, lengths }: Slab, start: number): string {
  const number = (place: number): number => numbers[start / 8 + place] as number
  const lengthsAt = start / 2 + 4 * (RUNS + number(RUN_COUNT))
  const textAt = 2 * (lengthsAt + number(TEXT_COUNT)) + number(BODY_LENGTH)
  return bytes.toString('latin1', textAt, textAt + (lengths[lengthsAt] as number))
}
