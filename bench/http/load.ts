/**
 * The load: posts over 50 connections that stay open, each the next request when the last is answered. It writes bytes that are
 * there already and counts those that come back, so that it takes a fraction of what any server takes.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Contender } from '../contender.ts'
import { signedHeaders, trackMessage } from '../message.ts'
import { quantile } from '../table.ts'
import { path } from './host.ts'

const CONNECTIONS = 50
const SIZE = 1024
const HEAD_END = Buffer.from('\r\n\r\n')

/** Answers must be `HTTP/1.1 200`, with a length, and as long as the first one. */
export async function openContender(port: number): Promise<Contender> {
  /** Those of a turn. Each is another message: what remembers messages treats a copy otherwise. */
  let requests: Buffer[] = []
  let created = 0
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => connectTo(port)))
  const expected = await measureAnswer(sockets[0] as Socket, createRequest(port, created++))
  let p99 = 0

  return {
    async prepare(messages) {
      requests = Array.from({ length: messages }, () => createRequest(port, created++))
    },
    async run() {
      const times: number[] = []
      await Promise.all(sockets.map((socket) => postAll(socket, times)))
      p99 = quantile(times, 0.99)
    },
    figures: () => ({ p99 }),
  }

  function postAll(socket: Socket, times: number[]): Promise<void> {
    return new Promise((resolve, reject) => {
      let since = 0
      let missing = 0
      const next = (): void => {
        const request = requests.pop()
        if (request === undefined) {
          socket.off('data', take)
          resolve()
          return
        }
        missing = expected
        since = performance.now()
        socket.write(request)
      }
      const take = (chunk: Buffer): void => {
        if (missing === expected && !is200(chunk)) reject(new Error(`Not answered 200 but ${chunk}`))
        missing -= chunk.length
        if (missing < 0) reject(new Error(`An answer was longer than the first: ${chunk}`))
        if (missing > 0) return
        times.push(performance.now() - since)
        next()
      }
      socket.on('data', take)
      next()
    })
  }
}

function createRequest(port: number, index: number): Buffer {
  const body = trackMessage(SIZE, index)
  const headers = { host: `127.0.0.1:${port}`, 'content-length': String(body.length), ...signedHeaders(body) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), body])
}

async function connectTo(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  socket.on('close', () => {
    throw new Error('The server closed a connection.')
  })
  return socket
}

/** The length of an answer: its head and what the head says of its body. */
async function measureAnswer(socket: Socket, request: Buffer): Promise<number> {
  socket.write(request)
  let bytes = Buffer.alloc(0)
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    bytes = Buffer.concat([bytes, chunk])
    const headEnd = bytes.indexOf(HEAD_END)
    if (headEnd < 0) continue
    const [, length] = /\r\ncontent-length: (\d+)/i.exec(bytes.toString('latin1', 0, headEnd)) ?? []
    if (!is200(bytes) || length === undefined) throw new Error(`Not answered 200 with a length but ${bytes}`)
    const whole = headEnd + HEAD_END.length + Number(length)
    if (bytes.length === whole) return whole
  }
}

function is200(bytes: Buffer): boolean {
  return bytes.toString('latin1', 0, 12) === 'HTTP/1.1 200'
}
