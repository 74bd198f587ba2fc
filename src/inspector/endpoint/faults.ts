/** Faults: what the next requests to a receiver are answered, to see what their sender does then. For development. */

import type { Endpoint, EndpointAnswer } from '../../http/endpoint.ts'
import { invalidOption } from '../../options/checks.ts'
import type { Receiver } from '../../receiver/api.ts'
import type { Clock } from '../../time/clock.ts'
import { within } from '../../time/timeout.ts'
import type { Fault } from '../wire.ts'
import { Refusal, requireBetween } from './answers.ts'
import type { Source } from './stream.ts'

export interface Faults extends Source {
  /**
   * Sets the fault of a receiver. Returns what is in force.
   *
   * @throws Refusal for a wrong fault.
   */
  set(body: { readonly [field in keyof Fault]?: unknown }): Fault
  wrap(receiver: Receiver): Endpoint
  /** Calls `listener` when the faults in force have changed. */
  onChange(listener: () => void): void
  close(): void
}

const MAX_REQUESTS = 10_000
const MAX_DELAY_MS = 60_000

/** @param clock The clock of the parts: a delay lasts as long for the receiver as for its sender. */
export function createFaults(receivers: ReadonlyMap<string, Receiver>, clock: Clock): Faults {
  const inForce = new Map<string, Fault>()
  /** The receivers whose answers can be replaced, by name. */
  const wrapped = new Set<string>()
  let onChange = (): void => {}
  let version = 0

  function note(fault: Fault): void {
    if (fault.count > 0) inForce.set(fault.part, fault)
    else inForce.delete(fault.part)
    version += 1
    onChange()
  }

  /** Ends early when the client leaves. */
  async function wait(ms: number, signal: AbortSignal): Promise<void> {
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    if (!signal.aborted) await within(aborted, ms, clock)
  }

  return {
    name: 'faults',
    get version() {
      return version
    },
    read: () => [...inForce.values()],
    onChange(listener) {
      onChange = listener
    },
    wrap(receiver) {
      const [name] = [...receivers].find(([, each]) => each === receiver) ?? []
      if (name === undefined) {
        const advice = 'Pass it to createInspector as `receiver`.'
        throw invalidOption('withFaults: receiver', 'must be one that the inspector watches', 'another one', advice)
      }
      wrapped.add(name)
      return {
        get background() {
          return receiver.background
        },
        async handle(request) {
          const fault = inForce.get(name)
          if (fault === undefined) return receiver.handle(request)
          const { count, status, delayMs = 0 } = fault
          note({ ...fault, count: count - 1 })
          if (delayMs > 0) await wait(delayMs, request.signal)
          return status === undefined ? receiver.handle(request) : toAnswer(status)
        },
      }
    },
    set({ part, count, status, delayMs }) {
      if (typeof part !== 'string' || !wrapped.has(part)) {
        const advice = 'Mount `inspector.withFaults(receiver)` in its place.'
        throw new Refusal(
          404,
          `The part of a fault must be a receiver that lets faults answer. Got another one. ${advice}`,
        )
      }
      const fault: Fault = {
        part,
        count: requireBetween('count', count, 0, MAX_REQUESTS),
        ...(status !== undefined && { status: requireBetween('status', status, 200, 599) }),
        ...(delayMs !== undefined && { delayMs: requireBetween('delayMs', delayMs, 0, MAX_DELAY_MS) }),
      }
      note(fault)
      return fault
    },
    close() {
      inForce.clear()
    },
  }
}

function toAnswer(status: number): EndpointAnswer {
  const detail = 'The inspector answers this request, because a fault is set. The receiver did not see it.'
  return { status, headers: { 'content-type': 'application/problem+json' }, body: JSON.stringify({ status, detail }) }
}
