/** The endpoint of an inspector: the order in which a request is checked, and its routes. It needs a journal and parts, whatever fills them. */

import manifest from '../../../package.json' with { type: 'json' }
import type { EndpointAnswer, EndpointRequest } from '../../http/endpoint.ts'
import { readJson } from '../../http/read-json.ts'
import { HooklineError } from '../../message/error.ts'
import { type Json, parseObject } from '../../message/json.ts'
import type { Message } from '../../message/message.ts'
import type { Sender } from '../../sender/api.ts'
import { TAMPERINGS, type Tampering } from '../../sender/tamper.ts'
import type { ManualClock } from '../../testing/manual-clock.ts'
import { type Clock, inBackground } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { Inspector } from '../api.ts'
import type { EventCounts } from '../event-counts.ts'
import type { Journal, Refused } from '../journal.ts'
import { attemptLine } from '../redact.ts'
import type { SeriesRecorder } from '../series.ts'
import type { Access, Changed, Explanation, PartEvents, Sent, Setup } from '../wire.ts'
import { createGuard, type GuardOptions, requireOwnHeader, requireSameOrigin } from './access.ts'
import { answer, json, pageFiles, Refusal, redirect, refused, requireBetween } from './answers.ts'
import { createLetters, type QueuedPart } from './dead-letters.ts'
import type { Faults } from './faults.ts'
import { createHistory, type PartWithHistory } from './history.ts'
import { createSampler, type WatchedPart } from './queues.ts'
import { createStreams } from './stream.ts'
import { createTimeControl } from './time.ts'

export type InspectorEndpoint = Omit<Inspector, 'forget' | 'withFaults'>

/** What the endpoint shows, and what it can do. */
export interface EndpointOptions extends GuardOptions {
  readonly journal: Journal
  readonly series: SeriesRecorder
  /** Of each receiver. Default: none. */
  readonly events?: readonly Pick<EventCounts, 'read'>[]
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
  /** Where requests are listened for, once that is known. */
  readonly address?: () => string | undefined
}

/** The most bytes of a body, and how long it may take. */
const BODY_LIMIT = 1_000_000
const BODY_MS = 10_000
const MAX_MINUTES = 240
const MAX_SENDING = 4

