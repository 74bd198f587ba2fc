/** createReceiver(): the only receive algorithm, plain data in and out. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { accepted, problem } from '../protocol/answer.ts'
import {
  bodyConsumed,
  bodyTooLarge,
  type EndpointBody,
  isExact,
  KEEP_THE_BYTES,
  requireBytes,
} from '../protocol/body.ts'
import { createDeadlines } from '../protocol/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import { parse } from '../protocol/parse.ts'
import { readJson } from '../protocol/read-json.ts'
import { report } from '../protocol/report.ts'
import { isWellFormed } from '../protocol/signature.ts'
import { isThenable } from '../protocol/thenable.ts'
import type { Received, Receiver } from './api.ts'
import { OpenDelivery } from './delivery.ts'
import { type AudienceHandlers, createHandlers } from './handlers.ts'
import { readHeaders } from './headers.ts'
import { type FailedRequest, type ReceiverOptions, readOptions } from './options.ts'
import type { EventSchemas, TraitSchemas } from './schema.ts'

/**
 * Creates a receiver of webhook messages.
 *
 * @throws TypeError that names the option, for a missing secret and any other mistake in the options.
 * @example
 * const receiver = createReceiver({ secret: process.env.SHARED_SECRET })
 * receiver.on('track', (message) => console.log(message.event))
 */
export function createReceiver<
  // biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
  const Events extends EventSchemas = {},
  // biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
  const Traits extends TraitSchemas = {},
>(options: ReceiverOptions<Events, Traits>): Receiver<Events, Traits> {
  const { matchSecret, shape, limit, deadlineMs, onRejected, onError, clock } = readOptions(options)
  const handlers = createHandlers()
  const deadlines = createDeadlines(deadlineMs, clock)
  let inFlight = 0
  let isClosing = false
  const idle: (() => void)[] = []
  let hasWarned = false

  const receiver: Receiver<Events, Traits> = {
    on: (...selection: unknown[]) => {
      handlers.add(selection)
      return receiver
    },
    off: (...selection: unknown[]) => {
      handlers.remove(selection)
      return receiver
    },
    onAudience: (name, audience) => {
      handlers.addAudience(name, audience as AudienceHandlers)
      return receiver
    },
    handle: (request) => exchange(request, () => readJson(request, limit)),
    receive: async (bytes, headers) => {
      requireBytes(bytes, 'receive: bytes')
      return exchange({ headers: readHeaders(headers), remoteAddress: undefined }, () => {
        if (bytes.length > limit) throw bodyTooLarge(limit)
        return { bytes, source: 'argument' }
      })
    },
    close: async () => {
      isClosing = true
      if (inFlight > 0) await new Promise<void>((resolve) => idle.push(resolve))
      await nextTurn() // The last answers are with their hosts, which write them now.
    },
  }
  return receiver

  /** One request from its first byte to its answer: whatever comes first, the algorithm's end or the deadline. */
  function exchange(request: FailedRequest, read: () => EndpointBody | Promise<EndpointBody>): Promise<Received> {
    const delivery = new OpenDelivery(request.headers, clock.now())
    inFlight++
    return new Promise((resolve) => {
      const end = (received: Received): void => {
        deadlines.clear(deadline)
        resolve(received)
        if (--inFlight === 0) for (const resume of idle) resume()
      }
      const fail = (error: HooklineError): void => {
        tell(error, request)
        end({ ...problem(error), ok: false, error })
      }
      const deadline = deadlines.set(() => fail(delivery.expire()))

      run(delivery, read).then(
        (message) => {
          if (!delivery.isExpired) end({ status, headers, body, ok: true, message, delivery })
        },
        (thrown: unknown) => {
          const error = thrown instanceof HooklineError ? thrown : internal(thrown)
          if (!delivery.isExpired) fail(error)
          else if (error.code === 'handler_failed') tell(error, request)
        },
      )
    })
  }

  /** The steps, in the order that decides which error a request with several faults is answered. */
  async function run(delivery: OpenDelivery, read: () => EndpointBody | Promise<EndpointBody>): Promise<Message> {
    if (isClosing) throw new HooklineError('shutting_down', 'The endpoint is shutting down. Send the message again.')
    delivery.setBody(await read())

    delivery.enter('secret')
    const authenticated = authenticate(delivery)
    if (authenticated !== undefined) await authenticated

    delivery.enter('handlers')
    try {
      const wire = parse(delivery.bytes)
      const shaped = shape(wire)
      const message = isThenable(shaped) ? await shaped : shaped
      delivery.enter('handlers')
      const dispatched = handlers.dispatch(message, wire, delivery)
      if (dispatched !== undefined) await dispatched
      return message
    } catch (error) {
      if (isUnusable(error) && delivery.verified) await handOver(error, delivery)
      throw error
    }
  }

  function authenticate(delivery: OpenDelivery): void | Promise<void> {
    if (delivery.source === 'reserialised') warnOnce()
    if (matchSecret === undefined) return
    const signature = delivery.headers['x-signature']
    if (signature === undefined) {
      throw new HooklineError('signature_missing', 'The request is not signed: it has no X-Signature header.')
    }
    if (!isWellFormed(signature)) {
      throw new HooklineError('signature_malformed', 'X-Signature is not 40 lowercase hexadecimal digits.')
    }
    const confirm = (index: number): void => {
      if (index === -1) throw mismatch(delivery)
      delivery.confirm(signature, index)
    }
    const index = matchSecret(delivery.bytes, signature)
    return typeof index === 'number' ? confirm(index) : index.then(confirm)
  }

  /** An authentic message is not thrown away by our opinion of it: it goes to whoever keeps it, before the sender hears of it. */
  async function handOver(error: HooklineError, { bytes, headers }: OpenDelivery): Promise<void> {
    try {
      await onRejected?.(error, { bytes, headers })
    } catch (cause) {
      throw new HooklineError('handler_failed', 'onRejected failed.', { cause })
    }
  }

  function tell(error: HooklineError, { headers, remoteAddress }: FailedRequest): void {
    report(onError, error, { headers, remoteAddress })
  }

  function warnOnce(): void {
    if (hasWarned) return
    hasWarned = true
    process.emitWarning(
      `Signatures are checked over JSON.stringify(body), which is not always what was sent. ${KEEP_THE_BYTES}`,
      { code: 'HOOKLINE_RESERIALISED' },
    )
  }
}

const { status, headers, body } = accepted

function mismatch({ source }: OpenDelivery): HooklineError {
  if (!isExact(source)) return bodyConsumed('its exact bytes were not kept')
  return new HooklineError('signature_mismatch', 'X-Signature is not the signature of this body.')
}

/** Whether a message is at fault that will not be better the next time it is sent. */
function isUnusable(error: unknown): error is HooklineError {
  return error instanceof HooklineError && error.status < 500
}

function internal(cause: unknown): HooklineError {
  return new HooklineError('internal', 'Something failed inside the endpoint.', { cause })
}
