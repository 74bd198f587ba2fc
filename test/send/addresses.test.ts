/** Hosts with several addresses, some of which do not respond. */

import dns from 'node:dns'
import { once } from 'node:events'
import { connect, isIP, type LookupFunction } from 'node:net'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { SenderOptions } from '../../src/send/sender-options.ts'
import { needs } from '../support/needs.ts'
import { listen, openSender } from './set-up.ts'

/** Listens on 127.0.0.2, and lets a server of HTTP accept no connection until it is woken. */
const HOLE = `
const { parentPort, workerData } = require('node:worker_threads')
const server = require('node:http').createServer((request, response) => response.end())
server.listen({ port: workerData.port, host: '127.0.0.2', backlog: 1 }, () => {
  parentPort.postMessage('listens')
  Atomics.wait(workerData.gate, 0, 0)
})`

/** Never responds: the discard prefix. On a machine without IPv6, connecting to it fails at once. */
const DISCARDED = '100::1'
const [SLOW, GOOD, REFUSING] = ['127.0.0.2', '127.0.0.1', '127.0.0.3'] as const

/** An endpoint at GOOD, and at the same port of SLOW a listener whose queue is full: Linux drops what asks for a connection. */
async function setUp() {
  const endpoint = await listen()
  const port = Number(new URL(endpoint.url).port)
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const thread = new Worker(HOLE, { eval: true, workerData: { port, gate } })
  onTestFinished(async () => void (await thread.terminate()))
  await once(thread, 'message')
  const waiting = [0, 1].map(() => connect(port, SLOW).on('error', () => {}))
  await Promise.all(waiting.map((socket) => once(socket, 'connect')))

  return {
    endpoint,
    /** Posts to a name that has these addresses. */
    async post(addresses: readonly string[], options: Partial<SenderOptions> = {}) {
      const found = addresses.map((address) => ({ address, family: isIP(address) }))
      const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((_host, _options, callback) => {
        callback(null, found)
      }) satisfies LookupFunction as never)
      onTestFinished(() => lookup.mockRestore())
      const sender = openSender({ webhooks: [{ url: `http://shop.example:${port}/` }], ...options })
      const { attempts } = await sender.delete({ userId: 'u' })
      return attempts[0]
    },
    /** Lets SLOW accept connections. The system of the client asks again a second after its first try. */
    wake() {
      for (const socket of waiting) socket.destroy()
      Atomics.store(gate, 0, 1)
      Atomics.notify(gate, 0)
    },
  }
}

describe('a host with several addresses', needs('Linux'), () => {
  it('is reached at its last one, after others that do not respond', async () => {
    const { post } = await setUp()
    const attempt = await post([DISCARDED, SLOW, GOOD], { addressTimeoutMs: 50 })
    expect(attempt).toMatchObject({ ok: true })
  })

  it('has a second for each by default, and a fifth of a shorter timeout', async () => {
    const { post } = await setUp()
    const [second, fifth] = await Promise.all([post([SLOW, GOOD]), post([SLOW, GOOD], { timeoutMs: 2_000 })])
    expect(second).toMatchObject({ ok: true })
    expect(second?.durationMs).toBeGreaterThan(950)
    expect(fifth).toMatchObject({ ok: true })
    expect(fifth?.durationMs).toBeGreaterThan(380)
  })

  it('is reached at one that is slower than Node waits, when the next is dead', async () => {
    const { post, wake } = await setUp()
    const pending = post([SLOW, REFUSING], { addressTimeoutMs: 4_000 })
    await vi.waitFor(() => expect(dns.lookup).toHaveBeenCalled())
    wake()
    expect(await pending).toMatchObject({ ok: true })
  })
})
