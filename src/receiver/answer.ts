/** Answers requests with the first of two: the end of the receive algorithm, or the deadline. */

import type { FailedRequest } from '../handling/diagnostics.ts'
import { toError } from '../handling/failure.ts'
import { describe, describeRequest } from '../handling/lines.ts'
import { OpenDelivery } from '../handling/open-delivery.ts'
import { publishAnswered, publishFailed, publishHandled, publishRejected } from '../handling/publish.ts'
import { accepted, problem } from '../http/answer.ts'
import type { EndpointBody } from '../http/body.ts'
import type { EndpointRequest, TextAnswer } from '../http/endpoint.ts'
import { readJson } from '../http/read-json.ts'
import { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import { createDeadlines, type Deadline } from '../time/deadlines.ts'
import type { Received } from './api.ts'
import type { ReceiverSettings } from './options.ts'
import { runSteps, type Steps } from './steps.ts'

/** Reads the body of a request. */
export type ReadBody = () => EndpointBody | Promise<EndpointBody>

/** The receive algorithm: as `run` of receive.ts. */
type Run = (delivery: OpenDelivery, request: FailedRequest, read: ReadBody) => Steps<Message | HooklineError | Received>

/** Answers requests until it is stopped. */
export interface Receive {
  /** Answers a request of a host. Never rejects. */
  handle(request: EndpointRequest): Promise<Received>
  /** Answers a request whose body is read by `read`. Never rejects. */
  answer(request: FailedRequest, read: ReadBody): Promise<Received>
  /** Answers every later request `shutting_down`. Resolves when all earlier ones are answered. */
  stop(): Promise<void>
}

/** Prepares the answers. */
export function createAnswer(
  { limit, deadlineMs, onRejected, report, clock, observers }: ReceiverSettings,
  run: Run,
): Receive {
  const deadlines = createDeadlines(deadlineMs, clock)
  let inFlight = 0
  let onIdle = (): void => {}
  let isStopped = false

  const leave = (): void => {
    if (--inFlight === 0) onIdle()
  }

  /** @param arrivedAt When the request arrived, on the monotonic clock. Default: now. */
  function answer(
    request: FailedRequest,
    read: ReadBody,
    remainingMs = deadlineMs,
    arrivedAt?: number,
  ): Promise<Received> {
    const delivery = new OpenDelivery(request.headers, clock.now())
    delivery.setObserved(observers.current)
    const { set, clear } = remainingMs < deadlineMs ? createDeadlines(remainingMs, clock) : deadlines
    const since = clock.monotonic()
    let isAnswered = false
    let deadline: Deadline | undefined
    inFlight++
    return new Promise((resolve) => {
      const end = (received: Received): void => {
        isAnswered = true
        if (deadline !== undefined) clear(deadline)
        const whole = delivery.complete?.(received) ?? received
        publishAnswered(delivery, request, whole, arrivedAt ?? since)
        resolve(whole)
        leave()
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
        run(delivery, request, isStopped ? refuse : read),
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
        if (delivery.isHandled) {
          reportLate(error)
          succeed(delivery.dispatched as Message)
        } else fail(error)
        delivery.dropUnverified()
      }, since)
      if (isAnswered) clear(deadline) // Deno runs what waits while it sets its first timer.
    })
  }

  function answerRequest(request: EndpointRequest, arrivedAt?: number): Promise<Received> {
    return answer(request, () => readJson(request, limit), request.remainingMs, arrivedAt)
  }

  /** Answers what an observer gives, or as usual when it gives nothing. */
  async function answerIntercepted(request: EndpointRequest, asked: PromiseLike<unknown>): Promise<Received> {
    const delivery = new OpenDelivery(request.headers, clock.now())
    const since = clock.monotonic()
    inFlight++
    const given = (await asked) as TextAnswer | null | undefined
    try {
      if (!given) return await answerRequest(request, since)
      const text = 'The receiver must answer. Got the answer of an observer. Remove its `intercept`.'
      const received: Received = { ...given, ok: false, error: new HooklineError('internal', text) }
      delivery.setObserved(observers.current)
      publishAnswered(delivery, request, received, since)
      return received
    } finally {
      leave()
    }
  }

  return {
    handle(request) {
      const asked = isStopped ? undefined : observers.current?.ask('intercept', request)
      return asked === undefined ? answerRequest(request) : answerIntercepted(request, asked)
    },
    answer,
    stop: async () => {
      isStopped = true
      if (inFlight > 0) await new Promise<void>((resolve) => (onIdle = resolve))
    },
  }
}

function refuse(): never {
  const text = 'The endpoint is closing. Got a request after close(). Send the message again.'
  throw new HooklineError('shutting_down', text)
}
