/** What an attack is, and what attacks are made of: loops until a signal aborts, counts of what came back, raw connections. */

import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Pool } from 'undici'
import type { TargetPorts, TargetSettings } from './target.ts'

/** How often something came back: a status, or what else an attack met. */
export type Counts = Map<string, number>

export interface Target extends TargetPorts, Pick<TargetSettings, 'secret' | 'writeKey'> {}

/** Attacks until the signal aborts. */
export interface Attack {
  run(target: Target, signal: AbortSignal): Promise<Counts>
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
export async function inParallel(
  count: number,
  signal: AbortSignal,
  run: (worker: number) => Promise<void>,
): Promise<void> {
  const loop = async (worker: number): Promise<void> => {
    while (!signal.aborted) await run(worker).catch(() => wait(50))
  }
  await Promise.all(Array.from({ length: count }, (_, worker) => loop(worker)))
}

export function countOutcome(counts: Counts, key: string, count = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}

export async function tally(
  counts: Counts,
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
  countOutcome(counts, `${prefix}${status ?? 'closed'}`)
  return status
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
