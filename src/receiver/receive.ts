/** The receive algorithm. `run` holds its steps from top to bottom: the first that fails decides the answer. */

import { isUnusable, toError } from '../handling/failure.ts'
import type { Handlers } from '../handling/handlers.ts'
import { describeRequest, MISMATCH, NO_HANDLER, RESERIALISED } from '../handling/log-lines.ts'
import type { OpenDelivery } from '../handling/open-delivery.ts'
import { bodyConsumed, isExact, KEEP_THE_BYTES } from '../http/body.ts'
import type { EndpointHeaders } from '../http/endpoint.ts'
import { shownUrl } from '../http/shown.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { HooklineError } from '../message/error.ts'
import type { ReceivedMessage } from '../message/message.ts'
import { createKey, isWellFormed } from '../message/signature.ts'
import { notify } from '../options/callbacks.ts'
import { createWarning } from '../options/warning.ts'
import { splitBatch } from './batches.ts'
import {
  createAnswer,
  type GivenRequest,
  type OpenRequest,
  type ReadBody,
  type Receive,
  type Steps,
} from './deadline.ts'
import type { Deduplication } from './deduplication.ts'
import type { OnRejected, ReceiverSettings } from './options.ts'
import type { SecretMatch } from './secrets.ts'

export function createReceive(
  settings: ReceiverSettings,
  handlers: Handlers,
  inbox: Inbox | undefined,
  dedupe: Deduplication | undefined,
): Receive {
  const { matchSecret, headerName, batches, batchLimit, takesCustom, validate, onRejected, unplanned, tap } = settings
  const warned = new Set<string>()
  const warnOfRejected = createWarning('onRejected', 'HOOKLINE_ON_REJECTED')
  return createAnswer(settings, run)

  /**
   * Handles or stores each message of a request.
   *
   * The deadline cuts it short at any step: 503 body_timeout, secret_unavailable, dedupe_unavailable, handler_timeout or
   * inbox_unavailable. Anything unexpected: 500 internal.
   */
  function* run(open: OpenRequest, read: ReadBody): Steps<void> {
    const { request, delivery } = open
    // 503 shutting_down; 405 method_not_allowed; 415 content_type_unsupported, content_encoding_unsupported; 413 body_too_large; 400 body_aborted
    delivery.setBody(yield read())
    if (delivery.bodySource === 'reserialised') warnOnce('HOOKLINE_RESERIALISED', RESERIALISED)

    delivery.enter('secret')
    if (matchSecret !== undefined) {
      // 401 signature_missing, signature_malformed; header_missing
      const signature = headerName === undefined ? signatureOf(delivery) : signWith(open.key, headerName, delivery)
      const isSigned: SecretMatch = yield matchSecret(delivery, signature, request) // 503 secret_unavailable
      delivery.hasHeader = isSigned === true && headerName !== undefined
      if (!isSigned && headerName !== undefined) throw new HooklineError('header_mismatch', anotherValue(headerName))
      if (!isSigned && !isExact(delivery.bytes, delivery.bodySource, delivery.headers['content-length'])) {
        throw bodyConsumed('a copy that it does not match', `${KEEP_THE_BYTES} A wrong secret is answered 401 then.`)
      }
      if (isSigned === undefined) throw refuseSource(request)
      if (!isSigned) throw new HooklineError('signature_mismatch', MISMATCH)
    }

    delivery.enter(inbox === undefined ? 'handlers' : 'inbox')
    open.deliveries = batches ? splitBatch(delivery, batchLimit) : [delivery]
    if (inbox !== undefined) {
      const stored = open.deliveries.map((each) => prepare(inbox, each))
      const jobs = stored.flatMap(({ job }) => job ?? [])
      if (jobs.length > 0) yield inbox.store(jobs) // In one push. 503 inbox_unavailable
      for (const { delivery: each, result } of stored) finish(open, each, result)
      return
    }
    // In their order, one after the other: copies in one batch find what the first of them left in the dedupe store.
    for (const each of open.deliveries) {
      open.current = each
      each.enter('handlers')
      try {
        const wire = each.read(takesCustom) // 400 body_not_json, batch_empty; 413 batch_too_large; 422 message_invalid, message_type_unknown
        const message: ReceivedMessage = yield validate(wire) // 422 schema_mismatch
        // 500 handler_failed; 503 duplicate_in_progress, dedupe_unavailable
        yield perform(message, wire, each, request)
        finish(open, each, message)
      } catch (thrown) {
        const error = toError(thrown)
        const final: HooklineError = isKept(error, each) ? yield reject(onRejected, error, each, request) : error
        finish(open, each, final)
      }
    }
  }

  /** Tells `onRejected` after the answer: a stranger would notice how long it takes. */
  function refuseSource({ path, headers }: GivenRequest): HooklineError {
    const error = sourceUnknown(path)
    const rejected = { bytes: new Uint8Array(), headers, path, source: undefined }
    if (onRejected !== undefined) setImmediate(() => notify(() => onRejected(error, rejected), warnOfRejected))
    return error
  }

  /** Prepares a message for the inbox. An error does not keep an authentic one that is invalid from being stored. */
  function prepare(inbox: Inbox, delivery: OpenDelivery) {
    try {
      const message = delivery.read(takesCustom)
      const job = inbox.prepare(delivery, message) // Its key makes the id.
      tap.received(message, delivery)
      unplanned?.count(message, delivery)
      return { delivery, result: message, job }
    } catch (thrown) {
      const error = toError(thrown)
      return { delivery, result: error, job: isKept(error, delivery) ? inbox.prepare(delivery, undefined) : undefined }
    }
  }

  function finish({ request }: OpenRequest, delivery: OpenDelivery, result: ReceivedMessage | HooklineError): void {
    const error = result instanceof HooklineError ? result : undefined
    if (delivery.expired !== undefined) {
      if (error?.code === 'handler_failed' && error !== delivery.expired) tap.failedLate(delivery, error, request)
      return
    }
    delivery.end(result)
    if (error === undefined) tap.handled(delivery)
    else {
      const isStored = inbox !== undefined && isKept(error, delivery)
      // The log has one line of a message: that of its dead letter.
      tap.refused(
        delivery,
        error,
        request,
        isStored ? null : describeRequest(error, delivery, request.path, onRejected),
      )
    }
  }

  function perform(
    message: ReceivedMessage,
    wire: ReceivedMessage,
    delivery: OpenDelivery,
    request: GivenRequest,
  ): unknown {
    if (dedupe === undefined) return dispatch(message, wire, delivery, request)
    return dedupe.run(wire, delivery, request, () => dispatch(message, wire, delivery, request))
  }

  function dispatch(message: ReceivedMessage, wire: ReceivedMessage, delivery: OpenDelivery, request: GivenRequest) {
    // What `receive` returns holds the message: its caller needs no handler.
    if (request.method !== undefined && handlers.size === 0) warnOnce('HOOKLINE_NO_HANDLER', NO_HANDLER)
    delivery.enter('handlers')
    tap.received(message, delivery)
    unplanned?.count(message, delivery)
    delivery.setDispatched(message, tap.startOf('handled', delivery))
    return handlers.dispatch(message, wire, delivery)
  }

  function warnOnce(code: string, text: string): void {
    if (!warned.has(code)) process.emitWarning(text, { code })
    warned.add(code)
  }
}

