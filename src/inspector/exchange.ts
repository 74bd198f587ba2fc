/**
 * Messages that were done at once, as bytes and integers. Hot path: nearly every message of a receiver is one of these, and each
 * object that it leaves to the garbage collector costs more than all that is computed here.
 */

import { freeRoom, openSlab, readTexts, type Slab, takeRoom, writeText } from '../collections/slabs.ts'
import type { AnsweredEvent, HandlerRun, ObservedHandled } from '../handling/observer.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import type { Message } from '../message/message.ts'
import type { Step } from './wire-message.ts'

const MOST_BODY = 12_288
/** The most characters of headers and texts together. */
const MOST_TEXT = 4_096
/** The estimate, in bytes, for what is not in the slab. */
const SIZE = 200
/** The most characters of a name or a user. */
export const SHORT = 200
/** Type, name and user come before the headers. */
const TEXTS = 3

/** The fields of any message that are shown. */
type Described = Readonly<Partial<Record<'event' | 'name' | 'groupId' | 'userId' | 'anonymousId', unknown>>>

/** What the name of a message is: the event of a track, the group of a group. */
export function nameOf(message: Message): unknown {
  const { event, name, groupId } = message as Described
  return message.type === 'track' ? event : message.type === 'group' ? groupId : name
}

export function userOf(message: Message): unknown {
  const { userId, anonymousId } = message as Described
  return userId || anonymousId
}

/**
 * A message that arrived alone, was handled, and was answered at once: its bytes, its headers and its steps. Durations are kept as
 * integers, for which no object is made.
 */
export class Exchange {
  readonly #slab: Slab
  readonly #start: number
  readonly #bodyEnd: number
  readonly #end: number
  readonly #status: number
  readonly #isVerified: boolean
  readonly #secretIndex: number | undefined
  readonly #afterMs: number
  readonly #answerUs: number
  readonly #handlersUs: number
  /** The run of a single handler, else all of them. */
  readonly #on: string
  readonly #name: string
  readonly #runUs: number
  readonly #runs: readonly HandlerRun[] | undefined

  /** @param afterMs How long after its arrival it was answered. */
  constructor(
    slab: Slab,
    bodyEnd: number,
    end: number,
    handled: ObservedHandled,
    answered: AnsweredEvent,
    afterMs: number,
  ) {
    const { delivery, runs, durationMs } = handled
    const [run] = runs
    const isSingle = run !== undefined && runs.length === 1
    this.#slab = slab
    this.#start = slab.used
    this.#bodyEnd = bodyEnd
    this.#end = end
    this.#status = answered.status
    this.#isVerified = delivery.verified
    this.#secretIndex = delivery.secretIndex
    this.#afterMs = afterMs
    this.#answerUs = microseconds(answered.durationMs)
    this.#handlersUs = microseconds(durationMs)
    this.#on = isSingle ? run.on : ''
    this.#name = isSingle ? run.name : ''
    this.#runUs = isSingle ? microseconds(run.durationMs) : 0
    this.#runs = isSingle ? undefined : runs
  }

  /** An estimate, in bytes. */
  get size(): number {
    return SIZE + this.#end - this.#start
  }

  /** A copy. */
  get body(): Uint8Array {
    return this.#slab.bytes.slice(this.#start, this.#bodyEnd)
  }

  /** Its type, its name and its user. */
  get texts(): readonly (string | undefined)[] {
    return readTexts(this.#slab, this.#bodyEnd, this.#end)
      .slice(0, TEXTS)
      .map((text) => text || undefined)
  }

  get headers(): EndpointHeaders {
    const lines = readTexts(this.#slab, this.#bodyEnd, this.#end).slice(TEXTS)
    return Object.fromEntries(lines.flatMap((name, index) => (index % 2 === 0 ? [[name, lines[index + 1]]] : [])))
  }

  get durationMs(): number {
    return this.#handlersUs / 1_000
  }

  /** Those of its entry. Fields that are undefined are left out when they are sent. */
  steps(at: number, remoteAddress: string | undefined, source: string | undefined): readonly Step[] {
    const run = { on: this.#on, name: this.#name, durationMs: this.#runUs / 1_000 }
    const endedAt = at + this.#afterMs
    const steps: readonly unknown[] = [
      { at, what: 'arrived', bytes: this.#bodyEnd - this.#start, isCopy: false, remoteAddress },
      { at, what: 'checked', isVerified: this.#isVerified, secretIndex: this.#secretIndex, source },
      { at: endedAt, what: 'handled', attempt: 1, durationMs: this.durationMs, runs: this.#runs ?? [run] },
      { at: endedAt, what: 'answered', status: this.#status, durationMs: this.#answerUs / 1_000 },
    ]
    return steps as readonly Step[]
  }

  /** Gives its memory back. Call it once. */
  release(): void {
    freeRoom(this.#slab, this.#start, this.#end)
  }
}

/** Keeps an exchange. Returns undefined for one that is too large for this, or has a text that is not Latin-1. */
export function keepExchange(handled: ObservedHandled, answered: AnsweredEvent, afterMs: number): Exchange | undefined {
  const { message, delivery } = handled
  const { bytes: body, headers } = delivery
  const [name = '', user = ''] = [nameOf(message), userOf(message)]
  if (typeof name !== 'string' || typeof user !== 'string' || name.length > SHORT || user.length > SHORT)
    return undefined
  if (body.length > MOST_BODY) return undefined
  const slab = openSlab(body.length + MOST_TEXT)
  const { bytes, used } = slab
  bytes.set(body, used)
  const bodyEnd = used + body.length
  const most = bodyEnd + MOST_TEXT
  let end = writeText(bytes, message.type, bodyEnd, most)
  end = writeText(bytes, user, writeText(bytes, name, end, most), most)
  for (const header in headers) {
    const value = headers[header]
    if (typeof value !== 'string') return undefined
    end = writeText(bytes, value, writeText(bytes, header, end, most), most)
  }
  if (end > most) return undefined
  const exchange = new Exchange(slab, bodyEnd, end, handled, answered, afterMs)
  takeRoom(slab, end)
  return exchange
}

function microseconds(ms: number): number {
  return Math.round(ms * 1_000)
}
