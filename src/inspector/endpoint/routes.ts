/** The routes of the endpoint: what each of them answers to a request that may have it. */

import manifest from '../../../package.json' with { type: 'json' }
import type { EndpointAnswer, EndpointRequest } from '../../http/endpoint.ts'
import type { Json } from '../../message/json.ts'
import type { Sender } from '../../sender/api.ts'
import { TAMPERINGS } from '../../sender/tamper.ts'
import type { ManualClock } from '../../testing/manual-clock.ts'
import type { Clock } from '../../time/clock.ts'
import type { Journal, Refused } from '../journal.ts'
import type { SeriesRecorder } from '../series.ts'
import type { Access, Changed, Explanation, Setup } from '../wire.ts'
import type { GuardOptions } from './access.ts'
import { answer, json, pageFiles, Refusal } from './answers.ts'
import { type Faults, requireBetween } from './faults.ts'
import { createLetters, type QueuedPart, readChange } from './letters.ts'
import type { WatchedPart } from './parts.ts'
import { createSampler } from './queues.ts'
import { createSending } from './send.ts'
import { createStreams } from './stream.ts'
import { createTimeControl } from './time.ts'

/** What the endpoint shows, and what it can do. */
export interface EndpointOptions extends GuardOptions {
  readonly journal: Journal
  readonly series: SeriesRecorder
  readonly parts: readonly WatchedPart[]
  /** How many messages are kept. */
  readonly keep: Setup['keep']
  /** The clock of the parts. */
  readonly clock: Clock
  /** By name. Default: nothing can be sent. */
  readonly senders?: ReadonlyMap<string, Sender>
  /** Says why a signature was refused. Default: it cannot. */
  readonly explain?: (refused: Refused) => Promise<string>
  /** Default: no faults can be set. */
  readonly faults?: Faults | undefined
  /** The clock, when it may be moved. */
  readonly movable?: ManualClock | undefined
  /** What serves the page, when it is no app. */
  readonly command?: Setup['command']
}

type Answer = (request: EndpointRequest, access: Access) => EndpointAnswer | Promise<EndpointAnswer>
/** What it returns is the answer. */
type Act = (body: Json, request: EndpointRequest) => unknown

/** The routes by their paths. */
export interface Routes {
  readonly gets: ReadonlyMap<string, Answer>
  readonly posts: ReadonlyMap<string, Act>
  /** Ends what goes on between requests. */
  close(): void
}

/** Of a plot. */
const MOST_MINUTES = 240

/**
 * Creates the routes.
 *
 * @param isAllowed Is asked again for a stream that stays open; undefined: it is not.
 * @param report Receives what fails outside of requests.
 */
