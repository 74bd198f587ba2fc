/** What a collector can be told, checked once and loudly. */

import { type Clock, systemClock } from '../protocol/clock.ts'
import type { EndpointHeaders } from '../protocol/endpoint.ts'
import type { HooklineError } from '../protocol/error.ts'
import { refuseUnknown, requireClock, requireFunction, requireText, requireWhole } from '../protocol/options.ts'
import { printOurFaults } from '../protocol/report.ts'
import type { CollectorDestination, Source } from './api.ts'

/** The request that an error is about. Holds no body. */
export interface CollectorRequest {
  /** Relative to where the collector is mounted. */
  readonly path: string
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** The address of the connection, where the host knows it. */
  readonly remoteAddress: string | undefined
}

/** What `createCollector` takes. */
export interface CollectorOptions {
  /** Where calls come from, and where they go. */
  readonly sources: readonly Source[]
  /**
   * The header in which a proxy of yours says whose request it is, such as `x-forwarded-for`; of several addresses the
   * last counts, which that proxy has added. Default: none, because whoever reaches the collector without the proxy
   * can write into it what they like.
   */
  readonly ipHeader?: string
  /** How long a body may take to arrive, in milliseconds. Default 30 000. */
  readonly deadlineMs?: number
  /**
   * Sees every error that is the whole answer, once for each request; calls refused in a batch are told to the client
   * only. Not awaited. Default: `console.error` for the 5xx ones but `shutting_down`.
   */
  readonly onError?: (error: HooklineError, request: CollectorRequest) => unknown
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** A source, ready to use. */
export interface ReadySource {
  readonly name: string
  readonly writeKey: string
  readonly destinations: readonly CollectorDestination[]
}

/** The options of a collector, complete and ready to use. */
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
 * @throws TypeError that names the option, and quotes no write key.
 */
export function readOptions(options: CollectorOptions): CollectorSettings {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError('createCollector: give it options, at least { sources: [{ name, writeKey, destinations }] }.')
  }
  refuseUnknown(options, OPTIONS)
  const { ipHeader, deadlineMs = 30_000, onError = printOurFaults, clock = systemClock } = options
  if (ipHeader !== undefined && (typeof ipHeader !== 'string' || ipHeader === '')) {
    throw new TypeError("ipHeader: must be the name of a header, for instance 'x-forwarded-for'.")
  }
  requireWhole('deadlineMs', deadlineMs, 1)
  requireFunction('onError', onError)
  requireClock(clock)
  return { sources: readSources(options.sources), ipHeader: ipHeader?.toLowerCase(), deadlineMs, onError, clock }
}

function readSources(sources: unknown): readonly ReadySource[] {
  if (!Array.isArray(sources) || sources.length === 0) {
    throw new TypeError('sources: must be a list of at least one, each { name, writeKey, destinations }.')
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
    throw new TypeError(`${option}: must be { name, writeKey, destinations }.`)
  }
  refuseUnknown(source, SOURCE, `${option}.`)
  const { name, writeKey, destinations } = source as Partial<Source>
  requireText(`${option}.name`, name)
  requireText(`${option}.writeKey`, writeKey)
  if (writeKey.includes(':')) {
    throw new TypeError(`${option}.writeKey: must hold no colon, which ends a user name in Basic authentication.`)
  }
  if (!Array.isArray(destinations)) throw new TypeError(`${option}.destinations: must be a list.`)
  for (const [index, destination] of destinations.entries()) {
    if (typeof destination?.submit !== 'function') {
      throw new TypeError(`${option}.destinations[${index}]: must be a destination, of createDestination().`)
    }
  }
  requireUnique(destinations, (index) => `${option}.destinations[${index}]`)
  return { name, writeKey, destinations: [...destinations] }
}

function requireUnique(values: readonly unknown[], nameOf: (index: number) => string): void {
  const places = new Map<unknown, number>()
  for (const [index, value] of values.entries()) {
    const first = places.get(value)
    if (first !== undefined) throw new TypeError(`${nameOf(index)}: is the same as ${nameOf(first)}.`)
    places.set(value, index)
  }
}
