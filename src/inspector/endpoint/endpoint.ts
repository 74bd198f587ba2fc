/** The endpoint of an inspector: the order in which a request is checked. It needs a journal and parts, whatever fills them. */

import type { EndpointAnswer, EndpointRequest } from '../../http/endpoint.ts'
import { readJson } from '../../http/read-json.ts'
import { HooklineError } from '../../message/error.ts'
import { parseObject } from '../../message/json.ts'
import { inBackground } from '../../time/clock.ts'
import { TIMED_OUT, within } from '../../time/timeout.ts'
import type { Inspector } from '../api.ts'
import { createGuard, requireOwnHeader, requireSameOrigin } from './access.ts'
import { json, Refusal, redirect, refused } from './answers.ts'
import { createRoutes, type EndpointOptions } from './routes.ts'

/** An inspector of a journal that is filled elsewhere. */
export type InspectorEndpoint = Omit<Inspector, 'forget' | 'withFaults'>

/** The most bytes of a body. */
const BODY_LIMIT = 1_000_000
/** How long a body may take. */
const BODY_MS = 10_000

/** Creates the endpoint. It reads nothing of the parts before the first request. */
export function createEndpoint(options: EndpointOptions): InspectorEndpoint {
  const guard = createGuard(options)
  const routes = createRoutes(options, guard.isAskedAgain ? isAllowed : undefined, report)
  const clock = inBackground(options.machine)
  const paths = [...routes.gets.keys(), ...routes.posts.keys()]
  let isClosed = false

  function report(thrown: unknown): void {
    const text = 'The inspector failed. Got an unexpected error. Report it with its stack.'
    options.log.write({ level: 'error', code: 'inspector_failed', text, thrown })
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
      report(thrown)
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
    const [get, act] = [routes.gets.get(path), routes.posts.get(path)]
    const allow = act === undefined ? 'GET, HEAD' : 'POST'
    if (!allow.split(', ').includes(method)) {
      throw new Refusal(405, `The method must be ${allow}. Got another one. Use the page.`, { allow })
    }
    if (get !== undefined) return get(request, access)
    if (access !== 'write') {
      throw new Refusal(403, "Changes need the access 'write'. Got 'read'. Return 'write' from `authorize`.")
    }
    requireOwnHeader(headers)
    return json(await act?.(parseObject(await readInTime(request)), request))
  }

  async function readInTime(request: EndpointRequest): Promise<Uint8Array> {
    const body = await within(Promise.resolve(readJson(request, BODY_LIMIT)), BODY_MS, clock)
    if (body !== TIMED_OUT) return body.bytes
    const text = `The body must arrive within ${BODY_MS} ms. Got an incomplete one. Send the request again.`
    throw new HooklineError('body_timeout', text)
  }

  return {
    routes: paths,
    handle: (request) => (paths.includes(request.path) ? exchange(request) : undefined),
    url: guard.url,
    async close() {
      isClosed = true
      routes.close()
    },
  }
}

/** Where the page is when its URL has no slash at its end, to which its links are relative; undefined with one. */
function folderOf({ originalPath, query }: EndpointRequest): string | undefined {
  if (originalPath === undefined || originalPath.endsWith('/')) return undefined
  const last = originalPath.slice(originalPath.lastIndexOf('/') + 1)
  return `./${last}/${query === '' ? '' : `?${query}`}`
}
