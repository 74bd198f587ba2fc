/** An endpoint that goes away and comes back while messages are delivered to it, on real sockets. */

import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { DeliveryReport } from '../../src/sender/api.ts'
import { createDestination } from '../../src/sender/destination.ts'
import { manualClock } from '../../src/testing/index.ts'
import { until } from '../support/until.ts'

test('a server that restarts in the middle gets every message at least once', async () => {
  const clock = manualClock()
  const taken = new Map<string, number>()
  let server = await start(0, taken)
  const { port } = server.address() as AddressInfo
  const reports: DeliveryReport[] = []
  const destination = createDestination({
    webhooks: [{ url: `http://127.0.0.1:${port}/` }],
    clock,
    concurrency: 10,
    onAttempt: (report) => reports.push(report),
  })
  onTestFinished(async () => {
    await destination.close({ graceMs: 0 })
    await stop(server)
  })
  const ids = Array.from({ length: 300 }, (_, index) => `m${index}`)
  for (const messageId of ids) await destination.track({ userId: 'u', event: 'E', messageId })

  await until(() => taken.size > 50)
  await stop(server)
  await until(() => reports.length === ids.length)
  const waiting = reports.filter(({ status }) => status === 'retrying')
  expect(waiting.length).toBeGreaterThan(0)
  expect(reports.every(({ status }) => status !== 'failed')).toBe(true)

  server = await start(port, taken)
  const isDelivered = () => reports.filter(({ status }) => status === 'delivered').length === ids.length
  while (!isDelivered()) await clock.advance(1_000)

  expect([...taken.keys()].sort()).toEqual([...ids].sort())
})

const sockets = new Map<Server, Set<Socket>>()

async function start(port: number, taken: Map<string, number>): Promise<Server> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { messageId } = JSON.parse(String(Buffer.concat(chunks)))
    taken.set(messageId, (taken.get(messageId) ?? 0) + 1)
    response.end()
  })
  const open = new Set<Socket>()
  sockets.set(server, open)
  server.on('connection', (socket) => void open.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  return server
}

/** As a process that is killed: connections are reset, whatever is on them. */
async function stop(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  for (const socket of sockets.get(server) ?? []) socket.resetAndDestroy()
  await closed
}
