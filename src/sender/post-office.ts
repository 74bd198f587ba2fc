/** Signs bytes and posts them to the URLs of a destination: what a sender and a destination share. */

import { buildConnector, Pool } from 'undici'
import { createDeadlines } from '../protocol/deadlines.ts'
import type { PostRequest } from '../protocol/post.ts'
import type { Attempt } from './api.ts'
import { createLine, type Line } from './line.ts'
import { createGuardedLookup, guardConnector } from './private-address.ts'
import { refuseSelfSigned } from './self-signed.ts'
import type { SenderSettings } from './sender-options.ts'
import type { Target } from './webhooks.ts'

/** Posts bytes. */
export interface PostOffice {
  /** The headers of a request, names and values in turns. */
  headersFor(target: Target, signature: string | undefined): readonly string[]
  /** The value of `X-Signature`, where there is a secret. */
  sign(bytes: Uint8Array): string | undefined
  /** Posts the same bytes, signed once, to all of these at once. Never rejects. */
  postAll(bytes: Uint8Array, targets: readonly Target[]): Promise<readonly Attempt[]>
  /** Posts to one, as it is told. */
  post(target: Target, request: Pick<PostRequest, 'headers' | 'body'>): Promise<Attempt>
  /** Ends every POST under way: their attempts read `closed`. */
  abort(): void
  /** Waits for what is under way, and lets go of the connections. */
  close(): Promise<void>
}

/** Opens one. */
export function createPostOffice(settings: SenderSettings): PostOffice {
  const { targets, key, userAgent } = settings
  const lines = createLines(settings)
  const common = ['Content-Type', 'application/json', 'User-Agent', userAgent]
  const fixed = new Map(targets.map((target) => [target, [...common, ...Object.entries(target.headers).flat()]]))

  const office: PostOffice = {
    headersFor(target, signature) {
      const headers = fixed.get(target) as readonly string[]
      return signature === undefined ? headers : [...headers, 'X-Signature', signature]
    },
    sign: (bytes) => key?.sign(bytes),
    postAll(bytes, chosen) {
      const signature = office.sign(bytes)
      const posts = chosen.map((target) =>
        office.post(target, { headers: office.headersFor(target, signature), body: bytes }),
      )
      return posts.length === 1 ? (posts[0] as Promise<Attempt>).then((only) => [only]) : Promise.all(posts)
    },
    post: (target, request) => (lines.get(target.origin) as Line).post(target, request),
    abort() {
      for (const line of lines.values()) line.abort()
    },
    async close() {
      await Promise.all([...lines.values()].map((line) => line.close()))
    },
  }
  return office
}

function createLines(settings: SenderSettings): ReadonlyMap<string, Line> {
  const { targets, timeoutMs, clock, dispatcher, connections } = settings
  const timing = { clock, deadlines: createDeadlines(timeoutMs, clock) }
  const origins = new Set(targets.map(({ origin }) => origin))
  const open = (origin: string): Line => {
    if (dispatcher !== undefined) return createLine(undefined, dispatcher, connections, timing)
    const pool = createPool(origin, settings)
    return createLine(pool, pool, connections, timing)
  }
  return new Map([...origins].map((origin) => [origin, open(origin)]))
}

function createPool(origin: string, settings: SenderSettings): Pool {
  const { ca, allowPrivateAddresses, timeoutMs, connections } = settings
  // Certificates are checked whatever the environment of the process says.
  const connecting = { rejectUnauthorized: true, timeout: timeoutMs, allowH2: false, ...(ca !== undefined && { ca }) }
  const lookup = allowPrivateAddresses ? undefined : createGuardedLookup()
  const plain = refuseSelfSigned(buildConnector({ ...connecting, lookup } as buildConnector.BuildOptions))
  return new Pool(origin, {
    connect: allowPrivateAddresses ? plain : guardConnector(plain),
    connections,
    allowH2: false,
  })
}