/** Creates the endpoint. It reads nothing of the parts before the first request. */
export function createEndpoint(options: EndpointOptions): InspectorEndpoint {
  const { journal, series, events = [], parts, clock, machine, senders = new Map(), faults, movable, log } = options
  const background = inBackground(machine)
  const guard = createGuard(options)
  const letters = createLetters(journal, clock, machine)
  const wake = (): void => streams.wake()
  const history = createHistory(journal, wake, report)
  const isOpen = (): boolean => streams.isOpen
  const queues = createSampler({ parts, series, isOpen, onSample: wake, report, clock: background })
  const time = movable && createTimeControl(movable, isActive, wake, background)
  faults?.onChange(wake)
  const sources = [queues, history, faults, time].filter((source) => source !== undefined)
  const streams = createStreams(journal, sources, background)
  const stopLooking = journal.onChange(queues.look) // The plots begin with the first message, not with the first page.
  let sending = 0
  let isClosed = false

  function report(thrown: unknown): void {
    const text = 'The inspector failed. Got an unexpected error. Report it with its stack.'
    log.write({ level: 'error', code: 'inspector_failed', text, thrown })
  }

  async function isActive(): Promise<boolean> {
    return sending > 0 || (await queues.isActive())
  }

  function isAllowed(request: EndpointRequest): Promise<boolean> {
    return guard.check(request).then(
      () => true,
      () => false,
    )
  }

  type Get = (
    request: EndpointRequest,
    query: URLSearchParams,
    access: Access,
  ) => EndpointAnswer | Promise<EndpointAnswer>
  const gets = new Map<string, Get>(
    Object.entries({
      '/': () => answer(200, 'text/html; charset=utf-8', pageFiles.html),
      '/page.js': () => answer(200, 'text/javascript; charset=utf-8', pageFiles.script),
      '/page.css': () => answer(200, 'text/css; charset=utf-8', pageFiles.style),
      '/api/setup': async (_request, _query, access) => json(await readSetup(access)),
      '/api/stream': (request) => {
        const stream = streams.open(request, guard.isAskedAgain ? () => isAllowed(request) : undefined)
        queues.look()
        return stream
      },
      '/api/message': (_request, query) => json(kept(journal.detail(readId(query)))),
      '/api/explanation': async (_request, query) => {
        const refused = kept(options.explain && journal.refused(readId(query)))
        return json({ message: (await options.explain?.(refused)) ?? '' } satisfies Explanation)
      },
      '/api/series': (_request, query) => {
        const minutes = requireBetween('minutes', Number(query.get('minutes')), 1, MAX_MINUTES)
        return json(series.read(partOf(query.get('part')).name, minutes))
      },
      '/api/events': () => json(events.map((counts) => counts.read()) satisfies PartEvents[]),
      '/api/dead-letters': async (_request, query) => {
        const part = await queuedPartOf(query.get('part'))
        return json(await letters.list(part, query.get('group') ?? undefined, readAfter(query)))
      },
      '/api/history': async (request, query) => {
        const part = await partWithHistory(query.get('part'))
        return answer(200, 'application/x-ndjson', history.list(part, query, request))
      },
    } satisfies Record<string, Get>),
  )

  type Post = (body: Json, request: EndpointRequest) => unknown
  const posts = new Map<string, Post>(
    Object.entries({
      '/api/redrive': (body, request) => change('redrive', body, request),
      '/api/drop': (body, request) => change('drop', body, request),
      '/api/replay': async (body, request) => history.replay(await partWithHistory(body.part), body, request),
      '/api/stop-replay': history.stop,
      '/api/send': send,
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
    } satisfies Record<string, Post>),
  )

  async function change(what: 'redrive' | 'drop', body: Json, { signal }: EndpointRequest): Promise<Changed> {
    const changed = await letters.change(what, await queuedPartOf(body.part), body, signal)
    queues.look()
    return changed
  }

  /** Sends a message, with a sender of the app: to its URLs and to no other. */
  async function send({ sender: name, message, tamper }: Json): Promise<Sent> {
    const sender = senders.get(name as string)
    if (sender === undefined) {
      throw new Refusal(404, 'The sender must be one that the inspector has. Got another name. Reload the page.')
    }
    if (sending >= MAX_SENDING) {
      const text = `The inspector sends ${MAX_SENDING} messages at a time. Got one more. Wait for the others.`
      throw new Refusal(429, text, { 'retry-after': '1' })
    }
    sending += 1
    try {
      const how = tamper === undefined ? undefined : { tamper: tamper as Tampering }
      const { ok, attempts } = await sender.send(message as Message, how)
      return { ok, attempts: attempts.map(attemptLine) }
    } catch (thrown) {
      // A field of the message, or the tampering, is wrong.
      throw thrown instanceof TypeError ? new Refusal(400, thrown.message) : thrown
    } finally {
      sending -= 1
    }
  }

  async function readSetup(access: Access): Promise<Setup> {
    const address = options.address?.()
    const named = parts.map(async ({ name, kind, queue, history: kept }) => {
      const [hasQueue, hasHistory] = await Promise.all([queues.has(queue), queues.has(kept)])
      return { name, kind, hasQueue, hasHistory }
    })
    return {
      version: manifest.version,
      access,
      parts: await Promise.all(named),
      ...(options.command !== undefined && { command: options.command }),
      ...(address !== undefined && { address }),
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

  async function partWithHistory(name: unknown): Promise<PartWithHistory> {
    const part = partOf(name)
    if (await queues.has(part.history)) return part as PartWithHistory
    const advice = 'Give the inbox of the receiver `history: { maxAgeMs }`.'
    throw new Refusal(404, `The part must keep a history. Got one without. ${advice}`)
  }

  async function respond(request: EndpointRequest): Promise<EndpointAnswer> {
    const { path, method, headers, query } = request
    if (path === '/') {
      const folder = folderOf(request)
      if (folder !== undefined) return redirect(folder)
    }
    const access = await guard.check(request)
    if (path.startsWith('/api/')) requireSameOrigin(headers, method)
    const [get, post] = [gets.get(path), posts.get(path)]
    const allow = post === undefined ? 'GET, HEAD' : 'POST'
    if (!allow.split(', ').includes(method)) {
      throw new Refusal(405, `The method must be ${allow}. Got another one. Use the page.`, { allow })
    }
    if (get !== undefined) return get(request, new URLSearchParams(query), access)
    if (access !== 'write') {
      throw new Refusal(403, "Changes need the access 'write'. Got 'read'. Return 'write' from `authorize`.")
    }
    requireOwnHeader(headers)
    const body = await within(Promise.resolve(readJson(request, BODY_LIMIT)), BODY_MS, background)
    if (body !== TIMED_OUT) return json(await post?.(parseObject(body.bytes), request))
    const text = `The body must arrive within ${BODY_MS} ms. Got an incomplete one. Send the request again.`
    throw new HooklineError('body_timeout', text)
  }

  async function exchange(request: EndpointRequest): Promise<EndpointAnswer> {
    try {
      if (!isClosed) return await respond(request)
      throw new Refusal(503, 'The inspector must be open. Got a request after close(). Create a new inspector.')
    } catch (thrown) {
      const known = refused(thrown, request)
      if (known !== undefined) return known
      report(thrown)
      const text = 'The inspector failed. Got an unexpected error. Look at the log of the app.'
      return refused(new Refusal(500, text), request) as EndpointAnswer
    }
  }

  const routes = [...gets.keys(), ...posts.keys()]
  return {
    routes,
    handle: (request) => (routes.includes(request.path) ? exchange(request) : undefined),
    url: guard.url,
    async close() {
      isClosed = true
      stopLooking()
      queues.close()
      history.close()
      faults?.close()
      time?.close()
      streams.close()
    },
  }
}

/** Where the page is when its URL has no slash at its end, to which its links are relative; undefined with one. */
function folderOf({ originalPath, query }: EndpointRequest): string | undefined {
  if (originalPath === undefined || originalPath.endsWith('/')) return undefined
  const last = originalPath.slice(originalPath.lastIndexOf('/') + 1)
  return `./${last}/${query === '' ? '' : `?${query}`}`
}

/** @throws Refusal for anything but an id. */
function readId(query: URLSearchParams): number {
  const id = query.get('id') ?? ''
  if (/^\d{1,15}$/.test(id)) return Number(id)
  throw new Refusal(400, '`id` must be the id of a message. Got something else. Open the message from the list.')
}

function readAfter(query: URLSearchParams): string | undefined {
  const after = query.get('after') ?? undefined
  if (after === undefined || /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(after)) return after
  throw new Refusal(400, '`after` must be the id of a dead letter. Got something else. Pass `next` of the page before.')
}

/** @throws Refusal for what is not kept. */
function kept<Found>(found: Found | undefined): Found {
  if (found !== undefined) return found
  const text = 'The message must be kept. Got the id of one that is not, or not any more. Choose another one.'
  throw new Refusal(404, text)
}
