/** A Redis of a test's own, that can be killed and started again, and a way to it that can be cut. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

/** Whether this machine has the program. */
export const hasRedisServer: boolean = spawnSync('redis-server', ['--version']).status === 0

export interface PrivateRedis {
  readonly port: number
  readonly url: string
  /** Resolves when it answers. */
  start(): Promise<void>
  /** With SIGKILL. */
  kill(): Promise<void>
  /** Kills it, and removes what it kept. */
  dispose(): Promise<void>
}

/** A Redis that keeps everything it answers for; not started yet. */
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
      server = spawn('redis-server', [...settings, '--appendfsync', 'always', ...options], { stdio: 'ignore' })
      const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 20 })
      client.on('error', () => {})
      await client.ping().catch(() => {}) // It answers, if only to ask for a password.
      client.disconnect()
    },
    kill,
    async dispose() {
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export interface Passage {
  readonly port: number
  /** Cuts every connection that goes through it. */
  cut(): void
  close(): Promise<void>
}

/** A way to a port of this machine. */
export async function openPassage(port: number): Promise<Passage> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far).pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    async close() {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
