/** createCollector(): the collection API, from a request to the queues of the destinations. */

import type { EndpointAnswer, EndpointRequest } from '../host/endpoint.ts'
import { requireOptions, warnIfMisread } from '../kit/checks.ts'
import { createDeadlines, type Deadlines } from '../kit/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import { parseObject } from '../protocol/parse.ts'
import { readBatch, readSingle, type SortedCalls } from './collected-batch.ts'
import { readCalls } from './collected-body.ts'
import { collected, failed, preflight } from './collector-answers.ts'
import { type CollectorOptions, type CollectorSettings, readChanges, readOptions } from './collector-options.ts'
import { readAddress, readUserName, readWriteKey } from './collector-request.ts'
import type { Collector } from './collector-types.ts'
import { ROUTES, type Route } from './routes.ts'
import type { ReadySource, Sources } from './sources.ts'
import { requestDeletion, submitToAll } from './submit.ts'

/**
 * Creates a collector: the collection API for the clients of its sources. It answers a request once every destination of
 * the source has queued or skipped each accepted call. A destination skips a call that is not meant for it, that is older than
 * `historicalAfterMs`, or that arrives while the destination is disabled and `whenDisabled` is `drop`.
 *
 * @throws TypeError that names the invalid option.
 * @example
 * const collector = createCollector({ sources: [{ name: 'shop', writeKey: 'a write key', destinations: [destination] }] })
 * app.use('/analytics', serve(collector))
 */
export function createCollector(options: CollectorOptions): Collector {
  const settings = readOptions(options)
  for (const [index, { writeKey }] of options.sources.entries()) warnIfMisread(`sources[${index}].writeKey`, writeKey)
  const requests = new RequestCollector(settings)

  return {
    routes: [...ROUTES.keys()],

    get background() {
      const destinations = requests.sources.named().flatMap((source) => source.destinations)
      const isDelivering = destinations.some(({ enabled }) => enabled)
      return isDelivering ? 'a collector whose destinations deliver afterwards' : undefined
    },

    handle(request) {
      const route = ROUTES.get(request.path)
      return route === undefined ? undefined : requests.answerRoute(request, route)
    },

    observe: (observer) => settings.observers.add(observer),

    update(changes) {
      requests.sources = readChanges(changes)
    },

    async delete(userId, scope = {}) {
      requireOptions('delete', scope, ['sources'])
      return requestDeletion(settings.clock, userId, requests.sources.named(scope.sources))
    },
  }
}

/** Facts about a request, each set by the step that finds it. Observers get them even if a later step fails. */
interface Progress {
  readonly at: number
  bytes: Uint8Array
  source: string | undefined
}

class RequestCollector {
  sources: Sources
  readonly #settings: CollectorSettings
  readonly #deadlines: Deadlines

  constructor(settings: CollectorSettings) {
    this.sources = settings.sources
    this.#settings = settings
    this.#deadlines = createDeadlines(settings.deadlineMs, settings.clock)
  }

  async answerRoute(request: EndpointRequest, route: Route): Promise<EndpointAnswer> {
    if (request.method === 'OPTIONS') return preflight
    const { clock, observers } = this.#settings
    const { path, remoteAddress } = request
    const { authorization: _writeKey, ...headers } = request.headers
    const progress: Progress = { at: clock.now(), bytes: NO_BYTES, source: undefined }
    const startedAt = clock.monotonic()
    const result = await this.#collect(request, route, progress).catch(toCollectorError)
    const [error, calls] = result instanceof HooklineError ? [result, NO_CALLS] : [undefined, result]
    const answer = error === undefined ? collected(calls) : failed(error)
    observers.publish('answered', {
      request: { path, headers, remoteAddress },
      bytes: progress.bytes,
      source: progress.source,
      status: answer.status,
      error,
      accepted: calls.accepted.length,
      refused: calls.refusedCount,
      messageIds: calls.accepted.flatMap(({ message }) => message.messageId ?? []), // `compose` gave each message an id.
      at: progress.at,
      durationMs: clock.monotonic() - startedAt,
    })
    return answer
  }

  /** Collects the calls of a request. The order of the steps decides which error answers a request with several faults. */
  async #collect(request: EndpointRequest, route: Route, progress: Progress): Promise<SortedCalls> {
    const { ipHeader, clock } = this.#settings
    const { at: now } = progress
    const { withKey } = this.sources // The sources are read now, so that an update while the body arrives applies only to later requests.
    const userName = readUserName(request.headers)
    // A wrong key in the header is refused before the body is read.
    const authenticated = userName === '' ? undefined : requireSource(withKey(userName))
    progress.source = authenticated?.name
    progress.bytes = await this.#readInTime(request)
    const source = authenticated ?? requireSource(withKey(readWriteKey(progress.bytes)))
    progress.source = source.name
    const body = parseObject(progress.bytes)

    const ip = isConnectionOfUser(source, request) ? readAddress(request, ipHeader) : undefined
    const arrival = { route, source: source.name, now, receivedAt: new Date(now).toISOString(), ip }
    const calls = route === 'batch' ? readBatch(body, arrival) : readSingle(body, arrival)
    await submitToAll(source, calls.accepted, clock)
    return calls
  }

  #readInTime(request: EndpointRequest): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const deadline = this.#deadlines.set(() => {
        const message = `The body did not arrive within ${this.#settings.deadlineMs} ms. Send the request again.`
        reject(new HooklineError('body_timeout', message))
      })
      void readCalls(request)
        .then(resolve, reject)
        .finally(() => this.#deadlines.clear(deadline))
    })
  }
}

const NO_BYTES = new Uint8Array()
const NO_CALLS: SortedCalls = { accepted: [], refused: [], refusedCount: 0 }

function requireSource(source: ReadySource | undefined): ReadySource {
  if (source !== undefined) return source
  throw new HooklineError('write_key_unknown', 'No source has this write key. Check the write key of the client.')
}

/** Returns whether the address of the connection is the user's. A server has one address for all its users. */
function isConnectionOfUser({ kind }: ReadySource, { headers }: EndpointRequest): boolean {
  return kind === undefined ? headers.origin !== undefined : kind !== 'server'
}

function toCollectorError(thrown: unknown): HooklineError {
  if (thrown instanceof HooklineError) return thrown
  const message = 'The collector failed. See the `cause` of this error in `onError`.'
  return new HooklineError('internal', message, { cause: thrown })
}
