/** The transport of a sender and a destination: signs bytes and posts them over its connections. */

import { createConnector } from '../kit/connector.ts'
import { createDeadlines } from '../kit/deadlines.ts'
import type { DispatcherLike } from '../kit/post.ts'
import { Client } from '../kit/undici.ts'
import { RESPONSE_LIMIT } from '../protocol/limits.ts'
import { type AttemptRequest, type Connection, OriginLimiter, type PostedJob } from './origin-limiter.ts'
import { createGuardedLookup, guardConnector } from './private-address.ts'
import type { SenderSettings } from './sender-options.ts'
import type { Attempt } from './sender-types.ts'
import type { Target } from './webhooks.ts'

export type Transport = ReturnType<typeof createTransport>

export function createTransport(settings: SenderSettings) {
  const { targets, key, userAgent, timeoutMs, clock, dispatcher, connections } = settings
  const timing = { clock, deadlines: createDeadlines(timeoutMs, clock) }
  const limiters = new Map<string, OriginLimiter>()
  for (const origin of new Set(targets.map((target) => target.origin))) {
    const openConnection = dispatcher === undefined ? createOpener(origin, settings) : () => withoutDestroy(dispatcher)
    limiters.set(origin, new OriginLimiter(openConnection, connections, timing))
  }
  const common = ['Content-Type', 'application/json', 'User-Agent', userAgent]
  const unsigned = new Map(targets.map((target) => [target, [...common, ...Object.entries(target.headers).flat()]]))

  const sign = (bytes: Uint8Array): string | undefined => key?.sign(bytes)
  const limiterOf = ({ origin }: Target): OriginLimiter => limiters.get(origin) as OriginLimiter

  /** Returns the headers of a request as alternating names and values. */
  function headersFor(target: Target, signature: string | undefined): readonly string[] {
    const headers = unsigned.get(target) as readonly string[]
    return signature === undefined ? headers : [...headers, 'X-Signature', signature]
  }

  return {
    headersFor,
    sign,
    /**
     * Signs the bytes once and posts them to all given targets at once. Calls `done` after the last response, possibly from within undici.
     */
    postRound(
      bytes: Uint8Array,
      chosen: readonly Target[],
      done: (attempts: readonly Attempt[]) => void,
      job?: PostedJob,
    ): void {
      const signature = sign(bytes)
      const attempts: Attempt[] = []
      let pending = chosen.length
      for (const [index, target] of chosen.entries()) {
        const request = { headers: headersFor(target, signature), body: bytes, job }
        limiterOf(target).post(target, request, (attempt) => {
          attempts[index] = attempt
          pending -= 1
          if (pending === 0) done(attempts)
        })
      }
    },
    post: (target: Target, request: AttemptRequest): Promise<Attempt> =>
      new Promise((resolve) => limiterOf(target).post(target, request, resolve)),
    /** Ends the attempts under way with the error `closed`. */
    abort(): void {
      for (const limiter of limiters.values()) limiter.abort()
    },
    /** Waits for the attempts under way, then closes the connections. */
    async close(): Promise<void> {
      const all = [...limiters.values()]
      await Promise.all(all.map((limiter) => limiter.drain()))
      await Promise.all(all.map((limiter) => limiter.destroy()))
    },
  }
}

/** Returns a connection on the dispatcher of the application. It has no `destroy`, because the application closes the dispatcher. */
function withoutDestroy(dispatcher: DispatcherLike): Connection {
  return { dispatch: (options, handler) => dispatcher.dispatch(options, handler) }
}

/**
 * Returns a function that opens a single connection. Posting is a hot path: an undici pool would cost a turn of the event loop for each
 * request, and would search all its connections for an idle connection.
 */
function createOpener(origin: string, settings: SenderSettings): () => Connection {
  const { ca, allowPrivateAddresses, timeoutMs, addressTimeoutMs } = settings
  const lookup = allowPrivateAddresses ? undefined : createGuardedLookup()
  const plain = createConnector({ ca, timeoutMs, addressTimeoutMs, responseLimit: RESPONSE_LIMIT, lookup })
  const connect = allowPrivateAddresses ? plain : guardConnector(plain)
  return () => new Client(origin, { connect, allowH2: false })
}
