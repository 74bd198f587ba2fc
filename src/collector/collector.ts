/** createCollector(): the collection API, from a request to the queues of the destinations. */

import type { EndpointBody } from '../http/body.ts'
import type { EndpointRequest, TextAnswer } from '../http/endpoint.ts'
import { readJson } from '../http/read-json.ts'
import { compose } from '../message/compose.ts'
import { HooklineError } from '../message/error.ts'
import { parseObject } from '../message/json.ts'
import { BATCH_LIMIT } from '../message/limits.ts'
import { report } from '../options/callbacks.ts'
import { invalidOption, kindOf, nearest, requireOptions, requireText, show } from '../options/checks.ts'
import { createDeadlines } from '../time/deadlines.ts'
import { collected, failed, preflight } from './answers.ts'
import type { Collector, QueuedDeletion } from './api.ts'
import { readBatch, readSingle, type SortedCalls } from './batch.ts'
import { type CollectorOptions, type ReadySource, readOptions } from './options.ts'
import { readAddress, readWriteKey } from './request.ts'
import { ROUTES, type Route } from './routes.ts'
import { submitToAll } from './submit.ts'

/** Pages post `text/plain`, because a browser sends it without a preflight request. */
const MEDIA_TYPES = ['application/json', 'text/plain']

/**
 * Creates a collector: the collection API for the clients of its sources. It answers a request when every destination of
 * the source has queued each accepted call.
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
      requireOptions('delete', scope, ['sources'])
      const { sources: names = [...byName.keys()] } = scope
      requireText('userId', userId, 'user-1')
      const message = compose('delete', { userId }, clock.now())
      const deletions = findSources(names).map(async ({ name, destinations }): Promise<QueuedDeletion> => {
        const answers = await submitToAll(destinations, [{ message }])
        return { source: name, queued: answers.flat().filter(({ queued }) => queued).length }
      })
      await Promise.allSettled(deletions) // Wait for all of them before the first failure is thrown.
      return Promise.all(deletions)
    },
  }

  async function exchange(request: EndpointRequest, route: Route): Promise<TextAnswer> {
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
    const body = parseObject((await readInTime(request)).bytes)
    const source = byKey.get(readWriteKey(request.headers, body))
    if (source === undefined) {
      throw new HooklineError(
        'write_key_unknown',
        'The write key must belong to a source. Got an unknown one. Check the write key of the client.',
      )
    }

    const arrival = { route, source: source.name, now, ip: readAddress(request, ipHeader) }
    const calls = route === 'batch' ? readBatch(body, arrival) : readSingle(body, arrival)
    await submitToAll(source.destinations, calls.accepted)
    return calls
  }

  function readInTime(request: EndpointRequest): Promise<EndpointBody> {
    return new Promise((resolve, reject) => {
      const deadline = deadlines.set(() => {
        const message = `The body must arrive within ${deadlineMs} ms. Got an incomplete one. Send the request again.`
        reject(new HooklineError('body_timeout', message))
      })
      const read = async (): Promise<EndpointBody> => readJson(request, BATCH_LIMIT, MEDIA_TYPES)
      void read()
        .then(resolve, reject)
        .finally(() => deadlines.clear(deadline))
    })
  }

  function findSources(names: readonly string[]): readonly ReadySource[] {
    if (!Array.isArray(names) || names.length === 0) {
      throw invalidOption('sources', 'must be a non-empty list', kindOf(names), 'Pass names of sources.')
    }
    return [...new Set(names)].map((name) => {
      const source = byName.get(name)
      if (source === undefined) throw unknownSource(name, [...byName.keys()])
      return source
    })
  }
}

function internal(cause: unknown): HooklineError {
  return new HooklineError(
    'internal',
    'The collector failed. Got an unexpected error. Look at the `cause` of this error in `onError`.',
    { cause },
  )
}

function unknownSource(name: unknown, names: readonly string[]): TypeError {
  const near = typeof name === 'string' ? nearest(name, names) : undefined
  const valid = names.map(show).join(', ')
  if (near === undefined) return new TypeError(`Unknown source. Got ${show(name)}. Valid sources: ${valid}.`)
  return new TypeError(`Unknown source. Got ${show(name)}. Did you mean ${show(near)}? Valid sources: ${valid}.`)
}
