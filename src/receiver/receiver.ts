/** createReceiver(): the only receive algorithm, plain data in and out. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { accepted, problem } from '../protocol/answer.ts'
import { bodyTooLarge, type EndpointBody, requireBytes } from '../protocol/body.ts'
import { createDeadlines } from '../protocol/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import { refuseUnknown, requireWhole } from '../protocol/options.ts'
import { parse } from '../protocol/parse.ts'
import { readJson } from '../protocol/read-json.ts'
import { report } from '../protocol/report.ts'
import { isThenable } from '../protocol/thenable.ts'
import { announceFailed, announceHandled, announceReceived, announceRejected, startOf } from './announce.ts'
import type { Received, Receiver, ReceiverCloseOptions, StoredMessage } from './api.ts'
import { createAuthenticate } from './authenticate.ts'
import { OpenDelivery } from './delivery.ts'
import { isUnusable, toError } from './faults.ts'
import { type AudienceHandlers, createHandlers } from './handlers.ts'
import { readHeaders } from './headers.ts'
import { checkHealth } from './health.ts'
import { createInbox, type Inbox } from './inbox.ts'
import { createOnce } from './once.ts'
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
  const settings = readOptions(options)
  const { matchSecret, shape, limit, deadlineMs, onRejected, onError, clock } = settings
  const authenticate = createAuthenticate(matchSecret)
  const handlers = createHandlers()
  const inbox = settings.inbox && createInbox(settings.inbox, settings, handlers)
  const once = settings.dedupe && createOnce(settings.dedupe, clock)
  const deadlines = createDeadlines(deadlineMs, clock)
  let inFlight = 0
  let closed: Promise<readonly StoredMessage[]> | undefined
  const idle: (() => void)[] = []

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
    start() {
      if (closed !== undefined) throw new TypeError('start: the receiver is closed. Make a new one.')
      inboxFor('start').start()
    },
    dead: async (page) => inboxFor('dead').dead(page),
    redrive: async (ids) => inboxFor('redrive').redrive(ids),
    drop: async (ids) => inboxFor('drop').drop(ids),
    health: () => checkHealth(inbox?.counts, closed !== undefined, clock),
    close: async (options: ReceiverCloseOptions = {}) => {
      refuseUnknown(options, ['graceMs'])
      const graceMs = requireWhole('graceMs', options.graceMs ?? GRACE_MS, 0)
      closed ??= end(graceMs)
      return closed
    },
  }
  return receiver

  function inboxFor(call: string): Inbox {
    if (inbox !== undefined) return inbox
    throw new TypeError(`${call}: the receiver has no inbox. Give createReceiver one.`)
  }

  async function end(graceMs: number): Promise<readonly StoredMessage[]> {
    const since = clock.monotonic()
    if (inFlight > 0) await new Promise<void>((resolve) => idle.push(resolve))
    await nextTurn() // The last answers are with their hosts, which write them now.
    const rest = Math.max(0, Math.ceil(graceMs - (clock.monotonic() - since)))
    await once?.close(rest)
    return (await inbox?.close(rest)) ?? []
  }

  /** One request from its first byte to its answer: whatever comes first, the algorithm's end or the deadline. */
  function exchange(request: FailedRequest, read: () => EndpointBody | Promise<EndpointBody>): Promise<Received> {
    const delivery = new OpenDelivery(request.headers, clock.now())
    inFlight++
    return new Promise((resolve) => {
      const end = (received: Received): void => {
        deadlines.clear(deadline)
        resolve(received)
        if (--inFlight === 0) for (const resume of idle.splice(0)) resume()
      }
      const succeed = (message: Message): void => {
        if (delivery.startedAt !== undefined) announceHandled(delivery, 1, clock)
        end({ status, headers, body, ok: true, message, delivery })
      }
      const fail = (error: HooklineError, answer = problem(error)): void => {
        tell(error, request)
        if (delivery.handed === undefined) announceRejected(error, request)
        else announceFailed(delivery, 1, clock, { error, next: 'sender' })
        end({ ...answer, ok: false, error })
      }
      const deadline = deadlines.set(() => {
        const error = delivery.expire()
        if (!delivery.isHandled) return fail(error)
        tell(error, request)
        succeed(delivery.handed as Message)
      })

      run(delivery, read, request).then(
        (message) => {
          if (delivery.isExpired) return
          if (message instanceof HooklineError) fail(message, accepted)
          else succeed(message)
        },
        (thrown: unknown) => {
          const error = toError(thrown)
          if (!delivery.isExpired) fail(error)
          else if (error.code === 'handler_failed' && error !== delivery.expired) tell(error, request)
        },
      )
    })
  }

  /**
   * The steps, in the order that decides which error a request with several faults is answered. Resolves to an error for
   * what is in the inbox and cannot be used.
   */
  async function run(
    delivery: OpenDelivery,
    read: () => EndpointBody | Promise<EndpointBody>,
    request: FailedRequest,
  ): Promise<Message | HooklineError> {
    if (closed !== undefined) {
      throw new HooklineError('shutting_down', 'The endpoint is shutting down. Send the message again.')
    }
    delivery.setBody(await read())

    delivery.enter('secret')
    const authenticated = authenticate(delivery)
    if (authenticated !== undefined) await authenticated

    if (inbox !== undefined) return inbox.take(delivery)
    delivery.enter('handlers')
    try {
      const wire = parse(delivery.bytes)
      const shaped = shape(wire)
      const message = isThenable(shaped) ? await shaped : shaped
      const handled =
        once === undefined
          ? dispatch(message, wire, delivery)
          : once.run(
              wire,
              delivery,
              () => dispatch(message, wire, delivery),
              (error) => tell(error, request),
            )
      if (handled !== undefined) await handled
      return message
    } catch (error) {
      if (isUnusable(error) && delivery.verified) await handOver(error, delivery)
      throw error
    }
  }

  function dispatch(message: Message, wire: Message, delivery: OpenDelivery): Promise<void> | undefined {
    delivery.enter('handlers')
    announceReceived(message, delivery)
    delivery.handOver(message, startOf('handled', clock))
    return handlers.dispatch(message, wire, delivery)
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
}

const { status, headers, body } = accepted

/** The default of `close({ graceMs })`. */
const GRACE_MS = 10_000
