/** The process under attack: receivers of every kind and a collector, on HTTP/1 and HTTP/2. It reports how it stands. */

import { readdirSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { serve } from '../../adapters/node.ts'
import { createCollector } from '../../src/collector/index.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { createReceiver } from '../../src/index.ts'
import { bullmqQueue } from '../../src/queues/bullmq/index.ts'
import { memoryQueue } from '../../src/queues/memory/index.ts'
import { pgBossQueue } from '../../src/queues/pg-boss/index.ts'
import { sqliteQueue } from '../../src/queues/sqlite/index.ts'
import type { ReceiverOptions } from '../../src/receiver/options.ts'
import { createDestination } from '../../src/sender.ts'

/** What the process gets when it starts. */
export interface TargetSettings {
  readonly secret: string
  readonly writeKey: string
  /** The path of a SQLite file that does not exist yet. */
  readonly file: string
  /** A Redis that evicts keys. */
  readonly evictingRedis: string
  /** A server that accepts connections and never answers. */
  readonly silentPostgres: string
  /** An https URL whose certificate is self-signed. */
  readonly selfSigned: string
}

/** Where it listens. */
export interface TargetPorts {
  readonly http1: number
  readonly http2: number
}

/** How it stands. */
export interface Standing {
  /** The ids of the messages that handlers were done with. */
  readonly handled: readonly string[]
  /** Jobs that are not complete, of the inbox and of the destination. */
  readonly waiting: number
  readonly deadLetters: number
  /** What is left after a garbage collection, in MB: the heap, and buffers outside of it. */
  readonly live: number
  readonly descriptors: number
  /** How many errors were reported. */
  readonly errors: number
}

const settings = JSON.parse(process.argv[2] ?? '') as TargetSettings
const { secret, writeKey, file, evictingRedis, silentPostgres, selfSigned } = settings
const handled = new Set<string>()
let errors = 0
const onError = (): void => {
  errors += 1
}

function receiverOf(options: ReceiverOptions) {
  return createReceiver({ onError, ...options }).on('track', ({ messageId }) => {
    handled.add(messageId as string)
  })
}

const inline = receiverOf({ secret })
const hanging = receiverOf({ secret: () => new Promise(() => {}) })
const stored = receiverOf({ secret, inbox: sqliteQueue({ path: file, onError }) })
const evicting = receiverOf({ secret, inbox: bullmqQueue({ name: 'hostile', connection: evictingRedis, onError }) })
const silent = receiverOf({
  secret,
  inbox: pgBossQueue({ name: 'hostile', connectionString: silentPostgres, onError }),
})
for (const receiver of [stored, evicting, silent]) receiver.start()

const endpoints: Record<string, Endpoint> = {
  '/inline': inline,
  '/hanging': hanging,
  '/stored': stored,
  '/evicting': evicting,
  '/silent': silent,
}
const listeners = new Map(Object.entries(endpoints).map(([path, endpoint]) => [path, serve(endpoint, { path })]))

const http1 = createServer(listen as RequestListener)
const http2 = createHttp2Server(listen as unknown as Parameters<typeof createHttp2Server>[0])
const ports: TargetPorts = { http1: await portOf(http1), http2: await portOf(http2) }

// One URL never works: any success ends a message.
const queue = memoryQueue({ name: 'hostile' })
const destination = createDestination({
  webhooks: [{ url: `http://127.0.0.1:${ports.http1}/stored` }, { url: selfSigned }],
  sharedSecret: secret,
  queue,
  onAttempt: () => {},
})
const collector = createCollector({ sources: [{ name: 'shop', writeKey, destinations: [destination] }], onError })
const collect = serve(collector)

type Exchange = Parameters<ReturnType<typeof serve>>

function listen(...[request, response]: Exchange): void {
  const listener = listeners.get(request.url ?? '') ?? collect
  listener(request, response)
}

function portOf(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

async function standing(): Promise<Standing> {
  const health = await stored.health()
  const queued = await queue.counts()
  global.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return {
    handled: [...handled],
    waiting: health.waiting + health.active + queued.waiting + queued.active,
    deadLetters: health.deadLetters + queued.deadLetters,
    live: (heapUsed + external) / 1e6,
    descriptors: readdirSync('/proc/self/fd').length,
    errors,
  }
}

process.on('message', async (question) => {
  if (question === 'standing') {
    process.send?.(await standing())
    return
  }
  for (const server of [http1, http2]) server.close()
  const closing = [inline, hanging, stored, evicting, silent].map((receiver) => receiver.close({ graceMs: 500 }))
  await Promise.all([...closing, destination.close({ graceMs: 500 })])
  process.disconnect()
})
process.send?.(ports)
