/** Signs bytes and posts them to the URLs of a destination: what a sender and a destination share. */

import { buildConnector, Pool } from 'undici'
import { createDeadlines } from '../protocol/deadlines.ts'
import type { DispatcherLike, PendingPost, PostRequest } from '../protocol/post.ts'
import type { Attempt } from './api.ts'
import { attempt, type Transport } from './attempt.ts'
import { createGuardedLookup, guardConnector } from './private-address.ts'
import { refuseSelfSigned } from './self-signed.ts'
import type { SenderSettings } from './sender-options.ts'
import type { Target } from './webhooks.ts'

/** Posts bytes. */
export interface PostOffice {
  /** The headers of a request, names and values in turns. */
  headersFor(target: Target, signature: string | undefined): string[]
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
  const { targets, key, userAgent, clock } = settings
  const underWay = new Set<PendingPost>()
  let resume: (() => void) | undefined
  const transport: Omit<Transport, 'dispatcher'> = {
    clock,
    deadlines: createDeadlines(settings.timeoutMs, clock),
    begin: (post) => void underWay.add(post),
    end(post) {
      underWay.delete(post)
      if (underWay.size === 0) resume?.()
    },
  }
  const pools = settings.dispatcher === undefined ? createPools(settings) : new Map<string, Pool>()
  const transports = new Map(
    targets.map(({ origin }) => {
      const dispatcher = settings.dispatcher ?? (pools.get(origin) as DispatcherLike)
      return [origin, { ...transport, dispatcher }]
    }),
  )
  const common = ['Content-Type', 'application/json', 'User-Agent', userAgent]
  const fixed = new Map(targets.map((target) => [target, [...common, ...Object.entries(target.headers).flat()]]))

  const office: PostOffice = {
    headersFor(target, signature) {
      const headers = fixed.get(target) as string[]
      return signature === undefined ? [...headers] : [...headers, 'X-Signature', signature]
    },
    sign: (bytes) => key?.sign(bytes),
    postAll(bytes, chosen) {
      const signature = office.sign(bytes)
      return Promise.all(
        chosen.map((target) => office.post(target, { headers: office.headersFor(target, signature), body: bytes })),
      )
    },
    post: (target, request) => attempt(transports.get(target.origin) as Transport, target, request),
    abort() {
      for (const post of underWay) post.stop(CLOSED)
    },
    async close() {
      if (underWay.size > 0) {
        await new Promise<void>((resolve) => {
          resume = resolve
        })
      }
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
    },
  }
  return office
}

const CLOSED = Object.assign(new Error('The sender was closed.'), { code: 'UND_ERR_CLOSED' })

function createPools({ targets, ca, allowPrivateAddresses, timeoutMs }: SenderSettings): Map<string, Pool> {
  // Certificates are checked whatever the environment of the process says.
  const connecting = { rejectUnauthorized: true, timeout: timeoutMs, allowH2: false, ...(ca !== undefined && { ca }) }
  const lookup = allowPrivateAddresses ? undefined : createGuardedLookup()
  const plain = refuseSelfSigned(buildConnector({ ...connecting, lookup } as buildConnector.BuildOptions))
  const connect = allowPrivateAddresses ? plain : guardConnector(plain)
  const origins = new Set(targets.map(({ origin }) => origin))
  return new Map([...origins].map((origin) => [origin, new Pool(origin, { connect, allowH2: false })]))
}
