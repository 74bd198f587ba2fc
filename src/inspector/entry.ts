/** One message in a journal: what is kept of it, and how that is shown. */

import type { AnsweredRequest } from '../handling/observer.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { parseObject } from '../message/json.ts'
import type { Message } from '../message/message.ts'
import { type Exchange, nameOf, SHORT, userOf } from './exchange.ts'
import { addStep, cut, keepBytes, sizeOfHeaders } from './lines.ts'
import type { Row, RowState, Step } from './wire-message.ts'

/** The estimate for an entry without body, headers and steps. */
const ENTRY_SIZE = 500
const NO_BYTES = new Uint8Array()

/** Where the entries of one part are found: by the id of a delivery, and by that of a job. */
export interface Home {
  readonly name: string
  readonly byKey: Map<string, Entry>
  readonly byJob: Map<string, Entry>
}

/** An entry without its place in the journal, its headers and its body. */
export type SavedEntry = Pick<Entry, 'at' | 'kind' | 'key' | 'isRefused'> & { readonly part: string }

/**
 * What is kept of a message. Watchers write the fields, and tell the journal. Hot path: strings and references alone, nothing is
 * computed before it is read.
 */
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
  /** Whether headers and body are in the file alone. */
  isStored = false
  /** The journal's: the version of the latest change, what of `size` it has counted, and the entries changed before and after. */
  version = 0
  counted = 0
  before: Entry | undefined
  after: Entry | undefined
  /** Holds headers, body and steps, and what it says of itself, until more is known of it or all of it is shown. */
  #exchange: Exchange | undefined
  #headers: EndpointHeaders | undefined
  #body: Uint8Array = NO_BYTES
  #steps: Step[] = []

  constructor(id: number, at: number, kind: Row['kind'], home: Home, key: string | undefined, isRefused: boolean) {
    this.id = id
    this.at = at
    this.kind = kind
    this.home = home
    this.key = key
    this.isRefused = isRefused
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

  /** Keeps all that is known of a message which was done at once. */
  setExchange(exchange: Exchange): void {
    this.#exchange = exchange
    this.size += exchange.size
  }

  #unfold(): this {
    const exchange = this.#exchange
    if (exchange === undefined) return this
    this.#exchange = undefined
    this.size -= exchange.size
    ;[this.type, this.name, this.user] = exchange.texts
    this.durationMs = exchange.durationMs
    this.setBody(exchange.body)
    this.setHeaders(exchange.headers)
    for (const step of exchange.steps(this.at, this.remoteAddress, this.source)) this.add(step)
    exchange.release()
    return this
  }

  get headers(): EndpointHeaders | undefined {
    return this.#unfold().#headers
  }

  get body(): Uint8Array {
    return this.#unfold().#body
  }

  /** In their order. */
  get steps(): Step[] {
    return this.#unfold().#steps
  }

  set steps(steps: Step[]) {
    this.#steps = steps
  }

  /** Keeps the bytes of a body. */
  setBody(bytes: Uint8Array): void {
    this.size += bytes.length - this.body.length
    this.bytes = bytes.length
    this.#body = keepBytes(bytes, this.isRefused)
  }

  setHeaders(headers: EndpointHeaders): void {
    this.#unfold().#headers = headers
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
    if (this.isUnread) this.#read()
    const { steps } = this // First: the fields follow from it.
    const { id, home, isStored, version, counted, before, after, ...fields } = this
    return { ...fields, steps, part: home.name }
  }

  /** Headers and body are in the file: drops them here. */
  setStored(): void {
    this.isStored = true
    this.release()
  }

  /** Lets go of headers and body. */
  release(): void {
    this.#exchange?.release()
    this.#exchange = this.#headers = undefined
    this.#body = NO_BYTES
  }

  /** Whether its bytes can tell why its signature was refused. */
  get canExplain(): boolean {
    return this.isRefused && this.code?.startsWith('signature_') === true
  }

  /** Its line in the list. */
  row(): Row {
    if (this.isUnread) this.#read()
    if (this.#exchange !== undefined) [this.type, this.name, this.user] = this.#exchange.texts
    const { id, at, kind, home, state, type, name, user, status, code, bytes, attempts, retryAt } = this
    const durationMs = this.durationMs ?? this.#exchange?.durationMs
    const row = { id, at, kind, part: home.name, state, type, name, user, status, code, bytes, attempts, retryAt }
    return { ...row, durationMs, ...(this.isRefused && { isRefused: true }) } as Row
  }

  /** Of a call that was collected, whose type is known by its path. */
  #read(): void {
    this.isUnread = false
    try {
      this.describe({ ...parseObject(this.body), type: this.type } as unknown as Message)
    } catch {} // It is no JSON.
  }
}
