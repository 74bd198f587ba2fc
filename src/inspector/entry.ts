/** One message in a journal: what is kept of it, and how that is shown. */

import type { EndpointHeaders } from '../http/endpoint.ts'
import { parseObject } from '../message/json.ts'
import { RETRY_WINDOW_MS } from '../message/limits.ts'
import type { Message } from '../message/message.ts'
import { cut, keepBytes, linesOf, showBody, sizeOfHeaders, sizeOfStep } from './lines.ts'
import type { Detail, RequestLine, Row, RowState, Step } from './wire-message.ts'

/** The estimate for an entry without body, headers and steps. */
const ENTRY_SIZE = 500
/** The most characters of a name or a user. */
const SHORT = 200
/** How many steps are kept, of the first and of the last. */
const FIRST_STEPS = 10
const LAST_STEPS = 90

const NO_BYTES = new Uint8Array()

/** The fields of any message that are shown. */
type Described = Readonly<Partial<Record<'event' | 'name' | 'groupId' | 'userId' | 'anonymousId', unknown>>>

/** Where the entries of one part are found: by the id of a delivery, and by that of a job. */
export interface Home {
  readonly name: string
  readonly byKey: Map<string, Entry>
  readonly byJob: Map<string, Entry>
}

/** What is read from a file when it is needed. */
export interface Stored {
  readonly headers: EndpointHeaders | undefined
  readonly body: Uint8Array
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
  path = ''
  remoteAddress: string | undefined
  headers: EndpointHeaders | undefined
  body: Uint8Array = NO_BYTES
  bytes = 0
  /** Whether its body is to be parsed when its line is read first. */
  isUnread = false
  /** In their order. */
  steps: Step[] = []
  /** An estimate, in bytes, of what it takes. */
  size: number = ENTRY_SIZE
  /** Whether headers and body are in the file alone. */
  isStored = false
  /** The journal's: the version of the latest change, what of `size` it has counted, and the entries changed before and after. */
  version = 0
  counted = 0
  before: Entry | undefined
  after: Entry | undefined

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
    const { type } = message
    const { event, name, groupId, userId, anonymousId } = message as Described
    this.type = type
    this.name = cut(type === 'track' ? event : type === 'group' ? groupId : name, SHORT)
    this.user = cut(userId || anonymousId, SHORT)
  }

  /** Keeps the bytes of a body. */
  setBody(bytes: Uint8Array): void {
    this.size += bytes.length - this.body.length
    this.bytes = bytes.length
    this.body = keepBytes(bytes, this.isRefused)
  }

  setHeaders(headers: EndpointHeaders): void {
    if (this.headers !== undefined) this.size -= sizeOfHeaders(this.headers)
    this.headers = headers
    this.size += sizeOfHeaders(headers)
  }

  /**
   * Adds a step at its time. Of too many, those in the middle are dropped.
   *
   * @param isFirst Whether it began what else is known of that time: only the answer to an earlier request stays before it.
   */
  add(step: Step, isFirst = false): void {
    const { steps } = this
    let index = steps.length
    for (; index > 0; index -= 1) {
      const { at, what } = steps[index - 1] as Step
      if (at < step.at || (at === step.at && !(isFirst && what !== 'answered'))) break
    }
    if (index === steps.length) steps.push(step)
    else if (index === 0) steps.unshift(step)
    else steps.splice(index, 0, step)
    this.size += sizeOfStep(step)
    if (steps.length <= FIRST_STEPS + LAST_STEPS) return
    const [dropped] = steps.splice(FIRST_STEPS, 1)
    this.size -= sizeOfStep(dropped as Step)
  }

  /** What a file keeps of it, beside headers and body. */
  save(): SavedEntry {
    if (this.isUnread) this.#read()
    const { id, home, headers, body, isStored, version, counted, before, after, ...fields } = this
    return { ...fields, part: home.name }
  }

  /** Headers and body are in the file: drops them here. */
  setStored(): void {
    this.isStored = true
    this.headers = undefined
    this.body = NO_BYTES
  }

  /** Notes that its dead letter was redriven or dropped. One that has failed again since is still dead. */
  change(what: 'redriven' | 'dropped', at: number): void {
    this.add({ at, what })
    if (what === 'dropped') this.jobId = undefined
    else if (this.state === 'dead' && (this.endedAt ?? 0) <= at) {
      this.state = 'waiting'
      this.code = undefined
    }
  }

  /** Whether its bytes can tell why its signature was refused. */
  get canExplain(): boolean {
    return this.isRefused && this.code?.startsWith('signature_') === true
  }

  /** Its line in the list. */
  row(): Row {
    if (this.isUnread) this.#read()
    const { id, at, kind, home, state, type, name, user, status, code, bytes, attempts, retryAt, durationMs } = this
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

  /** Everything about it. `stored`: what is in the file alone. */
  detail(stored: Stored | undefined): Detail {
    const { kind, method, path, remoteAddress, jobId, startedAt, steps } = this
    const { headers = {}, body } = stored ?? this
    const address = remoteAddress === undefined ? {} : { remoteAddress }
    const request: RequestLine = { method, path, ...address, headers: linesOf(headers) }
    return {
      row: this.row(),
      ...(kind !== 'sent' && { request }),
      body: showBody(body, this.bytes, kind === 'collected'),
      steps,
      ...(jobId !== undefined && { jobId }),
      canExplain: this.canExplain,
      ...(startedAt !== undefined && { window: { startedAt, endsAt: startedAt + RETRY_WINDOW_MS } }),
    }
  }
}
