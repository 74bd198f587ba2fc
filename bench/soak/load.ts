/** Signed messages of 1 KB, each of its own, over 50 connections: as many as go, or so many a second. */

import { randomUUID } from 'node:crypto'
import { signedRequest } from 'hookline/testing'
import { Pool } from 'undici'
import { secret, trackMessage } from '../message.ts'
import type { Fate } from './server.ts'

/** What was sent. */
export interface Sent {
  readonly accepted: number
  /** Answered, but not 2xx: the receiver did not take them. */
  readonly refused: number
  /** Of those that were accepted, the ones that will fail for good. */
  readonly doomed: number
}

const CONNECTIONS = 50
/** Of a thousand messages. */
const FAILING = 1
const FAILING_ONCE = 10
/** How often messages are given out, in milliseconds, and how many may be on their way at most. */
const TICK_MS = 10
const MAX_UNDER_WAY = 1_000

const { event: _event, messageId: _messageId, ...message } = JSON.parse(trackMessage(1024).toString())

/** Sends for so long. Without a rate, a connection sends the next message as soon as the one before is answered. */
export async function sendFor(ms: number, port: number, rate?: number): Promise<Sent> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
  const end = performance.now() + ms
  const run = randomUUID()
  const counts = { accepted: 0, refused: 0, doomed: 0 }
  let count = 0

  async function send(): Promise<void> {
    const id = count++
    const fate = fateOf(id, rate !== undefined)
    const { method, headers, body } = signedRequest({ ...message, event: fate, messageId: `${run}-${id}` }, secret)
    const response = await pool.request({ path: '/', method, headers, body })
    await response.body.dump()
    if (response.statusCode >= 300) counts.refused += 1
    else counts.accepted += 1
    if (response.statusCode < 300 && fate === 'fails') counts.doomed += 1
  }

  if (rate === undefined) await sendAll(send, end)
  else await sendPaced(send, end, rate)
  await pool.close()
  return counts
}

function fateOf(id: number, isMixed: boolean): Fate {
  const place = id % 1_000
  if (!isMixed || place >= FAILING + FAILING_ONCE) return 'succeeds'
  return place < FAILING ? 'fails' : 'fails once'
}

async function sendAll(send: () => Promise<void>, end: number): Promise<void> {
  const run = async (): Promise<void> => {
    while (performance.now() < end) await send()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, run))
}

function sendPaced(send: () => Promise<void>, end: number, rate: number): Promise<void> {
  const start = performance.now()
  const underWay = new Set<Promise<void>>()
  let count = 0
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      const now = performance.now()
      const due = Math.floor(((now - start) * rate) / 1_000)
      for (; count < due && underWay.size < MAX_UNDER_WAY; count += 1) {
        const sending = send().finally(() => underWay.delete(sending))
        sending.catch(stop)
        underWay.add(sending)
      }
      if (now >= end) stop()
    }, TICK_MS)
    function stop(error?: unknown): void {
      clearInterval(timer)
      if (error !== undefined) reject(error)
      else Promise.all(underWay).then(() => resolve(), reject)
    }
  })
}
