/** One message in a journal: what is kept of it, and how that is shown. */

import { MOST_ROOM, type Slab, type Slabs } from '../collections/slabs.ts'
import type { AnsweredRequest } from '../handling/observer.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { parseObject } from '../message/json.ts'
import type { Message } from '../message/message.ts'
import type { Exchange } from './exchange.ts'
import { addStep, cut, nameOf, SHORT, sizeOfHeaders, userOf } from './lines.ts'
import type { Row, RowState, Step } from './wire-message.ts'

/** The estimate for an entry without body, headers and steps. */
const ENTRY_SIZE = 500
const NO_BYTES = new Uint8Array()

/** Where the entries of one part are found: by the id of a delivery, and by that of a job. Messages that were done at once are not here. */
export interface Home {
  readonly name: string
  readonly byKey: Map<string, Entry>
  readonly byJob: Map<string, Entry>
}

/** An entry without its place in the journal, its headers and its body. */
export type SavedEntry = Pick<Entry, 'at' | 'kind' | 'key' | 'isRefused'> & { readonly part: string }

/** What is known of an entry from the beginning. */
export type EntryHead = Pick<Entry, 'id' | 'at' | 'kind' | 'home' | 'key' | 'isRefused'>

/** What is kept of a message. Watchers write the fields, and tell the journal. */
export class Entry {
  readonly id: number
  readonly at: number
  readonly kind: Row['kind']
  readonly home: Home
  /** The id of its delivery. */
  readonly key: string | undefined
  readonly isRefused: boolean
  jobId: string | undefined
  source: string | undefined
  state: RowState = 'waiting'
  type: string | undefined
  name: string | undefined
  user: string | undefined
  status: number | undefined
  code: string | undefined
  attempts = 0
  retryAt: number | undefined
  durationMs: number | undefined
  /** When its latest attempt ended. */
  endedAt: number | undefined
  /** When the first attempt of a sent one began. */
  startedAt: number | undefined
  method = 'POST'
  /** As it is shown, and relative to where the receiver is mounted. */
  path = ''
  ownPath = ''
  remoteAddress: string | undefined
  bytes = 0
  /** Whether its body is to be parsed when its line is read first. */
  isUnread = false
  /** Estimates, in bytes, of what it takes, and of its headers alone. */
  size: number = ENTRY_SIZE
  headersSize = 0
  headers: EndpointHeaders | undefined
  /** In their order. */
  steps: Step[] = []
  /** Whether headers and body are in the file alone. */
  isStored = false
  /** The pool's: where it is there. */
  place = 0
  #body: Uint8Array = NO_BYTES
  readonly #slabs: Slabs
  /** That of its body. */
  #room: readonly [slab: Slab, start: number, end: number] | undefined

  constructor({ id, at, kind, home, key, isRefused }: EntryHead, slabs: Slabs) {
    this.id = id
    this.at = at
    this.kind = kind
    this.home = home
    this.key = key
    this.isRefused = isRefused
    this.#slabs = slabs
  }

  /** Keeps what a message says of itself, as short strings alone: what it was parsed to is not held. */
  describe(message: Message): void {
    this.type = message.type
    this.name = cut(nameOf(message), SHORT)
    this.user = cut(userOf(message), SHORT)
  }

  /** Keeps how it was sent. */
  setRequest({ method = 'POST', path = '', originalPath = path, remoteAddress }: AnsweredRequest): void {
    this.method = method
    this.path = originalPath
    this.ownPath = path
    this.remoteAddress = remoteAddress
  }

  /** Keeps what its line shows of a message which was done at once, and takes over its room. */
  setExchange({ fields, body, end }: Exchange, slab: Slab, start: number): void {
    Object.assign(this, fields)
    this.state = 'done'
    this.attempts = 1
    this.#room = [slab, start, end]
    this.#body = body
    this.bytes = body.length
    this.size += body.length
  }

  /** Its bytes. They are others once the journal drops it. */
  get body(): Uint8Array {
    return this.#body
  }

  /** Keeps the bytes of a body: a copy where they are a part of more, because the whole chunk of a connection would be kept. */
  setBody(bytes: Uint8Array): void {
    const { length } = bytes
    this.size += length - this.#body.length
    this.bytes = length
    this.#freeBody()
    if (length > MOST_ROOM) this.#body = length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
    else if (length > 0) {
      const slab = this.#slabs.open(length)
      const { used } = slab
      slab.bytes.set(bytes, used)
      this.#slabs.take(slab, used + length)
      this.#room = [slab, used, used + length]
      this.#body = slab.bytes.subarray(used, used + length)
    }
  }

  #freeBody(): void {
    if (this.#room !== undefined) this.#slabs.release(this.#room[0])
    this.#room = undefined
    this.#body = NO_BYTES
  }

  setHeaders(headers: EndpointHeaders): void {
    this.headers = headers
    this.size -= this.headersSize // Also of those that are in the file by now.
    this.headersSize = sizeOfHeaders(headers)
    this.size += this.headersSize
  }

  /** Adds a step, as {@link addStep} does. */
  add(step: Step, isFirst = false): void {
    this.size += addStep(this.steps, step, isFirst)
  }

  /** What a file keeps of it, beside headers and body. */
  save(): SavedEntry {
    if (this.isUnread) this.#parse()
    const { id, home, isStored, place, headers, ...fields } = this
    return { ...fields, part: home.name }
  }

  /** Headers and body are in the file: drops them here. */
  setStored(): void {
    this.isStored = true
    this.release()
  }

  /** Lets go of headers and body. */
  release(): void {
    this.headers = undefined
    this.#freeBody()
  }

  /** Clears its bytes, which else stay until all of their slab are dropped. */
  clear(): void {
    const [slab, start, end] = this.#room ?? []
    slab?.bytes.fill(0, start, end)
  }

  /** Whether its bytes can tell why its signature was refused. */
  get canExplain(): boolean {
    return this.isRefused && this.code?.startsWith('signature_') === true
  }

  /** Its line in the list. */
  row(): Row {
    if (this.isUnread) this.#parse()
    const { id, at, kind, home, state, type, name, user, status, code, bytes, attempts, retryAt, durationMs } = this
    const row = { id, at, kind, part: home.name, state, type, name, user, status, code, bytes, attempts, retryAt }
    return { ...row, durationMs, ...(this.isRefused && { isRefused: true }) } as Row
  }

  /** Of a call that was collected, whose type is known by its path. */
  #parse(): void {
    this.isUnread = false
    try {
      this.describe({ ...parseObject(this.body), type: this.type } as unknown as Message)
    } catch {} // It is no JSON.
  }
}
