/** A Redis of a test's own that can be killed and started again, and a proxy to it that can be cut and silenced. */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

export interface PrivateRedis {
  readonly port: number
  readonly url: string
  /** Resolves when it answers. */
  start(): Promise<void>
  kill(): Promise<void>
  dispose(): Promise<void>
}

/** Creates a Redis that keeps what it acknowledges, also when it is killed: it writes before it answers. It is not started. */
export async function privateRedis(...options: readonly string[]): Promise<PrivateRedis> {
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'hookline-redis-'))
  const settings = ['--port', `${port}`, '--dir', directory, '--save', '', '--appendonly', 'yes']
  let server: ChildProcess | undefined

  async function kill(): Promise<void> {
    const killed = server
    server = undefined
    if (killed === undefined || killed.exitCode !== null) return
    const exited = new Promise((resolve) => killed.once('exit', resolve))
    killed.kill('SIGKILL')
    await exited
  }

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    async start() {
      server = spawn('redis-server', [...settings, '--appendfsync', 'no', ...options], { stdio: 'ignore' })
      const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 20 })
      client.on('error', () => {})
      await client.ping().catch(() => {}) // Any answer will do: it may ask for a password.
      client.disconnect()
    },
    kill,
    async dispose() {
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

export interface RedisProxy {
  readonly port: number
  cut(): void
  /** Closes every connection instead of passing on what Redis answers next: it has run the command, and its client does not know. */
  loseAnswer(): void
  /** Keeps connections open, and passes nothing on until {@link resume}. */
  silence(): void
  resume(): void
  /** Connects to the server at this port from then on: those connections that are open stay. */
  moveTo(port: number): void
  close(): Promise<void>
}

export async function openProxy(first: number): Promise<RedisProxy> {
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const each = (act: (socket: Socket) => void) => {
    for (const pair of pairs) pair.forEach(act)
  }
  const cut = () => {
    losesAnswer = false
    each((socket) => socket.destroy())
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    loseAnswer() {
      losesAnswer = true
    },
    silence() {
      isSilent = true
      each((socket) => socket.pause())
    },
    resume() {
      isSilent = false
      each((socket) => socket.resume())
    },
    moveTo(next) {
      port = next
    },
    async close() {
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
