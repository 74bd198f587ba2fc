/**
 * Follows a message through the files of the library: `npm run trips`. Each function of `src` and `adapters` says when it is entered. A
 * trip is the order of their files; a return is a file that was entered before and left.
 */

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { instrument, record } from './instrument.ts'

instrument()

const { createReceiver } = await import('../../src/index.ts')
const { serve } = await import('../../adapters/express.ts')
const { createClient } = await import('../../src/client.ts')
const { sqliteQueue } = await import('../../src/queues-sqlite.ts')
const { fixtures, signedRequest } = await import('../../src/testing.ts')

const secret = 'a shared secret'
const { bytes, headers } = signedRequest(fixtures.track, secret)

async function followExpress(): Promise<string[]> {
  const receiver = createReceiver({ secret })
  const trip = record()
  receiver.on('track', trip.end)
  const app = express()
  app.use('/webhooks', serve(receiver))
  const server = createServer(app).listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await post(port) // The first message loads and compiles.
  trip.begin()
  await post(port)
  server.close()
  return trip.files()
}

async function post(port: number): Promise<void> {
  const sent = request({ port, path: '/webhooks', method: 'POST', headers })
  sent.end(bytes)
  const [response] = await once(sent, 'response')
  await once(response.resume(), 'end')
}

async function followClient(): Promise<string[]> {
  const trip = record()
  const server = createTcpServer((socket) => socket.once('data', trip.end)).listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = createClient('a write key', { endpoint: `http://127.0.0.1:${port}`, flushAt: 1 })
  trip.begin()
  client.track({ userId: 'user-1', event: 'Order Completed' })
  await trip.ended
  server.close()
  return trip.files()
}

async function followInbox(): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hookline-trips-'))
  const queue = sqliteQueue({ path: join(folder, 'inbox.sqlite') })
  const receiver = createReceiver({ secret, inbox: queue })
  const trip = record()
  receiver.on('track', trip.end)
  receiver.start()
  await queue.counts() // A queue reads its marks when it starts.
  const { push } = queue
  queue.push = (...given) => {
    trip.begin()
    return push(...given)
  }
  await receiver.receive(bytes, headers)
  await trip.ended
  await receiver.close()
  await rm(folder, { recursive: true })
  return trip.files()
}

const TRIPS = [
  { name: 'A request, from Express to its handler', follow: followExpress, maxFiles: 10, maxReturns: 8 },
  { name: 'A recorded call, from client.track() to the wire', follow: followClient, maxFiles: 7 },
  { name: 'A stored message, from the push to its handler, on SQLite', follow: followInbox, maxFiles: 12 },
]

for (const { name, follow, maxFiles, maxReturns } of TRIPS) {
  const steps = await follow()
  const files = new Set(steps)
  const returns = steps.filter((file, index) => steps.indexOf(file) < index).length
  const limits =
    maxReturns === undefined ? `at most ${maxFiles} files` : `at most ${maxFiles} files and ${maxReturns} returns`
  console.log(`${name}: ${files.size} files, ${returns} returns (${limits})\n  ${steps.join(' → ')}\n`)
}
process.exit()
