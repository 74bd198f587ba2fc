/** Answers requests with the first of two: the end of the receive algorithm, or the deadline. */

import type { ReceivedElement } from '../handling/delivery.ts'
import type { FailedRequest } from '../handling/diagnostics.ts'
import { isUnusable, toError } from '../handling/failure.ts'
import { describeRequest, MISMATCH } from '../handling/log-lines.ts'
import { OpenDelivery } from '../handling/open-delivery.ts'
import { accepted, duplicate, problem } from '../http/answer.ts'
import type { EndpointBody } from '../http/body.ts'
import type { EndpointHeaders, EndpointRequest } from '../http/endpoint.ts'
import { readJson } from '../http/read-json.ts'
import { HooklineError } from '../message/error.ts'
import { isThenable } from '../options/callbacks.ts'
import { createDeadlines, type Deadline } from '../time/deadlines.ts'
import type { Received } from './api.ts'
import type { ReceiverSettings } from './options.ts'

export type ReadBody = () => EndpointBody | Promise<EndpointBody>

export interface OpenRequest {
  readonly request: GivenRequest
  readonly delivery: OpenDelivery
  /** What it has in place of a signature. */
  readonly key: EndpointHeaders[string]
  /** Its messages, once the signature is checked: the delivery itself, or one for each element of a batch. */
  deliveries: readonly OpenDelivery[]
  current: OpenDelivery
}

/** Without a method: a call of `receive`. */
export type GivenRequest = FailedRequest &
  Partial<Pick<EndpointRequest, 'method' | 'rawHeaders'>> & { readonly query?: string | undefined }

type Run = (open: OpenRequest, read: ReadBody) => Steps<void>

export type Receive = ReturnType<typeof createAnswer>

export function createAnswer(
  { headerName, methods, limit, deadlineMs, inbox, onRejected, tap, clock, observers }: ReceiverSettings,
  run: Run,
) {
  const deadlines = createDeadlines(deadlineMs, clock)
  const forms = { methods }
  let inFlight = 0
  let onIdle = (): void => {}
  let isStopped = false

  function answer(given: GivenRequest, read: ReadBody, remainingMs = deadlineMs): Promise<Received> {
    const key = headerName && keyOf(given, headerName)
    const request = headerName === undefined ? given : withoutHeader(given, headerName)
    const delivery = new OpenDelivery(request.headers, clock.now(), request.method)
    delivery.setObserved(observers.current)
    const open: OpenRequest = { request, delivery, key, deliveries: NONE, current: delivery }
    const { set, clear } = remainingMs < deadlineMs ? createDeadlines(remainingMs, clock) : deadlines
    const since = clock.monotonic()
    let isAnswered = false
    let deadline: Deadline | undefined
    inFlight++
    return new Promise((resolve) => {
      const end = (failure?: HooklineError): void => {
        isAnswered = true
        if (deadline !== undefined) clear(deadline)
        if (failure !== undefined) interrupt(open, failure)
        const received = summarize(open, failure, inbox !== undefined, methods)
        tap.answered(delivery, request, received, since)
        resolve(received)
        if (--inFlight === 0) onIdle()
      }
      runSteps(
        run(open, isStopped ? refuse : read),
        () => {
          if (!isAnswered) end()
        },
        (thrown) => {
          if (!isAnswered) end(toError(thrown))
        },
      )
      if (isAnswered) return // Nothing was waited for.
      deadline = set(() => {
        end(open.current.expire())
        delivery.dropUnverified()
      }, since)
      if (isAnswered) clear(deadline) // Deno runs what waits while it sets its first timer.
    })
  }

  /** Ends a request that failed as a whole, and what has not ended of it. Its error is reported once for all. */
  function interrupt({ request, delivery, deliveries }: OpenRequest, failure: HooklineError): void {
    delivery.expire(failure)
    if (delivery.isHandled) tap.failedLate(delivery, failure, request)
    else tap.refused(delivery, failure, request, describeRequest(failure, delivery, request.path, onRejected))
    for (const each of deliveries) {
      if (each.result !== undefined) continue
      const { dispatched } = each
      each.expire(failure)
      if (dispatched !== undefined && each.isHandled) {
        tap.handled(each)
        each.end(dispatched)
        continue
      }
      if (dispatched !== undefined && each !== delivery)
        tap.failed(each, { error: failure, next: 'sender', attempt: 1 })
      each.end(failure)
    }
  }

  return {
    /** Answers a request of a host. Never rejects. */
    handle: (request: EndpointRequest): Promise<Received> =>
      answer(request, () => readJson(request, limit, forms), request.remainingMs),
    answer,
    /** Answers every later request `shutting_down`. Resolves when all earlier ones are answered. */
    stop: async (): Promise<void> => {
      isStopped = true
      if (inFlight > 0) await new Promise<void>((resolve) => (onIdle = resolve))
    },
  }
}

