/** What an attack is, and what attacks are made of: loops until a signal aborts, counts of what came back, raw connections. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import type { TargetPorts, TargetSettings } from './target.ts'

/** How often something came back: a status, or what else an attack met. */
export type Counts = Map<string, number>

export interface Target extends TargetPorts, Pick<TargetSettings, 'secret' | 'writeKey'> {}

export interface Attack {
  /** Attacks until the signal aborts, and counts what comes back. */
  run(target: Target, signal: AbortSignal, counts: Counts): Promise<void>
  /** What must have come back: else the attack did not happen. */
  readonly met: readonly string[]
  /** What must not come back. */
  readonly never: readonly string[]
}

export const JSON_TYPE = { 'content-type': 'application/json' }
export const FORGED = { ...JSON_TYPE, 'x-signature': '0'.repeat(40) }
/** A body as large as a receiver takes by default. */
export const LARGE_BODY = randomBytes(500_000)

export function basicAuth(writeKey: string): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}` }
}

/** Runs something over and over, several at a time, until the signal aborts. What fails is tried again. */
export async function inParallel(count: number, signal: AbortSignal, run: (worker: number) => Promise<void>) {
  const loop = async (worker: number): Promise<void> => {
    while (!signal.aborted) await run(worker).catch(() => wait(50))
  }
  await Promise.all(Array.from({ length: count }, (_, worker) => loop(worker)))
}

export function countOutcome(counts: Counts, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

export interface Posted {
  readonly path: string
  readonly method?: 'POST' | 'PUT'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** Posts over so many connections, and counts the statuses; `closed`, where the connection was before the answer was read. */
export async function withPosts(
  { http1 }: Target,
  connections: number,
  counts: Counts,
  run: (post: (posted: Posted, prefix?: string) => Promise<number | 'closed'>) => Promise<unknown>,
): Promise<void> {
  const pool = new Pool(`http://127.0.0.1:${http1}`, { connections })
  await run(async ({ path, method = 'POST', headers, body }, prefix = '') => {
    const status = await pool.request({ path, method, headers, body }).then(
      async (response) => response.body.dump().then(() => response.statusCode),
      () => 'closed' as const,
    )
    countOutcome(counts, `${prefix}${status}`)
    return status
  })
  await pool.destroy()
}

export async function portOf(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

export function describe(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([key, count]) => `${key}: ${count}`)
    .join(', ')
}

/** Opens a connection whose errors are of no interest. */
export function openSocket(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', reject)
  })
}

/** The head of a forged request. */
export function head(path: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nx-signature: ${'0'.repeat(40)}\r\n\r\n`
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
