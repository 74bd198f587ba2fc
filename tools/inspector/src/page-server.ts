/** Serves the page with data from any source: the parts of an inspector, `listen --ui` or `queue --ui`. */

import { parse } from 'hookline'
import type { InspectQueueOptions, Queue } from 'hookline/queues'
import { createLog, systemClock } from '../../../src/internals.ts'
import { tryParse } from '../../json.ts'
import type { Inspector } from './api.ts'
import { createEndpoint, type EndpointOptions } from './endpoint/endpoint.ts'
import { createHandler } from './endpoint/listener.ts'
import { partOfQueue } from './endpoint/queues.ts'
import { createEventCounts } from './event-counts.ts'
import { createJournal, type Journal, readKeep } from './journal.ts'
import { type LoggedMessage, setBody } from './logged-message.ts'
import { cut, SHORT } from './redact.ts'
import { createSeries, type SeriesRecorder } from './series.ts'
import { kindOf } from './watch-events.ts'
import type { Step } from './wire.ts'

export type { Step } from './wire.ts'

export interface PageServer extends Pick<Inspector, 'url' | 'handler' | 'close'> {
  readonly journal: Journal
  readonly series: SeriesRecorder
}

type PageOptions = Omit<EndpointOptions, 'journal' | 'series' | 'keep' | 'machine'> & {
  readonly keep: ReturnType<typeof readKeep>
}

export function createPageServer(options: PageOptions): PageServer {
  const { keep, clock } = options
  const [journal, series] = [createJournal(keep, clock), createSeries(clock)]
  const { handle, url, close } = createEndpoint({ ...options, journal, series, machine: systemClock })
  return { journal, series, url, handler: createHandler(handle, systemClock), close }
}

/** Returns the options that all pages of the `hookline` command share. */
const ofCommand = (): Pick<PageOptions, 'keep' | 'clock' | 'log'> => {
  return { keep: readKeep(), clock: systemClock, log: createLog(undefined, undefined, systemClock) }
}

/** Creates the page of `hookline queue --ui`. The queues are keyed by name. */
export function createQueuePage(queues: ReadonlyMap<string, Queue>, how: InspectQueueOptions = {}): PageServer {
  const parts = [...queues].map(([name, queue]) => partOfQueue(name, queue, systemClock, how))
  return createPageServer({ ...ofCommand(), command: 'queue', parts })
}

const LISTEN = 'listen'

/** A request that `hookline listen` answered. */
export interface ListenedRequest
  extends Pick<LoggedMessage, 'at' | 'method' | 'path' | 'headers' | 'body' | 'bytes' | 'state'>,
    Partial<Pick<LoggedMessage, 'type' | 'name' | 'user' | 'status' | 'code' | 'isRefused'>> {
  readonly durationMs: number
  readonly steps: readonly Step[]
}

export interface RequestPage extends Pick<PageServer, 'url' | 'handler' | 'close'> {
  /** @param isNew Whether the request has just arrived. Only new requests are counted. */
  append(request: ListenedRequest, isNew: boolean): void
}

/** Creates the page of `hookline listen --ui`. */
export function createRequestPage(options: Pick<EndpointOptions, 'address' | 'explain'>): RequestPage {
  const events = createEventCounts(LISTEN, systemClock)
  const parts = [{ name: LISTEN, kind: 'receiver' }] as const
  const page = createPageServer({ ...ofCommand(), ...options, command: LISTEN, parts, events: [events] })
  const { journal, series } = page
  return {
    ...page,
    append({ at, isRefused = false, body, steps, ...fields }, isNew) {
      const logged = journal.addMessage(LISTEN, { kind: 'received', at, isRefused })
      setBody(logged, body)
      const [name, user] = [cut(fields.name, SHORT), cut(fields.user, SHORT)]
      journal.update(logged, { ...fields, name, user }, ...steps)
      if (!isNew) return
      series[fields.state === 'done' ? 'done' : 'failed'](LISTEN, fields.durationMs)
      for (const message of isRefused ? [] : messagesIn(body)) events.arrived(kindOf(message))
    },
  }
}

/** The maximum number of elements in a batch that a receiver accepts. */
const MAX_ELEMENTS = 1_000

function messagesIn(body: Uint8Array) {
  const json = tryParse(body)
  return (Array.isArray(json) ? json.slice(0, MAX_ELEMENTS) : [json]).flatMap((each) => {
    try {
      return [parse(Buffer.from(JSON.stringify(each)))]
    } catch {
      return [] // The element is not a message.
    }
  })
}
