/** The endpoint of an inspector: checks and routes each request. Its journal and parts may come from any source. */

import type { Clock, Message } from 'hookline'
import type { Sender } from 'hookline/sender'
import { inBackground, TIMED_OUT, withTimeout } from '../../../../src/internals.ts'
import { isObject, type Json, tryParse } from '../../../json.ts'
import type { Inspector } from '../api.ts'
import type { EventCounts } from '../event-counts.ts'
import type { Journal, Refused } from '../journal.ts'
import { attemptLine } from '../redact.ts'
import type { SeriesRecorder } from '../series.ts'
import type { Access, Changed, Explanation, PartEvents, Sent, Setup } from '../wire.ts'
import { createGuard, type GuardOptions, requireOwnHeader, requireSameOrigin } from './access.ts'
import { createAnswer, json, pageFiles, Refusal, refused, refuseUnless, requireBetween } from './answers.ts'
import { createLetters, type QueuedPart } from './dead-letters.ts'
import { createHistory, type PartWithHistory } from './history.ts'
import type { PageAnswer, PageRequest } from './listener.ts'
import { createSampler, type WatchedPart } from './queues.ts'
import { createStreams } from './stream.ts'

export interface InspectorEndpoint extends Pick<Inspector, 'url' | 'close'> {
  readonly routes: readonly string[]
  /** Answers a request. Returns undefined for a path outside `routes`. Never rejects. */
  handle(request: PageRequest): Promise<PageAnswer> | undefined
}

/** The data that the endpoint shows, and the actions that it offers. */
export interface EndpointOptions extends GuardOptions {
  readonly journal: Journal
  readonly series: SeriesRecorder
  /** The event counts of each receiver. Default: none. */
  readonly events?: readonly Pick<EventCounts, 'snapshot'>[]
  readonly parts: readonly WatchedPart[]
  /** The limits on kept messages. */
  readonly keep: Setup['keep']
  /** The clock of the parts. */
  readonly clock: Clock
  /** The senders, keyed by name. Default: none, so nothing can be sent again. */
  readonly senders?: ReadonlyMap<string, Sender>
  /** Explains why a signature was refused. Default: no explanations. */
  readonly explain?: (refused: Refused) => Promise<string>
  /** The command that serves the page; undefined when an app serves it. */
  readonly command?: Setup['command']
  /** Returns the address that receives requests; undefined until it is known. */
  readonly address?: () => string | undefined
}

/** The maximum size of a body, in bytes. */
const BODY_LIMIT = 1_000_000
/** The time that a body may take to arrive, in milliseconds. */
const BODY_MS = 10_000
const MAX_MINUTES = 240
const MAX_SENDING = 4

