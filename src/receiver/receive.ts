/** The receive algorithm. `run` holds its steps from top to bottom: the first that fails decides the answer. */

import type { FailedRequest } from '../handling/diagnostics.ts'
import { isUnusable } from '../handling/failure.ts'
import type { Handlers } from '../handling/handlers.ts'
import { MISMATCH, NO_HANDLER, RESERIALISED } from '../handling/lines.ts'
import type { OpenDelivery } from '../handling/open-delivery.ts'
import { publishReceived, startOf } from '../handling/publish.ts'
import { bodyConsumed, isExact, KEEP_THE_BYTES } from '../http/body.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import { parse } from '../message/parse.ts'
import { isWellFormed } from '../message/signature.ts'
import { createAnswer, type ReadBody, type Receive } from './answer.ts'
import type { Received } from './api.ts'
import type { Batch } from './batches.ts'
import type { Deduplication } from './deduplication.ts'
import { loadBatches } from './load-batches.ts'
import type { ReceiverSettings } from './options.ts'
import { reject } from './rejected.ts'
import type { Steps } from './steps.ts'

/** Prepares the algorithm. */
export function createReceive(
  settings: ReceiverSettings,
  handlers: Handlers,
  inbox: Inbox | undefined,
  dedupe: Deduplication | undefined,
): Receive {
  const { matchSecret, validate, onRejected, clock } = settings
  const openBatch = settings.batches === 'refuse' ? undefined : loadBatches(settings, handlers, inbox, perform)
  const warned = new Set<string>()
  return createAnswer(settings, run)

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
    // 503 shutting_down; 405 method_not_allowed; 415 content_type_unsupported, content_encoding_unsupported; 413 body_too_large; 400 body_aborted
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
      delivery.wire = wire
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
    delivery.setDispatched(message, startOf('handled', clock, delivery.observed))
    return handlers.dispatch(message, wire, delivery)
  }

  function warnOnce(code: string, text: string): void {
    if (!warned.has(code)) process.emitWarning(text, { code })
    warned.add(code)
  }
}
