/** createCollector(): the collection API, from a request to the queues of the destinations. */

import type { EndpointAnswer, EndpointRequest } from '../host/endpoint.ts'
import { requireOptions, warnOfSecret } from '../kit/checks.ts'
import { createDeadlines } from '../kit/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'
import { parseObject } from '../protocol/parse.ts'
import { readBatch, readSingle, type SortedCalls } from './collected-batch.ts'
import { readCalls } from './collected-body.ts'
import { collected, failed, preflight } from './collector-answers.ts'
import { type CollectorOptions, readChanges, readOptions } from './collector-options.ts'
import { readAddress, readUserName, readWriteKey } from './collector-request.ts'
import type { Collector } from './collector-types.ts'
import { ROUTES, type Route } from './routes.ts'
import type { ReadySource } from './sources.ts'
import { requestDeletion, submitToAll } from './submit.ts'

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
  const { ipHeader, deadlineMs, observers, clock, ...settings } = readOptions(options)
  let { sources } = settings
  for (const [index, { writeKey }] of options.sources.entries()) warnOfSecret(`sources[${index}].writeKey`, writeKey)
  const deadlines = createDeadlines(deadlineMs, clock)

  return {
    routes: [...ROUTES.keys()],

    get background() {
      const isDelivering = sources.named().some(({ destinations }) => destinations.some(({ enabled }) => enabled))
      return isDelivering ? 'a collector whose destinations deliver afterwards' : undefined
    },

    handle(request) {
      const route = ROUTES.get(request.path)
      return route === undefined ? undefined : exchange(request, route)
    },

    observe: (observer) => observers.add(observer),

    update(changes) {
      sources = readChanges(changes)
    },

    async delete(userId, scope = {}) {
      requireOptions('delete', scope, ['sources'])
      return requestDeletion(clock, userId, sources.named(scope.sources))
    },
  }

  async function exchange(request: EndpointRequest, route: Route): Promise<EndpointAnswer> {
    if (request.method === 'OPTIONS') return preflight
    const { path, remoteAddress } = request
    const { authorization: _writeKey, ...headers } = request.headers
    const seen: Seen = { at: clock.now(), bytes: NO_BYTES, source: undefined }
    const startedAt = clock.monotonic()
    const result = await collect(request, route, seen).catch(toError)
    const [error, calls] = result instanceof HooklineError ? [result, NO_CALLS] : [undefined, result]
    const answer = error === undefined ? collected(calls) : failed(error)
    observers.publish('answered', {
      request: { path, headers, remoteAddress },
      bytes: seen.bytes,
      source: seen.source,
      status: answer.status,
      error,
      accepted: calls.accepted.length,
      refused: calls.refusedCount,
      messageIds: calls.accepted.map(({ message }) => message.messageId as string), // Each got one.
      at: seen.at,
      durationMs: clock.monotonic() - startedAt,
    })
    return answer
  }

  /** The steps, in the order that decides which error a request with several faults is answered. */
  async function collect(request: EndpointRequest, route: Route, seen: Seen): Promise<SortedCalls> {
    const { at: now } = seen
    const { withKey } = sources // An update while the body arrives is for later requests.
    const userName = readUserName(request.headers)
    // A wrong key in the header is refused before its body costs anything.
    const authenticated = userName === '' ? undefined : requireSource(withKey(userName))
    seen.source = authenticated?.name
    seen.bytes = await readInTime(request)
    const source = authenticated ?? requireSource(withKey(readWriteKey(seen.bytes)))
    seen.source = source.name
    const body = parseObject(seen.bytes)

    const ip = isOfUser(source, request) ? readAddress(request, ipHeader) : undefined
    const arrival = { route, source: source.name, now, receivedAt: new Date(now).toISOString(), ip }
    const calls = route === 'batch' ? readBatch(body, arrival) : readSingle(body, arrival)
    await submitToAll(source, calls.accepted, clock)
    return calls
  }

  function readInTime(request: EndpointRequest): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const deadline = deadlines.set(() => {
        const message = `The body must arrive within ${deadlineMs} ms. Got an incomplete one. Send the request again.`
        reject(new HooklineError('body_timeout', message))
      })
      void readCalls(request)
        .then(resolve, reject)
        .finally(() => deadlines.clear(deadline))
    })
  }
}

const NO_BYTES = new Uint8Array()
const NO_CALLS: SortedCalls = { accepted: [], refused: [], refusedCount: 0 }

/** What is observed of a request: filled in step by step. */
interface Seen {
  readonly at: number
  bytes: Uint8Array
  source: string | undefined
}

function requireSource(source: ReadySource | undefined): ReadySource {
  if (source !== undefined) return source
  throw new HooklineError(
    'write_key_unknown',
    'The write key must belong to a source. Got an unknown one. Check the write key of the client.',
  )
}

/** Whether the connection is the user's own: that of a server would give all its users one address. */
function isOfUser({ kind }: ReadySource, { headers }: EndpointRequest): boolean {
  return kind === undefined ? headers.origin !== undefined : kind !== 'server'
}

function toError(cause: unknown): HooklineError {
  if (cause instanceof HooklineError) return cause
  return new HooklineError(
    'internal',
    'The collector failed. Got an unexpected error. Look at the `cause` of this error in `onError`.',
    { cause },
  )
}
