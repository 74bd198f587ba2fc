/** The receive algorithm: reads, verifies, parses, and handles or stores a request. The first step that fails determines the answer. */

import { accepted, duplicate, problem } from '../host/answer.ts'
import type { EndpointBody } from '../host/body.ts'
import type { EndpointRequest } from '../host/endpoint.ts'
import { readJson } from '../host/read-json.ts'
import { isThenable, notify } from '../kit/callbacks.ts'
import type { Clock } from '../kit/clock.ts'
import { createDeadlines, type Deadlines } from '../kit/deadlines.ts'
import { createWarning } from '../kit/warning.ts'
import { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { parseReceived } from '../protocol/parse.ts'
import type { Job } from '../store/queue-types.ts'
import type { Attempt } from './attempt.ts'
import { type Incoming, splitBatch } from './batches.ts'
import { Deadline } from './deadline.ts'
import type { Deduplication } from './deduplication.ts'
import type { Delivery, DeliveryMethod, ReceivedElement } from './delivery.ts'
import { isUnusable, toError } from './failure.ts'
import type { Handlers } from './handlers.ts'
import type { Inbox } from './inbox.ts'
import { describeRequest, MISMATCH, NO_HANDLER, RESERIALISED, type Subject } from './log-lines.ts'
import { NO_PROOF, ReceivedDelivery } from './received-delivery.ts'
import type { ReceiverSettings } from './receiver-options.ts'
import type { Received } from './receiver-types.ts'
import type { Tap } from './tap.ts'
import { type GivenRequest, readHeader, verifyRequest, withoutHeader } from './verify.ts'

export type ReadBody = () => EndpointBody | Promise<EndpointBody>

/** The result of handling or storing a message. */
type Ended = Succeeded | Failed

/** The result of a message that was handled or stored. */
interface Succeeded {
  readonly delivery: Delivery
  readonly message: ReceivedMessage
  readonly error?: undefined
  readonly isDuplicate?: boolean
}

interface Failed {
  readonly delivery: Delivery
  /** The message; undefined when it could not be parsed. */
  readonly message: ReceivedMessage | undefined
  readonly error: HooklineError
}

/** Answers the requests of a receiver. */
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

  /** Answers a request from a host. Never rejects. */
  handle(request: EndpointRequest): Promise<Received> {
    const readBody = () => readJson(request, this.#settings.limit, this.#settings)
    return this.answerRequest(request, readBody, request.remainingMs)
  }

  /** Answers every later request with `shutting_down`. Resolves when all earlier requests are answered. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }

  /** Answers a request. Never rejects. */
  async answerRequest(given: GivenRequest, read: ReadBody, remainingMs = Number.POSITIVE_INFINITY): Promise<Received> {
    const { deadlineMs, methods } = this.#settings
    const startedAt = this.#clock.monotonic()
    const timers = remainingMs < deadlineMs ? createDeadlines(remainingMs, this.#clock) : this.#deadlines
    const deadline = new Deadline(timers, 'body', startedAt)
    this.#inFlight += 1
    try {
      return await this.#receive(given, read, deadline, startedAt)
    } catch (thrown) {
      return refusalOf(toError(thrown), methods)
    } finally {
      deadline.stop()
      this.#inFlight -= 1
      if (this.#inFlight === 0) this.#onIdle()
    }
  }

  /**
   * Receives a request. Hot path: awaits only promises, and spreads no objects, because spreading took more than half of the time of a
   * request.
   */
  async #receive(given: GivenRequest, read: ReadBody, deadline: Deadline, startedAt: number): Promise<Received> {
    const { findKeys, headerName, methods, batches, batchLimit, takesCustom } = this.#settings
    const header = headerName === undefined ? undefined : readHeader(given, headerName)
    const request = header === undefined ? given : withoutHeader(given, header.name)
    const { headers, method = 'POST', path = '/', query = '' } = request
    const receivedAt = this.#clock.now()
    let body = NO_BODY
    let proof = NO_PROOF
    let error: HooklineError | undefined
    try {
      if (this.#isStopped) throw new HooklineError('shutting_down', CLOSING)
      // Throws body_aborted (400), method_not_allowed (405), body_too_large (413), content_type_unsupported or content_encoding_unsupported
      // (415), body_consumed (500) or body_timeout (503).
      const reading = read()
      body = isThenable(reading) ? await deadline.wait(reading) : reading
      if (body.source === 'reserialised') this.#warnOnce('HOOKLINE_RESERIALISED', RESERIALISED)
      deadline.startStage('secret')
      // Throws signature_missing, signature_malformed, signature_mismatch, header_missing, header_mismatch or source_unknown (401),
      // body_consumed (500) or secret_unavailable (503).
      proof = await verifyRequest(findKeys, { headers, path, query }, body, header, deadline)
    } catch (thrown) {
      error = toError(thrown)
    }
    const { bytes, source: bodySource } = body
    const { verified, signature, secretIndex, source } = proof
    const parts = {
      method: method as DeliveryMethod,
      headers,
      bytes,
      bodySource,
      receivedAt,
      verified,
      signature,
      secretIndex,
      source,
    }
    if (error !== undefined) {
      const failed = { delivery: new ReceivedDelivery(parts), message: undefined, error }
      this.#reportRefused(failed, request)
      if (error.code === 'source_unknown') this.#passUnknownSource(error, request)
      return this.#tap.publishAnswered(request, failed, refusalOf(error, methods), startedAt)
    }
    const incoming = batches
      ? splitBatch(parts, batchLimit, takesCustom)
      : { parts, parse: () => parseReceived(bytes, takesCustom) }
    if (!Array.isArray(incoming)) {
      const ended =
        this.#inbox === undefined
          ? await this.#handle(incoming, request, deadline)
          : ((await this.#storeAll(this.#inbox, [incoming], request, deadline))[0] as Ended)
      return this.#tap.publishAnswered(request, ended, this.#answerTo(ended), startedAt)
    }
    const ended = await (this.#inbox === undefined
      ? this.#handleAll(incoming, request, deadline)
      : this.#storeAll(this.#inbox, incoming, request, deadline))
    const batch = { delivery: new ReceivedDelivery(parts), message: undefined }
    return this.#tap.publishAnswered(request, batch, this.#answerToBatch(ended), startedAt)
  }

  /** Handles messages one after the other, so that the dedupe store already knows a message when its copy in the same batch is handled. */
  async #handleAll(incoming: readonly Incoming[], request: GivenRequest, deadline: Deadline): Promise<Ended[]> {
    const ended: Ended[] = []
    for (const each of incoming) {
      if (deadline.error !== undefined) break
      ended.push(await this.#handle(each, request, deadline))
    }
    const { error } = deadline
    if (error === undefined || ended.length === incoming.length) return ended
    this.#tap.publish('refused', { error, request }) // Published once for all messages that no handler saw.
    const unseen = incoming.slice(ended.length)
    return [
      ...ended,
      ...unseen.map(({ parts }) => ({ delivery: new ReceivedDelivery(parts), message: undefined, error })),
    ]
  }

  /** Handles one message. Hot path: awaits only promises. */
  async #handle({ parts, parse }: Incoming, request: GivenRequest, deadline: Deadline): Promise<Ended> {
    let delivery: Delivery = new ReceivedDelivery(parts, deadline)
    let message: ReceivedMessage | undefined
    let attempt: Attempt | undefined
    try {
      deadline.startStage('handlers')
      // Throws body_not_json or batch_empty (400), batch_too_large (413), message_invalid or message_type_unknown (422).
      const wire = parse()
      message = wire
      const validated = this.#settings.validate(wire) // Throws schema_mismatch (422).
      const valid = isThenable(validated) ? await deadline.wait(validated) : validated
      const id = this.#dedupe?.idOf(wire, delivery)
      if (id !== undefined) delivery = new ReceivedDelivery({ ...parts, id }, deadline)
      const dispatch = (): Promise<undefined> | undefined => {
        deadline.startStage('handlers')
        message = valid
        // A request without a method is a call to `receive`. Its caller needs no handler, because the message is in the
        // result.
        if (request.method !== undefined && this.#handlers.size === 0) this.#warnOnce('HOOKLINE_NO_HANDLER', NO_HANDLER)
        this.#publishReceived(valid, delivery)
        attempt = this.#tap.beginAttempt({ message: valid, wire, delivery, deadline, number: 1 })
        return this.#handlers.dispatch(attempt)
      }
      const reportLate = (error: HooklineError): void =>
        this.#tap.reportLate(error, { delivery, message: valid }, request)
      // Errors of the dedupe store are not reported here: `handleOnce` reports those that are not in an answer.
      const onLateError = (error: unknown): void => void (isHandlerError(error) && reportLate(error))
      // Throws handler_failed (500), handler_timeout, duplicate_in_progress or dedupe_unavailable (503).
      const work: Promise<unknown> | undefined =
        this.#dedupe?.handleOnce(delivery, deadline, dispatch, reportLate) ?? dispatch()
      const isDuplicate = work !== undefined && (await deadline.wait(work, onLateError)) === true
      if (attempt !== undefined) this.#tap.publishHandled(attempt)
      return { delivery, message: valid, isDuplicate }
    } catch (thrown) {
      const error = await this.#passRejected(toError(thrown), { delivery, message }, request, deadline)
      const failed = { delivery, message, error }
      if (attempt === undefined) this.#reportRefused(failed, request)
      else this.#reportFailed(failed, attempt, request)
      return failed
    }
  }

  /** Stores messages in one push, including authentic messages that are invalid. */
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
      deadline.startStage('inbox')
      known = await deadline.wait(inbox.store(jobs)) // Throws inbox_unavailable (503).
    } catch (thrown) {
      const error = toError(thrown)
      const failed = prepared.map(({ ended: { delivery, message } }) => ({ delivery, message, error }))
      this.#reportRefused(failed[0] as Failed, request) // Reported once for all messages.
      return failed
    }
    const durationMs = this.#clock.monotonic() - startedAt
    return prepared.map(({ job, ended }) => {
      const { delivery, message, error } = ended
      const isStored = job !== undefined
      if (isStored) this.#tap.publish('stored', { message: error ? undefined : message, delivery, durationMs })
      if (error !== undefined) this.#reportRefused(ended, request, isStored)
      return { ...ended, isDuplicate: known.has(delivery.id) }
    })
  }

  /** Makes the job of a message. An invalid message has a job only when it is authentic. */
  #prepare(inbox: Inbox, { parts, parse }: Incoming): { readonly ended: Ended; readonly job?: Job } {
    let message: ReceivedMessage | undefined
    try {
      message = parse()
      const { delivery, job } = inbox.prepare(parts, message)
      this.#publishReceived(message, delivery)
      return { ended: { delivery, message }, job }
    } catch (thrown) {
      const error = toError(thrown)
      if (!mustBeKept(error, parts)) return { ended: { delivery: new ReceivedDelivery(parts), message, error } }
      const { delivery, job } = inbox.prepare(parts, undefined)
      return { ended: { delivery, message, error }, job }
    }
  }

  #publishReceived(message: ReceivedMessage, delivery: Delivery): void {
    this.#tap.publish('received', { message, delivery })
    this.#settings.unplanned?.count(message, delivery)
  }

  /** Reports a request, or one of its messages, that no handler saw. */
  #reportRefused(failed: Failed, request: GivenRequest, isStored = false): void {
    const { error } = failed
    // A stored message that no handler saw becomes a dead letter, and the log gets only the line about the dead letter.
    const line = isStored ? null : describeRequest(error, failed, request.path, this.#settings.onRejected)
    this.#tap.reportRefused(error, request, line)
  }

  #reportFailed(failed: Failed, attempt: Attempt, request: GivenRequest): void {
    const { error } = failed
    const line = describeRequest(error, failed, request.path, this.#settings.onRejected)
    this.#tap.reportFailed(attempt, { error, next: 'sender', attempt: 1 }, line, request)
  }

  /**
   * Passes `source_unknown` to `onRejected` after the answer, because otherwise the response time would tell a stranger that the source is
   * unknown.
   */
  #passUnknownSource(error: HooklineError, { path, headers }: GivenRequest): void {
    const { onRejected } = this.#settings
    if (onRejected === undefined) return
    const rejected = { bytes: NO_BODY.bytes, headers, path, source: undefined }
    setImmediate(() => notify(() => onRejected(error, rejected), this.#warnOfRejected))
  }

  /**
   * Passes an authentic message that is invalid to `onRejected`. Returns the error of the answer: `handler_failed` when the function fails,
   * so that the sender sends the message again.
   */
  async #passRejected(
    error: HooklineError,
    subject: Subject,
    request: GivenRequest,
    deadline: Deadline,
  ): Promise<HooklineError> {
    const { onRejected } = this.#settings
    const { bytes, headers, source } = subject.delivery
    if (onRejected === undefined || !mustBeKept(error, subject.delivery)) return error
    const explain = (cause: unknown): HooklineError => {
      const text = '`onRejected` failed. See `cause` of this error. The sender will send the message again.'
      return new HooklineError('handler_failed', text, { cause })
    }
    try {
      const passing = onRejected(error, { bytes, headers, path: request.path, source })
      await deadline.wait(passing, (cause) => this.#tap.reportLate(explain(cause), subject, request))
      return error
    } catch (thrown) {
      return deadline.error ?? explain(thrown)
    }
  }

  /** Returns the answer to a message that arrived alone. */
  #answerTo(ended: Ended): Received {
    const { delivery, message, error } = ended
    if (error === undefined) {
      const { status, headers, body } = ended.isDuplicate ? duplicate : accepted
      return { status, headers, body, ok: true, message, delivery }
    }
    const isStored = this.#inbox !== undefined && mustBeKept(error, delivery)
    return isStored ? { ...accepted, ok: false, error } : refusalOf(error, this.#settings.methods)
  }

  /**
   * Returns the answer to a batch: the first error that makes the sender retry, or success. An invalid element does not make the sender
   * retry.
   */
  #answerToBatch(ended: readonly Ended[]): Received {
    const elements = ended.map(resultOf)
    const errors = ended.flatMap(({ error }) => error ?? [])
    const serious = errors.find((error) => !isUnusable(error))
    if (serious !== undefined) return { ...refusalOf(serious, this.#settings.methods), elements }
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

const CLOSING = 'The endpoint is closing. Send the message again.'

function resultOf({ delivery, message, error }: Ended): ReceivedElement {
  return error === undefined ? { ok: true, message, delivery } : { ok: false, error, delivery }
}

function isHandlerError(error: unknown): error is HooklineError {
  return error instanceof HooklineError && error.code === 'handler_failed'
}

function refusalOf(error: HooklineError, methods: readonly string[]) {
  // A stranger must not learn which sources exist.
  const answered = error.code === 'source_unknown' ? new HooklineError('signature_mismatch', MISMATCH) : error
  return { ...problem(answered, methods), ok: false as const, error }
}

/** Returns whether a refused message must be kept, because it is authentic and the sender will not send it again. */
function mustBeKept(error: HooklineError, { verified }: Pick<Delivery, 'verified'>): boolean {
  return verified !== false && isUnusable(error)
}
