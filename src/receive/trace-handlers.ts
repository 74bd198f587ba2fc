/** Traces an attempt to handle a message on the tracing channel `hookline:handle`, from the call of its handlers to its end. */

import { tracingChannel } from 'node:diagnostics_channel'
import { trace } from '../kit/trace.ts'
import type { Attempt } from './attempt.ts'
import type { HandleEvent } from './events.ts'

export const handling = tracingChannel<object, HandleEvent>('hookline:handle')

/** Calls the handlers of an attempt, and traces the attempt until its `endTrace` is called, because it may end before its handlers do. */
export function traceHandlers(attempt: Attempt, call: () => Promise<undefined> | undefined): Promise<undefined> {
  const { message, delivery, number, isStored } = attempt
  const work = Promise.withResolvers<undefined>()
  const ended = Promise.withResolvers<void>()
  attempt.endTrace = (error) => (error === undefined ? ended.resolve() : ended.reject(error))
  const callHandlers = (): void => {
    try {
      work.resolve(call())
    } catch (error) {
      work.reject(error)
    }
  }
  trace(handling, { message, delivery, attempt: number, isStored }, callHandlers, ended.promise)
  return work.promise
}