function signatureOf({ headers }: OpenDelivery): string {
  const signature = headers['x-signature']
  if (signature === undefined) {
    const text = 'The request must be signed. Got no X-Signature header. Sign the body with the shared secret.'
    throw new HooklineError('signature_missing', text)
  }
  if (isWellFormed(signature)) return signature
  const text = 'X-Signature must be 40 lowercase hex digits. Got another value. Send the HMAC-SHA1 of the body.'
  throw new HooklineError('signature_malformed', text)
}

function sourceUnknown(path = '/'): HooklineError {
  const found = JSON.stringify(shownUrl(path).slice(0, PATH_SHOWN))
  const advice =
    'Return its name from `secret.source` and its secret from `secret.secrets`. Else the request is forged.'
  return new HooklineError(
    'source_unknown',
    `The source of the request must have a secret. Got the path ${found}. ${advice}`,
  )
}

/** So many characters of a path are shown: a stranger chose them. */
const PATH_SHOWN = 100

/** The signature that a header in its place would have made: the comparison of both is that of signatures. */
function signWith(given: EndpointHeaders[string], name: string, { bytes }: OpenDelivery): string {
  if (typeof given === 'object' && given.length > 1) throw new HooklineError('header_mismatch', anotherValue(name))
  if (given !== undefined && given.length > 0) return createKey(Buffer.from(String(given))).sign(bytes)
  const text = `The request must have the header ${name}. Got none. Set it at the sender.`
  throw new HooklineError('header_missing', text)
}

function anotherValue(name: string): string {
  return `The header ${name} must have the right value. Got another one. Set it at the sender.`
}

/** Whether an authentic message cannot be used: the inbox stores it, or `onRejected` gets it. */
function isKept(error: HooklineError, { verified }: OpenDelivery): boolean {
  return verified && isUnusable(error)
}

/**
 * Gives the message to the function, if there is one. Returns the error of the delivery: `handler_failed` when the
 * function fails, so that the sender sends the message again.
 */
async function reject(
  onRejected: OnRejected | undefined,
  error: HooklineError,
  { bytes, headers, source }: OpenDelivery,
  { path }: GivenRequest,
): Promise<HooklineError> {
  try {
    await onRejected?.(error, { bytes, headers, path, source })
    return error
  } catch (cause) {
    const text = '`onRejected` must not fail. Got an error from it. See `cause`; the sender sends the message again.'
    return new HooklineError('handler_failed', text, { cause })
  }
}
