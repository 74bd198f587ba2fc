/** The process under attack: receivers of every kind and a collector, on HTTP/1, HTTP/2 and TLS. It reports how it stands. */

import { readdirSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { serve } from '../../adapters/node.ts'
import { createCollector } from '../../src/collector.ts'
import { createReceiver, type HooklineError } from '../../src/index.ts'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createDestination } from '../../src/sender.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import { portOf } from './attack.ts'
import { liveMemory } from './memory.ts'

/** What the process gets when it starts. */
export interface TargetSettings {
  readonly secret: string
  readonly writeKey: string
  /** The path of a SQLite file that does not exist yet. */
  readonly file: string
  readonly evictingRedis: string
  /** A server that accepts connections and never answers. */
  readonly silentPostgres: string
  /** https URLs whose certificates a destination must refuse, and what it trusts all the same. */
  readonly untrusted: readonly string[]
  readonly ca: readonly string[]
}

export interface TargetPorts {
  readonly http1: number
  readonly http2: number
  readonly https: number
}

/** What it sends: the ids of messages that handlers were done with, as they come, and how it stands when it is asked. */
export type Report = { readonly handled: readonly string[] } | { readonly standing: Standing }

export interface Standing {
  /** Jobs that are not complete, of the inbox and of the destination. */
  readonly waiting: number
  readonly deadLetters: number
  /** What nothing can free, in MB. */
  readonly live: number
  /** The most memory that it had so far, with what was not collected yet, in MB. */
  readonly peak: number
  readonly descriptors: number
  readonly errors: Readonly<Record<string, number>>
}

const settings = JSON.parse(process.argv[2] ?? '') as TargetSettings
const { secret, writeKey, file, evictingRedis, silentPostgres, untrusted, ca } = settings
const errors: Record<string, number> = {}
const count = (name: string): void => {
  errors[name] = (errors[name] ?? 0) + 1
}
const onError = ({ code }: HooklineError): void => count(code)

// Kept here, the ids of an hour would be a large part of the memory that is measured.
let handled: string[] = []
function report(): void {
  if (handled.length > 0) process.send?.({ handled } satisfies Report)
  handled = []
}
setInterval(report, 100).unref()

function receiverOf(options: Parameters<typeof createReceiver>[0]) {
  return createReceiver({ onError, ...options }).on('track', ({ messageId }) => {
    handled.push(messageId as string)
  })
}

/** Open to all that a sender may be allowed. */
const inline = receiverOf({ secret, methods: ['POST', 'PUT'], batches: true, custom: true })
// Each source has a provider call of its own: one for all would be over, with what it holds, 10 s after its first request.
const hanging = receiverOf({
  secret: { source: ({ headers }) => headers['x-source'] as string, secrets: () => new Promise(() => {}) },
})
const stored = receiverOf({ secret, inbox: sqliteQueue({ path: file, onError }) })
const evicting = receiverOf({ secret, inbox: bullmqQueue({ name: 'hostile', connection: evictingRedis, onError }) })
const silentQueue = pgBossQueue({ name: 'hostile', connectionString: silentPostgres, onError })
const silent = receiverOf({ secret, inbox: silentQueue })
for (const receiver of [stored, evicting, silent]) receiver.start()

const receivers = { inline, hanging, stored, evicting, silent }
const listeners = new Map(Object.entries(receivers).map(([name, receiver]) => [`/${name}`, serve(receiver)]))

const http1 = createServer(listen as RequestListener)
const http2 = createHttp2Server(listen as unknown as Parameters<typeof createHttp2Server>[0])
const https = createHttpsServer(createCertificate('private_ca').server, listen as RequestListener)
https.on('tlsClientError', () => count('failed handshakes'))
const servers = [http1, http2, https]
const ports: TargetPorts = { http1: await portOf(http1), http2: await portOf(http2), https: await portOf(https) }

// The ids of the dedupe window are kept on purpose: few, so that they hide nothing.
const queue = memoryQueue({ name: 'hostile', dedupeWindowMs: 10_000 })
const destination = createDestination({
  // Some URLs never work: any success ends a message.
  webhooks: [`http://127.0.0.1:${ports.http1}/stored`, ...untrusted].map((url) => ({ url })),
  sharedSecret: secret,
  ca: [...ca],
  queue,
  onAttempt: ({ latest }) => {
    for (const { error } of latest) if (error !== undefined) count(`attempt: ${error}`)
  },
})
const collector = createCollector({ sources: [{ name: 'shop', writeKey, destinations: [destination] }], onError })
const collect = serve(collector)

function listen(...[request, response]: Parameters<ReturnType<typeof serve>>): void {
  const listener = listeners.get(request.url ?? '') ?? collect
  listener(request, response)
}

async function standing(): Promise<Standing> {
  const health = await stored.health()
  const queued = await queue.counts()
  return {
    waiting: health.waiting + health.active + queued.waiting + queued.active,
    deadLetters: health.deadLetters + queued.deadLetters,
    peak: process.resourceUsage().maxRSS / 1e3,
    live: await liveMemory(),
    descriptors: readdirSync('/proc/self/fd').length,
    errors,
  }
}

process.on('message', async (question) => {
  if (question === 'standing') {
    const answer = await standing()
    report()
    process.send?.({ standing: answer } satisfies Report)
    return
  }
  for (const server of servers) server.close()
  const all = [...Object.values(receivers), destination]
  await Promise.all(all.map((each) => each.close({ graceMs: 500 })))
  process.disconnect()
})
process.send?.(ports)
