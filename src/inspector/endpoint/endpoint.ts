/** The endpoint of an inspector: its routes, and the order in which a request is checked. It needs a journal, and parts. */

import type { EndpointAnswer, EndpointRequest } from '../../http/endpoint.ts'
import { readJson } from '../../http/read-json.ts'
import { type Json, parseObject } from '../../message/json.ts'
import type { Log } from '../../options/log.ts'
import type { Sender } from '../../sender/api.ts'
import { TAMPERINGS } from '../../sender/tamper.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import type { Authorize, Inspector } from '../api.ts'
import type { Journal, Refused } from '../journal.ts'
import { pageFiles } from '../page-files.ts'
import type { SeriesRecorder } from '../series.ts'
import type { Access, Setup } from '../wire.ts'
import { createGuard } from './access.ts'
import { answer, json, Refusal, redirect, refused } from './answers.ts'
import { requireOwnHeader, requireSameOrigin } from './local.ts'
import type { WatchedPart } from './parts.ts'
import { createStreams } from './stream.ts'

/** What the endpoint shows, and what it can do. */
export interface EndpointParts {
  readonly journal: Journal
  readonly series: SeriesRecorder
  readonly parts: readonly WatchedPart[]
  /** By name. Default: nothing can be sent. */
  readonly senders?: ReadonlyMap<string, Sender>
  readonly authorize?: Authorize | undefined
  /** How many messages are kept. */
  readonly keep: Setup['keep']
  /** Says why a signature was refused. Default: it cannot. */
  readonly explain?: (refused: Refused) => Promise<string>
  readonly log: Log
  /** The clock of the parts. */
  readonly clock: Clock
  /** The clock of the machine. Default: the system's. */
  readonly machine?: Clock
}

/** An inspector of a journal that is filled elsewhere. */
export type InspectorEndpoint = Omit<Inspector, 'forget'>

/** The most bytes of a body. */
const BODY_LIMIT = 1_000_000
const VERSION = '0.3.0'

type Answer = (request: EndpointRequest, access: Access) => EndpointAnswer | Promise<EndpointAnswer>
type Act = (body: Json, request: EndpointRequest) => unknown

/** Creates the endpoint. It answers requests, and reads nothing of the parts before the first. */
export function createEndpoint(given: EndpointParts): InspectorEndpoint {
  const { journal, parts, senders = new Map(), log, machine = systemClock } = given
  const guard = createGuard(given.authorize, log)
  const streams = createStreams(journal, [], machine)
  let isClosed = false

  const GET: Readonly<Record<string, Answer>> = {
    '/': () => answer(200, 'text/html; charset=utf-8', pageFiles.html),
    '/page.js': () => answer(200, 'text/javascript; charset=utf-8', pageFiles.script),
    '/page.css': () => answer(200, 'text/css; charset=utf-8', pageFiles.style),
    '/api/setup': async (_request, access) => json(await readSetup(access)),
    '/api/stream': (request) => streams.open(request, guard.isAskedAgain ? () => isAllowed(request) : undefined),
  }
  const POST: Readonly<Record<string, Act>> = {}

  async function readSetup(access: Access): Promise<Setup> {
    return {
      version: VERSION,
      access,
      parts: await Promise.all(
        parts.map(async ({ name, kind, queue }) => ({ name, kind, hasQueue: (await queue?.exists()) ?? false })),
      ),
      senders: [...senders.keys()],
      tamperings: TAMPERINGS,
      development: false,
      keep: given.keep,
    }
  }

  function isAllowed(request: EndpointRequest): Promise<boolean> {
    return guard.check(request).then(
      () => true,
      () => false,
    )
  }

  async function exchange(request: EndpointRequest): Promise<EndpointAnswer> {
    try {
      if (isClosed) {
        throw new Refusal(503, 'The inspector must be open. Got a request after close(). Create a new inspector.')
      }
      return await respond(request)
    } catch (thrown) {
      const known = refused(thrown, request)
      if (known !== undefined) return known
      log.write({ level: 'error', code: 'inspector_failed', text: `The inspector failed at ${request.path}.`, thrown })
      const text = 'The inspector failed. Got an unexpected error. Look at the log of the app.'
      return refused(new Refusal(500, text), request) as EndpointAnswer
    }
  }

  /** The steps, in the order that decides which fault of a request with several is answered. */
  async function respond(request: EndpointRequest): Promise<EndpointAnswer> {
    const { path, method, headers } = request
    if (path === '/') {
      const folder = folderOf(request)
      if (folder !== undefined) return redirect(308, folder)
      const cookie = method === 'GET' ? guard.cookieFor(request) : undefined
      if (cookie !== undefined) return redirect(302, './', { 'set-cookie': cookie })
    }
    const access = await guard.check(request)
    if (path.startsWith('/api/')) requireSameOrigin(headers, method)
    const [act, get] = [POST[path], GET[path]]
    const allow = act === undefined ? 'GET, HEAD' : 'POST'
    if (!allow.split(', ').includes(method)) {
      throw new Refusal(405, `The method must be ${allow}. Got another one. Use the page.`, { allow })
    }
    if (act === undefined) return (get as Answer)(request, access)
    if (access !== 'write') {
      throw new Refusal(403, "Changes need the access 'write'. Got 'read'. Return 'write' from `authorize`.")
    }
    requireOwnHeader(headers)
    const { bytes } = await readJson(request, BODY_LIMIT)
    return json(await act(parseObject(bytes), request))
  }

  return {
    routes: [...Object.keys(GET), ...Object.keys(POST)],
    handle: (request) =>
      Object.hasOwn(GET, request.path) || Object.hasOwn(POST, request.path) ? exchange(request) : undefined,
    url: guard.url,
    async close() {
      isClosed = true
      streams.close()
    },
  }
}

/** Where the page is when its URL has no slash at its end, to which its links are relative; undefined with one. */
function folderOf({
  originalPath,
  query,
}: EndpointRequest & { readonly originalPath?: string | undefined }): string | undefined {
  if (originalPath === undefined || originalPath.endsWith('/')) return undefined
  const last = originalPath.slice(originalPath.lastIndexOf('/') + 1)
  return `./${last}/${query === '' ? '' : `?${query}`}`
}