/** Creates the endpoint, which reads nothing from the parts before the first request or message. */
export function createEndpoint(options: EndpointOptions): InspectorEndpoint {
  const { journal, series, events = [], parts, clock, machine, senders = new Map(), log } = options
  const background = inBackground(machine)
  const guard = createGuard(options)
  const letters = createLetters(journal, clock, machine)
  const wake = (): void => streams.wake()
  const history = createHistory(journal, wake, report)
  const isOpen = (): boolean => streams.isOpen
  const queues = createSampler({ parts, series, isOpen, onSample: wake, report, clock: background })
  const streams = createStreams(journal, [queues, history], background)
  const stopLooking = journal.onChange(queues.look) // The plots start when the first message arrives, even if no page is open.
  let sending = 0
  let isClosed = false

  function report(thrown: unknown): void {
    const text = 'The inspector failed unexpectedly. Report this error with its stack.'
    log.write({ level: 'error', code: 'inspector_failed', text, thrown })
  }

  function isAllowed(request: PageRequest): Promise<boolean> {
    return guard.check(request).then(
      () => true,
      () => false,
    )
  }

  type Get = (request: PageRequest, query: URLSearchParams, access: Access) => PageAnswer | Promise<PageAnswer>
  const gets = new Map<string, Get>(
    Object.entries({
      '/': () => createAnswer(200, 'text/html; charset=utf-8', pageFiles.html),
      '/page.js': () => createAnswer(200, 'text/javascript; charset=utf-8', pageFiles.script),
      '/page.css': () => createAnswer(200, 'text/css; charset=utf-8', pageFiles.style),
      '/api/setup': async (_request, _query, access) => json(await readSetup(access)),
      '/api/stream': (request) => {
        const stream = streams.openStream(request, guard.isAskedAgain ? () => isAllowed(request) : undefined)
        queues.look()
        return stream
      },
      '/api/message': (_request, query) => json(known(journal.detail(readId(query)))),
      '/api/explanation': async (_request, query) => {
        const refused = known(options.explain && journal.refused(readId(query)))
        return json({ message: (await options.explain?.(refused)) ?? '' } satisfies Explanation)
      },
      '/api/series': (_request, query) => {
        const minutes = requireBetween('minutes', Number(query.get('minutes')), 1, MAX_MINUTES)
        return json(series.readPart(partOf(query.get('part')).name, minutes))
      },
      '/api/events': () => json(events.map((counts) => counts.snapshot()) satisfies PartEvents[]),
      '/api/dead-letters': async (_request, query) => {
        const part = await queuedPartOf(query.get('part'))
        return json(await letters.list(part, query.get('group') ?? undefined, readAfter(query)))
      },
      '/api/history': async (request, query) => {
        const part = await partWithHistory(query.get('part'))
        return createAnswer(200, 'application/x-ndjson', history.list(part, query, request))
      },
    } satisfies Record<string, Get>),
  )

  type Post = (body: Json, request: PageRequest) => unknown
  const posts = new Map<string, Post>(
    Object.entries({
      '/api/redrive': (body, request) => change('redrive', body, request),
      '/api/drop': (body, request) => change('drop', body, request),
      '/api/replay': async (body, request) => history.replay(await partWithHistory(body.part), body, request),
      '/api/stop-replay': history.stop,
      '/api/send-again': sendAgain,
    } satisfies Record<string, Post>),
  )

  async function change(what: 'redrive' | 'drop', body: Json, { signal }: PageRequest): Promise<Changed> {
    const changed = await letters.change(what, await queuedPartOf(body.part), body, signal)
    queues.look()
    return changed
  }

  /** Sends a kept message with a sender of the app, only to the URLs of that sender. */
  async function sendAgain({ sender: name, id }: Json): Promise<Sent> {
    const message = known(journal.messageOf(requireBetween('id', id, 1, Number.MAX_SAFE_INTEGER)))
    const sender = known(senders.get(name as string), 'The inspector has no sender with this name')
    const text = `The inspector is already sending ${MAX_SENDING} messages. Wait until one is sent, then try again.`
    refuseUnless(sending < MAX_SENDING, 429, text, { 'retry-after': '1' })
    sending += 1
    try {
      const { ok, attempts } = await sender.send(message as Message)
      return { ok, attempts: attempts.map(attemptLine) }
    } catch (thrown) {
      throw thrown instanceof TypeError ? new Refusal(400, thrown.message) : thrown // A TypeError names an invalid field of the message.
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
      access,
      now: clock.now(),
      parts: await Promise.all(named),
      ...(options.command !== undefined && { command: options.command }),
      ...(address !== undefined && { address }),
      senders: [...senders.keys()],
      keep: options.keep,
    }
  }

  function partOf(name: unknown): WatchedPart {
    const part = parts.find((each) => each.name === name)
    return known(part, 'The inspector watches no part with this name')
  }

  async function queuedPartOf(name: unknown): Promise<QueuedPart> {
    const part = partOf(name)
    const advice = 'Choose a receiver with an inbox, or a destination.'
    refuseUnless(await queues.has(part.queue), 404, `The part must have a queue. ${advice}`)
    return part as QueuedPart
  }

  async function partWithHistory(name: unknown): Promise<PartWithHistory> {
    const part = partOf(name)
    const advice = 'Add `history: { maxAgeMs }` to the `inbox` of the receiver.'
    refuseUnless(await queues.has(part.history), 404, `The part must keep a history. ${advice}`)
    return part as PartWithHistory
  }

  async function respond(request: PageRequest): Promise<PageAnswer> {
    const { path, method, headers, query } = request
    if (path === '/' && !request.originalPath.endsWith('/')) return redirect(request)
    const access = await guard.check(request)
    if (path.startsWith('/api/')) requireSameOrigin(headers, method)
    const [get, post] = [gets.get(path), posts.get(path)]
    const allow = post === undefined ? 'GET, HEAD' : 'POST'
    const text = `This path accepts only ${allow.replace(', ', ' and ')} requests.`
    refuseUnless(allow.split(', ').includes(method), 405, text, { allow })
    if (get !== undefined) return get(request, new URLSearchParams(query), access)
    const advice = "Return 'write' from `authorize`."
    refuseUnless(access === 'write', 403, `Changes need 'write' access. Got 'read'. ${advice}`)
    requireOwnHeader(headers)
    return json(await post?.(await readObject(request), request))
  }

  async function readObject(request: PageRequest): Promise<Json> {
    const isJson = /^application\/json\s*(;|$)/i.test(String(request.headers['content-type']))
    refuseUnless(isJson, 415, 'The content type must be application/json. Set the header Content-Type.')
    const body = await withTimeout(Promise.resolve(request.readBody(BODY_LIMIT)), BODY_MS, background)
    const text = `The body must arrive within ${BODY_MS} ms. Send the request again.`
    refuseUnless(body !== TIMED_OUT, 503, text, { connection: 'close' })
    const given = tryParse(body.bytes)
    refuseUnless(isObject(given), 400, 'The body must be a JSON object. Correct the body, then send the request again.')
    return given
  }

  async function exchange(request: PageRequest): Promise<PageAnswer> {
    try {
      const text = 'The inspector is closed. Create a new inspector.'
      refuseUnless(!isClosed, 503, text)
      return await respond(request)
    } catch (thrown) {
      const expected = refused(thrown, request)
      if (expected !== undefined) return expected
      report(thrown)
      const text = 'The inspector failed unexpectedly. See the log of the app.'
      return refused(new Refusal(500, text), request) as PageAnswer
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
      streams.close()
    },
  }
}

/** Redirects the browser to the URL with a trailing slash, which the relative links of the page need. */
function redirect({ originalPath, query }: PageRequest): PageAnswer {
  const last = originalPath.slice(originalPath.lastIndexOf('/') + 1)
  return createAnswer(308, 'text/plain', '', { location: `./${last}/${query === '' ? '' : `?${query}`}` })
}

/** @throws Refusal if the query has no valid id. */
function readId(query: URLSearchParams): number {
  const id = query.get('id') ?? ''
  const text = '`id` must be the id of a message. Open the message from the list.'
  refuseUnless(/^\d{1,15}$/.test(id), 400, text)
  return Number(id)
}

function readAfter(query: URLSearchParams): string | undefined {
  const after = query.get('after') ?? undefined
  const isId = after === undefined || /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(after)
  refuseUnless(isId, 400, '`after` must be the id of a dead letter. Pass `next` from the previous page.')
  return after
}

/** @throws Refusal when the value is undefined. */
function known<Found>(found: Found | undefined, rule = 'The message is not kept'): Found {
  refuseUnless(found !== undefined, 404, `${rule}. Reload the page.`)
  return found
}
