/** The receive algorithm, from top to bottom: the first step that fails decides the answer. */

import { accepted, duplicate, problem } from '../host/answer.ts'
import type { EndpointBody } from '../host/body.ts'
import type { EndpointRequest } from '../host/endpoint.ts'
import { readJson } from '../host/read-json.ts'
import { notify } from '../kit/callbacks.ts'
import type { Clock } from '../kit/clock.ts'
import { createDeadlines, type Deadlines } from '../kit/deadlines.ts'
import { createWarning } from '../kit/warning.ts'
import { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { parseReceived } from '../protocol/parse.ts'
import type { Job } from '../store/queue-types.ts'
import type { Attempt } from './attempt.ts'
import { type Incoming, splitBatch } from './batches.ts'
import { Deadline, LATE } from './deadline.ts'
import type { Deduplication } from './deduplication.ts'
import type { Delivery, DeliveryMethod, ReceivedElement } from './delivery.ts'
import type { FailedRequest } from './events.ts'
import { isUnusable, toError } from './failure.ts'
import type { Handlers } from './handlers.ts'
import type { Inbox } from './inbox.ts'
import { describeRequest, MISMATCH, NO_HANDLER, RESERIALISED } from './log-lines.ts'
import { NO_PROOF, ReceivedDelivery } from './received-delivery.ts'
import type { OnRejected, ReceiverSettings } from './receiver-options.ts'
import type { Received } from './receiver-types.ts'
import type { Tap } from './tap.ts'
import { type GivenHeader, verifyRequest } from './verify.ts'

export type ReadBody = () => EndpointBody | Promise<EndpointBody>

/** A request without a method is a call of `receive`. */
export type GivenRequest = FailedRequest &
  Partial<Pick<EndpointRequest, 'method' | 'rawHeaders'>> & { readonly query?: string | undefined }

/** How a message ended. */
interface Ended {
  readonly delivery: Delivery
  /** Undefined when it could not be parsed. */
  readonly message: ReceivedMessage | undefined
  /** Undefined when it was handled or stored. */
  readonly error?: HooklineError | undefined
  readonly isDuplicate?: boolean
}

/** Answers requests, by the algorithm. */
export class RequestReceiver {
  readonly #settings: ReceiverSettings
  readonly #tap: Tap
  readonly #clock: Clock
  readonly #handlers: Handlers
  readonly #inbox: Inbox | undefined
  readonly #dedupe: Deduplication | undefined
  readonly #deadlines: Deadlines
  readonly #warned = new Set<string>()
  readonly #warnOfRejected = createWarning('onRejected', 'HOOKLINE_ON_REJECTED')
  #inFlight = 0
  #onIdle = (): void => {}
  #isStopped = false

  constructor(settings: ReceiverSettings, handlers: Handlers, inbox?: Inbox, dedupe?: Deduplication) {
    this.#settings = settings
    this.#tap = settings.tap
    this.#clock = settings.clock
    this.#handlers = handlers
    this.#inbox = inbox
    this.#dedupe = dedupe
    this.#deadlines = createDeadlines(settings.deadlineMs, settings.clock)
  }

  /** Answers a request of a host. Never rejects. */
  handle(request: EndpointRequest): Promise<Received> {
    const read = () => readJson(request, this.#settings.limit, this.#settings)
    return this.answer(request, read, request.remainingMs)
  }

  /** Answers every later request `shutting_down`. Resolves when all earlier ones are answered. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }

  /** Answers a request. Never rejects. */
  async answer(given: GivenRequest, read: ReadBody, remainingMs = Number.POSITIVE_INFINITY): Promise<Received> {
    const { headerName, deadlineMs } = this.#settings
    this.#inFlight += 1
    const timers = remainingMs < deadlineMs ? createDeadlines(remainingMs, this.#clock) : this.#deadlines
    const deadline = new Deadline(timers, LATE.body, this.#clock.monotonic())
    try {
      if (headerName === undefined) return await this.#receive(given, undefined, read, deadline)
      return await this.#receive(withoutHeader(given, headerName), readHeader(given, headerName), read, deadline)
    } catch (thrown) {
      return refused(toError(thrown), this.#settings.methods)
    } finally {
      deadline.end()
      this.#inFlight -= 1
      if (this.#inFlight === 0) this.#onIdle()
    }
  }

  async #receive(
    request: GivenRequest,
    header: GivenHeader | undefined,
    read: ReadBody,
    deadline: Deadline,
  ): Promise<Received> {
    const { findKeys, methods, batches, batchLimit, takesCustom } = this.#settings
    const { headers, method = 'POST', path = '/', query = '' } = request
    const [receivedAt, since] = [this.#clock.now(), this.#clock.monotonic()]
    let body = NO_BODY
    let proof = NO_PROOF
    let refusal: HooklineError | undefined
    try {
      // 503 shutting_down; 405 method_not_allowed; 415 content_type_unsupported, content_encoding_unsupported;
      // 413 body_too_large; 400 body_aborted; 503 body_timeout
      body = await deadline.wait(this.#isStopped ? refuse() : read())
      if (body.source === 'reserialised') this.#warnOnce('HOOKLINE_RESERIALISED', RESERIALISED)
      deadline.startStage(LATE.secret)
      // 401 signature_missing, signature_malformed, signature_mismatch, header_missing, header_mismatch; 503 secret_unavailable
      proof = await verifyRequest(findKeys, { headers, path, query }, body, header, deadline)
    } catch (thrown) {
      refusal = toError(thrown)
    }
    const { bytes, source: bodySource } = body
    const parts = { method: method as DeliveryMethod, headers, bytes, bodySource, receivedAt, ...proof }
    if (refusal !== undefined) {
      const ended = { delivery: new ReceivedDelivery(parts), message: undefined, error: refusal }
      this.#tellRefused(refusal, ended, request)
      return this.#tap.answered(request, ended, refused(refusal, methods), since)
    }
    const incoming = batches ? splitBatch(parts, batchLimit, takesCustom) : [{ parts, parse }]
    const ended = await (this.#inbox === undefined
      ? this.#handleAll(incoming, request, deadline)
      : this.#storeAll(this.#inbox, incoming, request, deadline))
    const [first] = ended as readonly [Ended]
    if (incoming[0]?.parts === parts) return this.#tap.answered(request, first, this.#answerTo(first), since)
    const batch = { delivery: new ReceivedDelivery(parts), message: undefined }
    return this.#tap.answered(request, batch, this.#answerToBatch(ended), since)

    function parse(): ReceivedMessage {
      return parseReceived(bytes, takesCustom)
    }
  }

  /** Handles messages one after the other: copies in one batch find what the first of them left in the dedupe store. */
  async #handleAll(
    incoming: readonly Incoming[],
    request: GivenRequest,
    deadline: Deadline,
  ): Promise<readonly Ended[]> {
    const ended: Ended[] = []
    for (const each of incoming) {
      if (deadline.error !== undefined) break
      ended.push(await this.#handle(each, request, deadline))
    }
    const { error } = deadline
    if (error === undefined || ended.length === incoming.length) return ended
    this.#tap.publish('refused', { error, request }) // Once for all that no handler saw.
    return [...ended, ...incoming.slice(ended.length).map((each) => failed(each, error))]
  }

  async #handle({ parts, parse }: Incoming, request: GivenRequest, deadline: Deadline): Promise<Ended> {
    let delivery: Delivery = new ReceivedDelivery(parts, deadline)
    let message: ReceivedMessage | undefined
    let attempt: Attempt | undefined
    try {
      deadline.startStage(LATE.handlers)
      const wire = parse() // 400 body_not_json; 422 message_invalid, message_type_unknown
      message = wire
      const valid = await deadline.wait(this.#settings.validate(wire)) // 422 schema_mismatch
      const id = this.#dedupe?.idOf(wire, delivery)
      if (id !== undefined) delivery = new ReceivedDelivery({ ...parts, id }, deadline)
      const dispatch = (): Promise<undefined> | undefined => {
        deadline.startStage(LATE.handlers)
        message = valid
        attempt = this.#begin(valid, wire, delivery, request, deadline)
        return this.#handlers.dispatch(attempt)
      }
      const tellLate = (error: HooklineError): void =>
        this.#tap.failedLate(error, { delivery, message: valid }, request)
      const onLateError = (error: unknown): void => void (isOfHandlers(error) && tellLate(error))
      // 500 handler_failed; 503 handler_timeout, duplicate_in_progress, dedupe_unavailable
      const work = this.#dedupe?.handleOnce(delivery, deadline, dispatch, tellLate) ?? dispatch()
      const isDuplicate = (await deadline.wait<boolean | undefined>(work, onLateError)) === true
      if (attempt !== undefined) this.#tap.handled(attempt)
      return { delivery, message: valid, isDuplicate }
    } catch (thrown) {
      const error = await this.#giveRejected(toError(thrown), { delivery, message }, request, deadline)
      const ended = { delivery, message, error }
      if (attempt === undefined) this.#tellRefused(error, ended, request)
      else this.#tellFailed(error, attempt, ended, request)
      return ended
    }
  }

  #begin(
    message: ReceivedMessage,
    wire: ReceivedMessage,
    delivery: Delivery,
    request: GivenRequest,
    deadline: Deadline,
  ): Attempt {
    // What `receive` returns holds the message: its caller needs no handler.
    if (request.method !== undefined && this.#handlers.size === 0) this.#warnOnce('HOOKLINE_NO_HANDLER', NO_HANDLER)
    this.#tap.publish('received', { message, delivery })
    this.#settings.unplanned?.count(message, delivery)
    return this.#tap.begin({ message, wire, delivery, deadline, number: 1 })
  }

  /** Stores messages in one push, the authentic ones that are invalid, too. */
  async #storeAll(
    inbox: Inbox,
    incoming: readonly Incoming[],
    request: GivenRequest,
    deadline: Deadline,
  ): Promise<readonly Ended[]> {
    const prepared = incoming.map((each) => this.#prepare(inbox, each))
    const jobs = prepared.flatMap(({ job }) => job ?? [])
    const startedAt = this.#clock.monotonic()
    let known: ReadonlySet<string>
    try {
      deadline.startStage(LATE.inbox)
      known = await deadline.wait(inbox.store(jobs)) // 503 inbox_unavailable
    } catch (thrown) {
      const error = toError(thrown)
      this.#tellRefused(error, prepared[0] as Ended, request) // Once for all.
      return prepared.map((each) => ({ ...each, error }))
    }
    return prepared.map(({ job, ...ended }) => {
      const { delivery, message, error } = ended
      if (job !== undefined) this.#tellStored(error === undefined ? message : undefined, delivery, startedAt)
      if (error !== undefined) this.#tellRefused(error, ended, request, job !== undefined)
      return { ...ended, isDuplicate: known.has(delivery.id) }
    })
  }

  #tellStored(message: ReceivedMessage | undefined, delivery: Delivery, startedAt: number): void {
    if (!this.#tap.isHeard('stored')) return
    this.#tap.publish('stored', { message, delivery, durationMs: this.#clock.monotonic() - startedAt })
  }

  #prepare(inbox: Inbox, { parts, parse }: Incoming): Ended & { readonly job?: Job } {
    let message: ReceivedMessage | undefined
    try {
      message = parse()
      const prepared = inbox.prepare(parts, message) // Its key makes the id.
      this.#tap.publish('received', { message, delivery: prepared.delivery })
      this.#settings.unplanned?.count(message, prepared.delivery)
      return { ...prepared, message }
    } catch (thrown) {
      const error = toError(thrown)
      const prepared = isKept(error, parts)
        ? inbox.prepare(parts, undefined)
        : { delivery: new ReceivedDelivery(parts) }
      return { ...prepared, message, error }
    }
  }

  /** Tells of a request, or of a message of it, that no handler saw. */
  #tellRefused(error: HooklineError, ended: Ended, request: GivenRequest, isStored = false): void {
    const { onRejected } = this.#settings
    // The log has one line of a message that is stored: that of its dead letter.
    const line = isStored ? null : describeRequest(error, ended, request.path, onRejected)
    this.#tap.refused(error, request, line)
    if (error.code === 'source_unknown' && onRejected !== undefined) this.#tellSourceUnknown(error, request, onRejected)
  }

  #tellFailed(error: HooklineError, attempt: Attempt, ended: Ended, request: GivenRequest): void {
    const line = describeRequest(error, ended, request.path, this.#settings.onRejected)
    this.#tap.failed(attempt, { error, next: 'sender', attempt: 1 }, line, request)
  }

  /** Calls `onRejected` after the answer: a stranger would notice how long it takes. */
  #tellSourceUnknown(error: HooklineError, { path, headers }: GivenRequest, tell: OnRejected): void {
    const rejected = { bytes: NO_BODY.bytes, headers, path, source: undefined }
    setImmediate(() => notify(() => tell(error, rejected), this.#warnOfRejected))
  }

  /**
   * Gives an authentic message that is invalid to `onRejected`. Returns the error of the answer: `handler_failed` when the function
   * fails, so that the sender sends the message again.
   */
  async #giveRejected(
    error: HooklineError,
    ended: Omit<Ended, 'error'>,
    request: GivenRequest,
    deadline: Deadline,
  ): Promise<HooklineError> {
    const { onRejected } = this.#settings
    const { bytes, headers, source } = ended.delivery
    if (onRejected === undefined || !isKept(error, ended.delivery)) return error
    const fail = (cause: unknown): HooklineError => {
      const text = '`onRejected` must not fail. Got an error from it. See `cause`; the sender sends the message again.'
      return new HooklineError('handler_failed', text, { cause })
    }
    try {
      const given = onRejected(error, { bytes, headers, path: request.path, source })
      await deadline.wait(given, (cause) => this.#tap.failedLate(fail(cause), ended, request))
      return error
    } catch (thrown) {
      return deadline.error ?? fail(thrown)
    }
  }

  /** Returns the answer to a message that came alone. */
  #answerTo(ended: Ended): Received {
    const { delivery, error, isDuplicate } = ended
    if (error === undefined) return { ...(isDuplicate ? duplicate : accepted), ...resultOf(ended) } as Received
    const isStored = this.#inbox !== undefined && isKept(error, delivery)
    return isStored ? { ...accepted, ok: false, error } : refused(error, this.#settings.methods)
  }

  /** Returns the answer to a batch. What makes the sender come again comes first; an invalid element does not. */
  #answerToBatch(ended: readonly Ended[]): Received {
    const elements = ended.map(resultOf)
    const errors = ended.flatMap(({ error }) => error ?? [])
    const serious = errors.find((error) => !isUnusable(error))
    if (serious !== undefined) return { ...refused(serious, this.#settings.methods), elements }
    const [error] = errors
    if (error !== undefined) return { ...accepted, ok: false, error, elements }
    return { ...accepted, ...elements[0], elements } as Received
  }

  #warnOnce(code: string, text: string): void {
    if (!this.#warned.has(code)) process.emitWarning(text, { code })
    this.#warned.add(code)
  }
}

const NO_BODY: EndpointBody = { bytes: new Uint8Array(), source: 'stream' }

function refuse(): never {
  const text = 'The endpoint is closing. Got a request after close(). Send the message again.'
  throw new HooklineError('shutting_down', text)
}

/** Returns a request without the header that holds the secret: nothing that observes, logs or stores it has it. */
function withoutHeader(request: GivenRequest, name: string): GivenRequest {
  const { [name]: _, ...headers } = request.headers
  const { method, path, query, remoteAddress } = request
  return { ...(method && { method }), headers, path, query, remoteAddress }
}

/** Returns the header in place of a signature: a list when it is repeated. */
function readHeader({ headers, rawHeaders = [] }: GivenRequest, name: string): GivenHeader {
  const values = rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name)
  return { name, value: values.length > 1 ? values : headers[name] }
}

function resultOf({ delivery, message, error }: Ended): ReceivedElement {
  if (error !== undefined) return { ok: false, error, delivery }
  return { ok: true, message: message as ReceivedMessage, delivery }
}

function isOfHandlers(error: unknown): error is HooklineError {
  return error instanceof HooklineError && error.code === 'handler_failed'
}

function failed({ parts }: Incoming, error: HooklineError): Ended {
  return { delivery: new ReceivedDelivery(parts), message: undefined, error }
}

function refused(error: HooklineError, methods: readonly string[]) {
  // A stranger does not learn which sources there are.
  const told = error.code === 'source_unknown' ? new HooklineError('signature_mismatch', MISMATCH) : error
  return { ...problem(told, methods), ok: false as const, error }
}

/** Whether an authentic message cannot be used: the inbox stores it, or `onRejected` gets it. */
function isKept(error: HooklineError, { verified }: Pick<Delivery, 'verified'>): boolean {
  return verified !== false && isUnusable(error)
}
