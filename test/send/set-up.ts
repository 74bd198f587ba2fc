/** A destination on a manual clock, whose network is a script; and a sender and an endpoint that are closed when the test is over. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import type { SenderOptions } from '../../src/send/sender-options.ts'
import type { Attempt, Sender } from '../../src/send/sender-types.ts'
import type { EncryptionOptions } from '../../src/store/encryption.ts'
import {
  capture,
  type EndpointOptions,
  type ManualClock,
  manualClock,
  type Script,
  type ScriptedEndpoint,
  startEndpoint,
} from '../../src/testing.ts'

export const HOUR = 3_600_000

let encryption: EncryptionOptions | undefined

/** Has the destinations of the tests that follow encrypt all that they store; with nothing, no more. Those with a queue of their own do not. */
export function encryptDestinations(keys?: EncryptionOptions): void {
  encryption = keys
}

/** An attempt that ended so: it failed, unless its status is 200. */
export function attemptOf(outcome: Partial<Attempt>): Attempt {
  const attempt = { url: 'https://shop.example/webhooks', at: new Date(0), durationMs: 1, body: '' }
  return { ...attempt, ok: outcome.status === 200, ...outcome }
}

export function setUp(script: Script = [200], options: Partial<DestinationOptions> = {}) {
  const clock = (options.clock as ManualClock | undefined) ?? manualClock()
  const captured = capture({ script, clock })
  const reports: DeliveryReport[] = []
  const destination = createDestination({
    webhooks: [{ url: 'https://shop.example/webhooks' }],
    sharedSecret: 'secret',
    dispatcher: captured.dispatcher,
    clock,
    random: () => 0.5,
    onAttempt: (report) => reports.push(report),
    ...(encryption && options.queue === undefined && { encryption }),
    ...options,
  })
  onTestFinished(() => void destination.close({ graceMs: 0 }))
  const start = clock.now()
  const startsOf = (report: DeliveryReport | undefined) => report?.attempts.map(({ at }) => at.getTime() - start)
  return { clock, captured, reports, destination, start, startsOf, last: () => reports.at(-1) }
}

export async function listen(options?: EndpointOptions): Promise<ScriptedEndpoint> {
  const endpoint = await startEndpoint(options)
  onTestFinished(() => endpoint.close())
  return endpoint
}

export function openSender(options: SenderOptions): Sender {
  const sender = createSender(options)
  onTestFinished(() => sender.close())
  return sender
}

/** The port of a server that listens until the test is over. */
export async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** A server that takes everything, and itself ends no connection. `open` has those that are not ended. */
export async function serveKept() {
  const open = new Set<Socket>()
  const seen = { connections: 0, requests: 0 }
  const server = createServer((_request, response) => {
    seen.requests += 1
    response.end()
  })
  server.keepAliveTimeout = 60_000 // Longer than the test.
  server.on('connection', (socket) => {
    seen.connections += 1
    open.add(socket.on('close', () => open.delete(socket)))
  })
  return { url: `http://127.0.0.1:${await portOf(server)}/`, open, seen }
}

/** A server of any bytes, which it writes when some of a request have come. */
export async function serveBytes(respond: (socket: Socket) => unknown) {
  const sockets: Socket[] = []
  const server = createTcpServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    socket.on('data', () => respond(socket))
  })
  const url = `http://127.0.0.1:${await portOf(server)}/`
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  return { url, sockets }
}
