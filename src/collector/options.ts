/** Reads the options of a collector: checks them once and completes them. */

import type { EndpointHeaders } from '../http/endpoint.ts'
import type { HooklineError } from '../message/error.ts'
import { printServerErrors } from '../options/callbacks.ts'
import {
  invalidOption,
  kindOf,
  refuseUnknown,
  requireClock,
  requireFunction,
  requireOptions,
  requireText,
  requireWhole,
} from '../options/checks.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { CollectorDestination, Source } from './api.ts'

/** The request of an error, without its body. */
export interface CollectorRequest {
  /** Relative to where the collector is mounted. */
  readonly path: string
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** The address of the connection, if the host knows it. */
  readonly remoteAddress: string | undefined
}

/** Options of `createCollector`. */
export interface CollectorOptions {
  /** The sources of calls, and their destinations. */
  readonly sources: readonly Source[]
  /**
   * The header in which your proxy writes the address of the client, such as `x-forwarded-for`. Of several addresses the
   * last counts, which that proxy has added. Default: none, because a client that reaches the collector without the proxy
   * can write any address.
   */
  readonly ipHeader?: string
  /** How long a body may take to arrive, in milliseconds. Default 30 000. */
  readonly deadlineMs?: number
  /**
   * Is called with every error that fails a whole request. Calls refused in a batch are listed in the answer only. Not
   * awaited. Default: `console.error` for those of status 5xx but `shutting_down`.
   */
  readonly onError?: (error: HooklineError, request: CollectorRequest) => unknown
  /** The source of time. Default: the system's clock. */
  readonly clock?: Clock
}

/** A source, checked. */
export interface ReadySource {
  readonly name: string
  readonly writeKey: string
  readonly destinations: readonly CollectorDestination[]
}

/** The options of a collector, checked and complete. */
export interface CollectorSettings {
  readonly sources: readonly ReadySource[]
  readonly ipHeader: string | undefined
  readonly deadlineMs: number
  readonly onError: NonNullable<CollectorOptions['onError']>
  readonly clock: Clock
}

const OPTIONS = ['sources', 'ipHeader', 'deadlineMs', 'onError', 'clock'] as const satisfies (keyof CollectorOptions)[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option, and shows no write key.
 */
export function readOptions(options: CollectorOptions): CollectorSettings {
  requireOptions('createCollector', options, OPTIONS)
  const { ipHeader, deadlineMs = 30_000, onError = printServerErrors, clock = systemClock } = options
  if (ipHeader !== undefined) requireText('ipHeader', ipHeader, 'x-forwarded-for')
  requireWhole('deadlineMs', deadlineMs, 1)
  requireFunction('onError', onError)
  requireClock(clock)
  return { sources: readSources(options.sources), ipHeader: ipHeader?.toLowerCase(), deadlineMs, onError, clock }
}

function readSources(sources: unknown): readonly ReadySource[] {
  if (!Array.isArray(sources) || sources.length === 0) {
    const advice = 'Pass at least one { name, writeKey, destinations }.'
    throw invalidOption('sources', 'must be a non-empty list', kindOf(sources), advice)
  }
  const ready = sources.map((source, index) => readSource(source, `sources[${index}]`))
  requireUnique(
    ready.map(({ name }) => name),
    (index) => `sources[${index}].name`,
  )
  requireUnique(
    ready.map(({ writeKey }) => writeKey),
    (index) => `sources[${index}].writeKey`,
  )
  return ready
}

const SOURCE = ['name', 'writeKey', 'destinations'] as const satisfies (keyof Source)[]

function readSource(source: unknown, option: string): ReadySource {
  if (typeof source !== 'object' || source === null) {
    throw invalidOption(option, 'must be an object', kindOf(source), 'Pass { name, writeKey, destinations }.')
  }
  refuseUnknown(source, SOURCE, `${option}.`)
  const { name, writeKey, destinations } = source as Partial<Source>
  requireText(`${option}.name`, name, 'shop')
  requireText(`${option}.writeKey`, writeKey, 'the write key of the source')
  if (writeKey.includes(':')) {
    const advice = 'Pass a write key without one: a colon ends the user name in Basic authentication.'
    throw invalidOption(`${option}.writeKey`, 'must not contain a colon', 'one that does', advice)
  }
  if (!Array.isArray(destinations)) {
    throw invalidOption(
      `${option}.destinations`,
      'must be a list',
      kindOf(destinations),
      'Pass a list, which may be empty.',
    )
  }
  for (const [index, destination] of destinations.entries()) {
    if (typeof destination?.submit !== 'function') {
      const name = `${option}.destinations[${index}]`
      throw invalidOption(name, 'must be a destination', kindOf(destination), 'Pass the result of createDestination().')
    }
  }
  requireUnique(destinations, (index) => `${option}.destinations[${index}]`)
  return { name, writeKey, destinations: [...destinations] }
}

function requireUnique(values: readonly unknown[], nameOf: (index: number) => string): void {
  const places = new Map<unknown, number>()
  for (const [index, value] of values.entries()) {
    const first = places.get(value)
    if (first !== undefined) {
      throw invalidOption(
        nameOf(index),
        `must differ from \`${nameOf(first)}\``,
        'the same',
        'Change or remove one of the two.',
      )
    }
    places.set(value, index)
  }
}
