/** A Redis of a test's own that can be killed and started again, and a proxy to it that can be cut and silenced. */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

export type PrivateRedis = Awaited<ReturnType<typeof privateRedis>>

/** Creates a Redis that keeps what it acknowledges, also when it is killed: it writes before it answers. It is not started. */
export async function privateRedis(...options: readonly string[]) {
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'hookline-redis-'))
  const settings = ['--port', `${port}`, '--dir', directory, '--save', '', '--appendonly', 'yes']
  let server: ChildProcess | undefined

  async function kill(): Promise<void> {
    const killed = server
    server = undefined
    if (killed === undefined || killed.exitCode !== null) return
    const exited = once(killed, 'exit')
    killed.kill('SIGKILL')
    await exited
  }

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    /** Resolves when it answers. */
    async start(): Promise<void> {
      server = spawn('redis-server', [...settings, '--appendfsync', 'no', ...options], { stdio: 'ignore' })
      const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 20 })
      client.on('error', () => {})
      await client.ping().catch(() => {}) // Any answer will do: it may ask for a password.
      client.disconnect()
    },
    kill,
    async dispose(): Promise<void> {
      await kill()
      await rm(directory, { recursive: true, force: true, maxRetries: 9 })
    },
  }
}

/** Deletes a queue: what BullMQ keeps, also what expires by itself, the ids of the dedupe window; and what Hookline keeps beside it. */
export async function removeQueue(redis: Redis, name: string, prefix = 'bull'): Promise<void> {
  await redis.srem(`${prefix}-hookline`, name)
  await redis.unlink(`${prefix}-hookline:${name}`, `${prefix}-hookline:${name}:log`)
  for (let cursor = '0'; ; ) {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}:${name}:*`, 'COUNT', 10_000)
    if (keys.length > 0) await redis.unlink(...keys)
    if (next === '0') return
    cursor = next
  }
}

export async function openProxy(first: number) {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isSilent = false
  let losesAnswer = false
  let port = first
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    const pair = [near, far] as const
    pairs.add(pair)
    for (const [from, to] of [pair, [far, near]] as const) {
      from.on('data', (data) => {
        if (from === far && losesAnswer) cut()
        else to.write(data)
      })
      if (isSilent) from.pause()
      from.on('error', () => {})
      from.on('close', () => {
        pairs.delete(pair)
        to.destroy()
      })
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const each = (act: (socket: Socket) => void) => [...pairs].flat().forEach(act)
  const cut = () => {
    losesAnswer = false
    each((socket) => socket.destroy())
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    /** Closes every connection instead of passing on what Redis answers next: it has run the command, and its client does not know. */
    loseAnswer() {
      losesAnswer = true
    },
    /** Keeps connections open, and passes nothing on until `resume`. */
    silence() {
      isSilent = true
      each((socket) => socket.pause())
    },
    resume() {
      isSilent = false
      each((socket) => socket.resume())
    },
    /** Connects to the server at this port from then on: those connections that are open stay. */
    moveTo(next: number) {
      port = next
    },
    async close(): Promise<void> {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns a port that nothing listens on. Systems assign ports above these: no other program gets the port before it is used. */
export async function freePort(): Promise<number> {
  const port = randomInt(10_000, 32_000)
  const server = createServer()
  const listens = await new Promise<boolean>((resolve) => {
    server.on('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  if (!listens) return freePort()
  await new Promise((resolve) => server.close(resolve))
  return port
}

export function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, 'localhost', () => resolve(socket.destroy().destroyed))
    socket.on('error', () => resolve(false))
  })
}