const NONE: readonly OpenDelivery[] = []

/** What a request has in place of a signature: a list when it is repeated. */
function keyOf({ headers, rawHeaders = [] }: GivenRequest, name: string): EndpointHeaders[string] {
  const values = rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name)
  return values.length > 1 ? values : headers[name]
}

/** Nothing that observes, logs or stores the request has the header with the secret. */
function withoutHeader(request: GivenRequest, name: string): GivenRequest {
  const { [name]: _, ...headers } = request.headers
  const { method, path, remoteAddress } = request
  return { ...(method && { method }), headers, path, remoteAddress }
}

/** The result of a request. Of a batch, what makes the sender come again comes first; an invalid element does not. */
function summarize(
  { delivery, deliveries }: OpenRequest,
  failure: HooklineError | undefined,
  hasInbox: boolean,
  methods: readonly string[],
): Received {
  const [first] = deliveries
  if (first === undefined) return refused(failure as HooklineError, methods)
  if (first === delivery) {
    const result = first.result as ReceivedElement
    if (result.ok) return { ...(first.isDuplicate ? duplicate : accepted), ...result }
    const { error } = result
    const isStored = hasInbox && isUnusable(error) && delivery.verified
    return isStored ? { ...accepted, ok: false, error } : refused(error)
  }
  const elements = deliveries.map(({ result }) => result as ReceivedElement)
  const errors = elements.flatMap((result) => (result.ok ? [] : [result.error]))
  const serious = failure ?? errors.find((error) => !isUnusable(error))
  if (serious !== undefined) return { ...refused(serious), elements }
  const [error] = errors
  if (error !== undefined) return { ...accepted, ok: false, error, elements }
  return { ...accepted, ...(elements[0] as Extract<ReceivedElement, { ok: true }>), elements }
}

function refused(error: HooklineError, methods?: readonly string[]) {
  // A stranger does not learn which sources there are.
  const told = error.code === 'source_unknown' ? new HooklineError('signature_mismatch', MISMATCH) : error
  return { ...problem(told, methods), ok: false as const, error }
}

function refuse(): never {
  const text = 'The endpoint is closing. Got a request after close(). Send the message again.'
  throw new HooklineError('shutting_down', text)
}

/**
 * A function that waits as an async function does, but makes no promise where there is nothing to wait for: in this generator
 * `yield value` stands for `await value`. What it gets is typed by where it goes.
 */
export type Steps<Result> = Generator<unknown, Result, never>

/**
 * Runs such a function, up to its first promise at once, and calls one of the two at its end. They must not throw.
 *
 * Hot path: an async function makes a promise for itself and one for each `await`, which a server pays for with each request.
 */
export function runSteps<Result>(
  steps: Steps<Result>,
  succeed: (result: Result) => void,
  fail: (error: unknown) => void,
): void {
  const resume = (how: 'next' | 'throw', given?: unknown): void => {
    let step: IteratorResult<unknown, Result>
    try {
      step = steps[how](given as never)
      while (!step.done && !isThenable(step.value)) step = steps.next(step.value as never)
    } catch (error) {
      fail(error)
      return
    }
    if (step.done) succeed(step.value)
    else
      void Promise.resolve(step.value).then(
        (value) => resume('next', value),
        (error) => resume('throw', error),
      )
  }
  resume('next')
}
