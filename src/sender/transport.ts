/** The transport of a sender and a destination: signs bytes and posts them over pools of connections. */

import { Pool } from 'undici'
import { createConnector } from '../http/connector.ts'
import { RESPONSE_LIMIT } from '../message/limits.ts'
import { createDeadlines } from '../time/deadlines.ts'
import type { Attempt } from './api.ts'
import type { SenderSettings } from './options.ts'
import { type AttemptRequest, createOriginLimiter, type OriginLimiter } from './origin-limiter.ts'
import { createGuardedLookup, guardConnector } from './private-address.ts'
import type { Target } from './webhooks.ts'

/** Posts bytes to the webhooks. */
export interface Transport {
  /** The headers of a request: names and values in turns. */
  headersFor(target: Target, signature: string | undefined): readonly string[]
  /** The value of `X-Signature`; undefined without a shared secret. */
  sign(bytes: Uint8Array): string | undefined
  /** Signs the bytes once and posts them to all these targets at once. Never rejects. */
  postRound(bytes: Uint8Array, targets: readonly Target[]): Promise<readonly Attempt[]>
  /** Posts one request as given. Never rejects. */
  post(target: Target, request: AttemptRequest): Promise<Attempt>
  /** Ends every attempt under way with the error `closed`. */
  abort(): void
  /** Waits for the attempts under way and closes the connections. */
  close(): Promise<void>
}

/** Creates a transport. Connections open with the first attempts. */
export function createTransport(settings: SenderSettings): Transport {
  const { targets, key, userAgent, timeoutMs, clock, dispatcher, connections } = settings
  const timing = { clock, deadlines: createDeadlines(timeoutMs, clock) }
  const pools: Pool[] = []
  const limiters = new Map<string, OriginLimiter>()
  for (const origin of new Set(targets.map((target) => target.origin))) {
    limiters.set(origin, createOriginLimiter(dispatcher ?? openPool(origin), connections, timing))
  }
  const common = ['Content-Type', 'application/json', 'User-Agent', userAgent]
  const fixed = new Map(targets.map((target) => [target, [...common, ...Object.entries(target.headers).flat()]]))

  function openPool(origin: string): Pool {
    const pool = createPool(origin, settings)
    pools.push(pool)
    return pool
  }

  const transport: Transport = {
    headersFor(target, signature) {
      const headers = fixed.get(target) as readonly string[]
      return signature === undefined ? headers : [...headers, 'X-Signature', signature]
    },
    sign: (bytes) => key?.sign(bytes),
    postRound(bytes, chosen) {
      const signature = transport.sign(bytes)
      const posts = chosen.map((target) =>
        transport.post(target, { headers: transport.headersFor(target, signature), body: bytes }),
      )
      return posts.length === 1 ? (posts[0] as Promise<Attempt>).then((only) => [only]) : Promise.all(posts)
    },
    post: (target, request) => (limiters.get(target.origin) as OriginLimiter).post(target, request),
    abort() {
      for (const limiter of limiters.values()) limiter.abort()
    },
    async close() {
      await Promise.all([...limiters.values()].map((limiter) => limiter.drain()))
      await Promise.all(pools.map((pool) => pool.destroy()))
    },
  }
  return transport
}

function createPool(origin: string, { ca, allowPrivateAddresses, timeoutMs, connections }: SenderSettings): Pool {
  const lookup = allowPrivateAddresses ? undefined : createGuardedLookup()
  const connect = createConnector({ ca, timeoutMs, responseLimit: RESPONSE_LIMIT, lookup })
  return new Pool(origin, {
    connect: allowPrivateAddresses ? connect : guardConnector(connect),
    connections,
    allowH2: false,
  })
}