export function createRoutes(
  options: EndpointOptions,
  isAllowed: ((request: EndpointRequest) => Promise<boolean>) | undefined,
  report: (thrown: unknown) => void,
): Routes {
  const { journal, series, parts, clock, machine, senders = new Map(), faults, movable } = options
  const wake = (): void => streams.wake()
  const queues = createSampler({ parts, series, isOpen: () => streams.isOpen, onSample: wake, report, machine })
  const letters = createLetters(journal, clock, machine)
  const sending = createSending(senders)
  faults?.onChange(wake)
  const isActive = async (): Promise<boolean> => sending.active > 0 || (await queues.isActive())
  const time = movable && createTimeControl({ movable, isActive, onChange: wake, machine })
  const sources = [queues, faults, time].filter((source) => source !== undefined)
  const streams = createStreams(journal, sources, machine)
  const stopLooking = journal.onChange(queues.look) // The plots begin with the first message, not with the first page.

  const gets: Readonly<Record<string, Answer>> = {
    '/': () => answer(200, 'text/html; charset=utf-8', pageFiles.html),
    '/page.js': () => answer(200, 'text/javascript; charset=utf-8', pageFiles.script),
    '/page.css': () => answer(200, 'text/css; charset=utf-8', pageFiles.style),
    '/api/setup': async (_request, access) => json(await readSetup(access)),
    '/api/stream': (request) => {
      const stream = streams.open(request, isAllowed && (() => isAllowed(request)))
      queues.look()
      return stream
    },
    '/api/message': (request) => {
      const detail = journal.detail(readId(request))
      if (detail === undefined) throw notKept()
      return json(detail)
    },
    '/api/explanation': async (request) => {
      const refused = journal.refused(readId(request))
      if (refused === undefined || options.explain === undefined) throw notKept()
      return json({ message: await options.explain(refused) } satisfies Explanation)
    },
    '/api/series': ({ query }) => {
      const fields = new URLSearchParams(query)
      const minutes = requireBetween('minutes', Number(fields.get('minutes')), 1, MOST_MINUTES)
      return json(series.read(partOf(fields.get('part')).name, minutes))
    },
    '/api/dead-letters': async ({ query }) => {
      const fields = new URLSearchParams(query)
      const [reason, after] = [fields.get('reason') ?? undefined, fields.get('after') ?? undefined]
      return json(await letters.list(await queuedPartOf(fields.get('part')), { reason, after }))
    },
  }

  const posts: Readonly<Record<string, Act>> = {
    '/api/redrive': (body, request) => change('redrive', body, request),
    '/api/drop': (body, request) => change('drop', body, request),
    '/api/send': (body) => sending.send(body),
    '/api/faults': (body) => {
      if (faults !== undefined) return faults.set(body)
      throw new Refusal(
        403,
        'Faults need development. Got an inspector without it. Pass `development: true` to createInspector.',
      )
    },
    '/api/time': (body) => {
      if (time !== undefined) return time.change(body)
      const advice = 'Pass `development: true` and the `manualClock()` of the parts as `clock` to createInspector.'
      throw new Refusal(403, `Time needs a clock that can be moved. Got another one. ${advice}`)
    },
  }

  async function change(what: 'redrive' | 'drop', body: Json, { signal }: EndpointRequest): Promise<Changed> {
    const changed = await letters.change(what, await queuedPartOf(body.part), readChange(body), signal)
    queues.look()
    return changed
  }

  async function readSetup(access: Access): Promise<Setup> {
    const named = parts.map(async ({ name, kind, queue }) => ({ name, kind, hasQueue: await queues.has(queue) }))
    return {
      version: manifest.version,
      access,
      parts: await Promise.all(named),
      ...(options.command !== undefined && { command: options.command }),
      senders: [...senders.keys()],
      tamperings: TAMPERINGS,
      development: faults !== undefined,
      ...(time !== undefined && { time: time.read() }),
      keep: options.keep,
    }
  }

  function partOf(name: unknown): WatchedPart {
    const part = parts.find((each) => each.name === name)
    if (part !== undefined) return part
    throw new Refusal(404, 'The part must be one that the inspector watches. Got another name. Reload the page.')
  }

  async function queuedPartOf(name: unknown): Promise<QueuedPart> {
    const part = partOf(name)
    if (await queues.has(part.queue)) return part as QueuedPart
    throw new Refusal(
      404,
      'The part must have a queue. Got one without. Choose a receiver with an inbox, or a destination.',
    )
  }

  return {
    gets: new Map(Object.entries(gets)),
    posts: new Map(Object.entries(posts)),
    close() {
      stopLooking()
      queues.close()
      faults?.close()
      time?.close()
      streams.close()
    },
  }
}

/** @throws Refusal for anything but an id. */
function readId({ query }: EndpointRequest): number {
  const id = new URLSearchParams(query).get('id') ?? ''
  if (/^\d{1,15}$/.test(id)) return Number(id)
  throw new Refusal(400, '`id` must be the id of a message. Got something else. Open the message from the list.')
}

function notKept(): Refusal {
  return new Refusal(
    404,
    'The message must be kept. Got the id of one that is not, or not any more. Choose another one.',
  )
}
