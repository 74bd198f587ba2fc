/** The receive algorithm. `run` holds its steps from top to bottom: the first that fails decides the answer. */

import { OpenDelivery } from '../handling/delivery.ts'
import {
  type FailedRequest,
  publishFailed,
  publishHandled,
  publishReceived,
  publishRejected,
  startOf,
} from '../handling/diagnostics.ts'
import { isUnusable, toError } from '../handling/failure.ts'
import type { Handlers } from '../handling/handlers.ts'
import { describe, describeRequest, MISMATCH, NO_HANDLER, RESERIALISED } from '../handling/lines.ts'
import { accepted, problem } from '../http/answer.ts'
import { bodyConsumed, type EndpointBody, isExact, KEEP_THE_BYTES } from '../http/body.ts'
import type { EndpointRequest } from '../http/endpoint.ts'
import { readJson } from '../http/read-json.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import { parse } from '../message/parse.ts'
import { isWellFormed } from '../message/signature.ts'
import { createDeadlines, type Deadline } from '../time/deadlines.ts'
import type { Received } from './api.ts'
import type { Batch } from './batches.ts'
import type { Deduplication } from './deduplication.ts'
import { loadBatches } from './load-batches.ts'
import type { ReceiverSettings } from './options.ts'
import { reject } from './rejected.ts'
import { runSteps, type Steps } from './steps.ts'

type ReadBody = () => EndpointBody | Promise<EndpointBody>

/** Answers requests until it is stopped. */
export interface Receive {
  /** Answers a request of a host. Never rejects. */
  handle(request: EndpointRequest): Promise<Received>
  /** Answers a request whose body is read by `read`. Never rejects. */
  answer(request: FailedRequest, read: ReadBody): Promise<Received>
  /** Answers every later request `shutting_down`. Resolves when all earlier ones are answered. */
  stop(): Promise<void>
}

