/** createCollector(): the collection API, from a request to the queues of the destinations. */

import type { EndpointBody } from '../protocol/body.ts'
import { compose } from '../protocol/compose.ts'
import { createDeadlines } from '../protocol/deadlines.ts'
import type { EndpointAnswer, EndpointRequest } from '../protocol/endpoint.ts'
import { HooklineError } from '../protocol/error.ts'
import { isObject, notJson, parseJson } from '../protocol/json.ts'
import { BATCH_LIMIT } from '../protocol/limits.ts'
import { refuseUnknown, requireText } from '../protocol/options.ts'
import { readJson } from '../protocol/read-json.ts'
import { report } from '../protocol/report.ts'
import { collected, failed, preflight } from './answers.ts'
import type { Collector, QueuedDeletion } from './api.ts'
import { readBatch, readSingle, type SortedCalls } from './batch.ts'
import { readAddress } from './client-address.ts'
import { type CollectorOptions, type ReadySource, readOptions } from './options.ts'
import { ROUTES, type Route } from './routes.ts'
import { submitToAll } from './submit.ts'
import { readWriteKey } from './write-key.ts'

/** Pages post `text/plain`: for that, a browser does not ask first whether it may. */
const MEDIA_TYPES = ['application/json', 'text/plain']

/**
 * Creates a collector: the collection API for the clients of its sources. A request is answered when each accepted call
 * is in the queue of every destination of its source.
 *
 * @throws TypeError that names the option.
 * @example
 * const collector = createCollector({ sources: [{ name: 'shop', writeKey: 'a write key', destinations: [destination] }] })
 * app.use('/analytics', serve(collector))
 */
export function createCollector(options: CollectorOptions): Collector {
  const { sources, ipHeader, deadlineMs, onError, clock } = readOptions(options)
  const byKey = new Map(sources.map((source) => [source.writeKey, source]))
  const byName = new Map(sources.map((source) => [source.name, source]))
  const deadlines = createDeadlines(deadlineMs, clock)

  return {
    routes: [...ROUTES.keys()],

    handle(request) {
      const route = ROUTES.get(request.path)
      return route === undefined ? undefined : exchange(request, route)
    },

    async delete(userId, scope = {}) {
      if (typeof scope !== 'object' || scope === null) throw new TypeError('delete: give it { sources }, or nothing.')
      refuseUnknown(scope, ['sources'])
      const { sources: names = [...byName.keys()] } = scope
      requireText('userId', userId)
      const message = compose('delete', { userId }, clock.now())
      const deletions = findSources(names).map(async ({ name, destinations }): Promise<QueuedDeletion> => {
        const answers = await submitToAll(destinations, [{ message }])
        return { source: name, queued: answers.flat().filter(({ queued }) => queued).length }
      })
      await Promise.allSettled(deletions) // All of them, before the first that failed is told.
      return Promise.all(deletions)
    },
  }

  async function exchange(request: EndpointRequest, route: Route): Promise<EndpointAnswer> {
    if (request.method === 'OPTIONS') return preflight
    try {
      return collected(await collect(request, route))
    } catch (thrown) {
      const error = thrown instanceof HooklineError ? thrown : internal(thrown)
      const { path, headers, remoteAddress } = request
      report(onError, error, { path, headers, remoteAddress })
      return failed(error)
    }
  }

  /** The steps, in the order that decides which error a request with several faults is answered. */
  async function collect(request: EndpointRequest, route: Route): Promise<SortedCalls> {
    const now = clock.now()
    const body = parseJson((await readInTime(request)).bytes)
    if (!isObject(body)) throw notJson('The body is not a JSON object.')
    const source = byKey.get(readWriteKey(request.headers, body))
    if (source === undefined) throw new HooklineError('write_key_unknown', 'No source has this write key.')

    const arrival = { route, source: source.name, now, ip: readAddress(request, ipHeader) }
    const calls = route === 'batch' ? readBatch(body, arrival) : readSingle(body, arrival)
    await submitToAll(source.destinations, calls.accepted)
    return calls
  }

  function readInTime(request: EndpointRequest): Promise<EndpointBody> {
    return new Promise((resolve, reject) => {
      const deadline = deadlines.set(() => {
        reject(new HooklineError('body_timeout', 'The body did not arrive in time.'))
      })
      const read = async (): Promise<EndpointBody> => readJson(request, BATCH_LIMIT, MEDIA_TYPES)
      void read()
        .then(resolve, reject)
        .finally(() => deadlines.clear(deadline))
    })
  }

  function findSources(names: readonly string[]): readonly ReadySource[] {
    if (!Array.isArray(names) || names.length === 0) throw new TypeError('sources: must be a list of names of sources.')
    return [...new Set(names)].map((name) => {
      const source = byName.get(name)
      if (source === undefined) throw new TypeError(`sources: there is none of the name ${JSON.stringify(name)}.`)
      return source
    })
  }
}

function internal(cause: unknown): HooklineError {
  return new HooklineError('internal', 'Something failed inside the endpoint.', { cause })
}
