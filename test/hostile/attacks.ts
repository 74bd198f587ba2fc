/** The attacks, each over and over until its signal aborts, and the honest traffic among them. */

import { randomBytes, randomUUID } from 'node:crypto'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import { fixtures } from '../../src/testing/fixtures.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import type { TargetPorts, TargetSettings } from './target.ts'

/** What the attacks aim at. */
export interface Target extends TargetPorts, Pick<TargetSettings, 'secret' | 'writeKey'> {}

/** Attacks until the signal aborts. Resolves to how often it did so, with what came back. */
export type Attack = (target: Target, signal: AbortSignal) => Promise<string>

const JSON_TYPE = { 'content-type': 'application/json' }
const FORGED = { ...JSON_TYPE, 'x-signature': '0'.repeat(40) }

/** Bodies that come a few bytes at a time. */
export const slowBodies: Attack = async ({ http1 }, signal) => {
  let count = 0
  await inParallel(40, signal, async () => {
    const socket = await open(http1)
    socket.write(head('/inline', 100_000))
    while (!socket.closed && !signal.aborted) {
      socket.write('{"type":  ')
      await wait(200)
    }
    socket.destroy()
    count += 1
  })
  return `${count} connections`
}

/** Uploads that end in the middle. */
export const abandonedUploads: Attack = async ({ http1 }, signal) => {
  let count = 0
  await inParallel(20, signal, async () => {
    const socket = await open(http1)
    socket.write(head('/stored', 400_000))
    socket.write(randomBytes(100_000))
    await wait(20)
    socket.destroy()
    count += 1
  })
  return `${count} uploads`
}

/** Streams of HTTP/2 whose uploads never end. */
export const unfinishedStreams: Attack = async ({ http2 }, signal) => {
  let count = 0
  await inParallel(2, signal, async () => {
    const session = connectHttp2(`http://127.0.0.1:${http2}`).on('error', () => {})
    const body = randomBytes(16_000)
    const streams = Array.from({ length: 50 }, () => {
      const stream = session.request({ ':method': 'POST', ':path': '/inline', ...FORGED }).on('error', () => {})
      stream.write(body)
      return new Promise<void>((resolve) => stream.once('close', resolve).resume())
    })
    await Promise.race([Promise.all(streams), aborted(signal), wait(8_000)])
    session.destroy()
    count += streams.length
  })
  return `${count} streams`
}

/** Streams of HTTP/2 that are reset as soon as they are opened. */
export const resets: Attack = async ({ http2 }, signal) => {
  let count = 0
  await inParallel(1, signal, async () => {
    const session = connectHttp2(`http://127.0.0.1:${http2}`).on('error', () => {})
    for (let turn = 0; turn < 20 && !session.destroyed && !signal.aborted; turn += 1) {
      for (let index = 0; index < 50 && !session.destroyed; index += 1) {
        const stream = session.request({ ':method': 'POST', ':path': '/stored', ...FORGED }).on('error', () => {})
        stream.close(constants.NGHTTP2_CANCEL)
        count += 1
      }
      await wait(20)
    }
    session.destroy()
  })
  return `${count} streams`
}

/** Large forged bodies, to a receiver whose secret provider never answers and to one that knows its secret. */
export const forgeries: Attack = async ({ http1 }, signal) => {
  const body = randomBytes(500_000)
  const statuses = new Map<string, number>()
  const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 60 })
  await inParallel(60, signal, async (worker) => {
    const path = worker % 3 === 0 ? '/inline' : '/hanging'
    await tally(statuses, pool.request({ path, method: 'POST', headers: FORGED, body }))
    await wait(100)
  })
  await pool.destroy()
  return describe(statuses)
}

/** Batches of invalid calls, wrong keys and what is no JSON. */
export const junkBatches: Attack = async ({ http1, writeKey }, signal) => {
  const invalid = JSON.stringify({
    batch: Array.from({ length: 8_000 }, () => ({ type: 'track', userId: 7, event: '' })),
  })
  const deep = '['.repeat(200_000)
  const statuses = new Map<string, number>()
  const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 6 })
  await inParallel(6, signal, async (worker) => {
    const key = worker % 2 === 0 ? writeKey : 'a guess'
    const headers = { ...JSON_TYPE, authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` }
    const body = worker < 4 ? invalid : deep
    await tally(statuses, pool.request({ path: '/v1/batch', method: 'POST', headers, body }))
    await wait(100)
  })
  await pool.destroy()
  return describe(statuses)
}

/** Honest messages to every receiver and calls to the collector. The ids of those that were accepted go into `accepted`. */
export function honest(accepted: Set<string>): Attack {
  return async ({ http1, secret, writeKey }, signal) => {
    const statuses = new Map<string, number>()
    const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 40 })
    const paths = ['/inline', '/stored', '/evicting', '/silent', '/v1/track']
    await inParallel(paths.length * 4, signal, async (worker) => {
      const path = paths[worker % paths.length] as string
      const messageId = randomUUID()
      const message = { ...fixtures.track, messageId }
      const headers = { ...JSON_TYPE, authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` }
      const sent = path === '/v1/track' ? { headers, body: JSON.stringify(message) } : signedRequest(message, secret)
      const { body, headers: all } = sent
      const status = await tally(statuses, pool.request({ path, method: 'POST', headers: all, body }), `${path} `)
      if (status === 200) accepted.add(messageId)
      await wait(50)
    })
    await pool.destroy()
    return describe(statuses)
  }
}

/** Runs something over and over, several at a time, until the signal aborts. What fails is tried again. */
async function inParallel(count: number, signal: AbortSignal, run: (worker: number) => Promise<void>): Promise<void> {
  const loop = async (worker: number): Promise<void> => {
    while (!signal.aborted) await run(worker).catch(() => wait(50))
  }
  await Promise.all(Array.from({ length: count }, (_, worker) => loop(worker)))
}

async function tally(
  statuses: Map<string, number>,
  sent: ReturnType<Pool['request']>,
  prefix = '',
): Promise<number | undefined> {
  let status: number | undefined
  try {
    const response = await sent
    await response.body.dump()
    status = response.statusCode
  } catch {
    // The connection was closed before the answer was read.
  }
  const key = `${prefix}${status ?? 'closed'}`
  statuses.set(key, (statuses.get(key) ?? 0) + 1)
  return status
}

function describe(statuses: ReadonlyMap<string, number>): string {
  return [...statuses]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([key, count]) => `${key}: ${count}`)
    .join(', ')
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', reject)
    socket.resume()
  })
}

function head(path: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nx-signature: ${'0'.repeat(40)}\r\n\r\n`
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