/** Prepares the algorithm. */
export function createReceive(
  settings: ReceiverSettings,
  handlers: Handlers,
  inbox: Inbox | undefined,
  dedupe: Deduplication | undefined,
): Receive {
  const { limit, matchSecret, validate, deadlineMs, onRejected, report, clock } = settings
  const deadlines = createDeadlines(deadlineMs, clock)
  const openBatch = settings.batches === 'refuse' ? undefined : loadBatches(settings, handlers, inbox, perform)
  let inFlight = 0
  let onIdle = (): void => {}
  let isStopped = false
  const warned = new Set<string>()

  /**
   * Returns the message that is handled or stored, or the error of a stored message that is unusable.
   *
   * The deadline cuts it short at any step: 503 body_timeout, secret_unavailable, dedupe_unavailable, handler_timeout or
   * inbox_unavailable. Anything unexpected: 500 internal.
   */
  function* run(
    delivery: OpenDelivery,
    request: FailedRequest,
    read: ReadBody,
  ): Steps<Message | HooklineError | Received> {
    if (isStopped) {
      const text = 'The endpoint is closing. Got a request after close(). Send the message again.'
      throw new HooklineError('shutting_down', text)
    }

    // 405 method_not_allowed; 415 content_type_unsupported, content_encoding_unsupported; 413 body_too_large; 400 body_aborted
    delivery.setBody(yield read())
    if (delivery.bodySource === 'reserialised') warnOnce('HOOKLINE_RESERIALISED', RESERIALISED)
    const batch = openBatch && ((yield openBatch(delivery, request)) as Batch | undefined)

    delivery.enter('secret')
    if (matchSecret !== undefined) {
      const signature = delivery.headers['x-signature']
      if (signature === undefined) {
        const text = 'The request must be signed. Got no X-Signature header. Sign the body with the shared secret.'
        throw new HooklineError('signature_missing', text)
      }
      if (!isWellFormed(signature)) {
        const text = 'X-Signature must be 40 lowercase hex digits. Got another value. Send the HMAC-SHA1 of the body.'
        throw new HooklineError('signature_malformed', text)
      }
      const index: number = yield matchSecret(delivery, signature, request.path ?? '/') // 503 secret_unavailable
      if (index === -1 && !isExact(delivery.bytes, delivery.bodySource, delivery.headers['content-length'])) {
        throw bodyConsumed('a copy that it does not match', `${KEEP_THE_BYTES} A wrong secret is answered 401 then.`)
      }
      if (index === -1) throw new HooklineError('signature_mismatch', MISMATCH)
      delivery.setSignature(signature, index)
    }

    delivery.enter(inbox === undefined ? 'handlers' : 'inbox')
    try {
      if (batch !== undefined) return yield batch.take() // 400 batch_empty; 413 batch_too_large
      const wire = parse(delivery.bytes) // 400 body_not_json; 422 message_invalid, message_type_unknown
      delivery.type = wire.type
      if (inbox !== undefined) {
        publishReceived(wire, delivery)
        yield inbox.store([inbox.prepare(delivery, wire)]) // 503 inbox_unavailable
        return wire
      }
      const message: Message = yield validate(wire) // 422 schema_mismatch
      yield perform(message, wire, delivery, request) // 500 handler_failed; 503 duplicate_in_progress, dedupe_unavailable
      return message
    } catch (error) {
      // An authentic message that cannot be used is stored in the inbox, or given to `onRejected` before the 4xx.
      if (!isUnusable(error) || !delivery.verified) throw error
      if (inbox === undefined) return yield reject(onRejected, error, delivery)
      yield inbox.store([inbox.prepare(delivery, undefined)])
      return error
    }
  }

  function perform(message: Message, wire: Message, delivery: OpenDelivery, request: FailedRequest): unknown {
    if (dedupe === undefined) return dispatch(message, wire, delivery, request)
    return dedupe.run(wire, delivery, request, () => dispatch(message, wire, delivery, request))
  }

  function dispatch(message: Message, wire: Message, delivery: OpenDelivery, request: FailedRequest) {
    // What `receive` returns holds the message: its caller needs no handler.
    if ('readBody' in request && handlers.size === 0) warnOnce('HOOKLINE_NO_HANDLER', NO_HANDLER)
    delivery.enter('handlers')
    publishReceived(message, delivery)
    delivery.setDispatched(message, startOf('handled', clock))
    return handlers.dispatch(message, wire, delivery)
  }

  /** Answers with the first of two: the end of the algorithm or the deadline. */
  function answer(request: FailedRequest, read: ReadBody, remainingMs = deadlineMs): Promise<Received> {
    const delivery = new OpenDelivery(request.headers, clock.now())
    const { set, clear } = remainingMs < deadlineMs ? createDeadlines(remainingMs, clock) : deadlines
    const since = clock.monotonic()
    let isAnswered = false
    let deadline: Deadline | undefined
    inFlight++
    return new Promise((resolve) => {
      const end = (received: Received): void => {
        isAnswered = true
        if (deadline !== undefined) clear(deadline)
        resolve(delivery.complete?.(received) ?? received)
        if (--inFlight === 0) onIdle()
      }
      const succeed = (message: Message): void => {
        publishHandled(delivery, 1, clock)
        end({ ...accepted, ok: true, message, delivery })
      }
      const fail = (error: HooklineError, sent = problem(error)): void => {
        report(error, request, describeRequest(error, delivery, sent === accepted, onRejected))
        if (delivery.dispatched === undefined) publishRejected(error, request)
        else publishFailed(delivery, 1, clock, { error, next: 'sender' })
        end({ ...sent, ok: false, error })
      }
      const reportLate = (error: HooklineError): void => report(error, request, describe(error, delivery))
      runSteps(
        run(delivery, request, read),
        (result) => {
          if (delivery.expired !== undefined) return
          if (result instanceof HooklineError) fail(result, accepted)
          else if (delivery.complete === undefined) succeed(result as Message)
          else end(result as Received)
        },
        (thrown) => {
          const error = toError(thrown)
          if (delivery.expired === undefined) fail(error)
          else if (error.code === 'handler_failed' && error !== delivery.expired) reportLate(error)
        },
      )
      if (isAnswered) return // Nothing was waited for.
      deadline = set(() => {
        const error = delivery.expire()
        if (!delivery.isHandled) return fail(error)
        reportLate(error)
        succeed(delivery.dispatched as Message)
      }, since)
      if (isAnswered) clear(deadline) // Deno runs what waits while it sets its first timer.
    })
  }

  function warnOnce(code: string, text: string): void {
    if (!warned.has(code)) process.emitWarning(text, { code })
    warned.add(code)
  }

  return {
    handle: (request) => answer(request, () => readJson(request, limit), request.remainingMs),
    answer,
    stop: async () => {
      isStopped = true
      if (inFlight > 0) await new Promise<void>((resolve) => (onIdle = resolve))
    },
  }
}
