/** A small sender that is right, and the faults that can be planted in it. */

import { createHmac } from 'node:crypto'
import http from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

/** What a sender does otherwise than a right one. */
export interface Fault {
  readonly method?: string
  readonly path?: string
  /** Undefined leaves a header out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  sign?(body: string, secret: string): string | undefined
  /** The body of an attempt, from 1. */
  write?(message: Message, attempt: number): string
  readonly timeoutMs?: number
  isRetried?(status: number, attempt: number): boolean
}

export interface Message {
  readonly version?: number
  readonly type: string
  readonly userId: string
  readonly timestamp?: string
  readonly event: string
  readonly messageId?: string
}

export const SECRET = 'a secret'

export function hmac(algorithm: string, body: string, secret: string): string {
  return createHmac(algorithm, secret).update(body).digest('hex')
}

/** Sends so many messages at once, each until it is taken, refused or tried five times. */
export async function sendAll(url: string, count: number, fault: Fault = {}): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => deliver(url, index, fault)))
}

async function deliver(url: string, index: number, fault: Fault): Promise<void> {
  const {
    write = (message: Message) => JSON.stringify(message),
    isRetried = (status) => status === 0 || status >= 500,
  } = fault
  const timestamp = new Date(Date.UTC(2026, 0, 15) + index).toISOString()
  const message = { version: 1, type: 'track', userId: 'u1', timestamp, event: 'Order Completed' }
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    const status = await post(url, write(message, attempt), fault)
    if (!isRetried(status, attempt)) return
    await delay(20)
  }
}

/** Resolves to the status; 0 without one. */
function post(url: string, body: string, fault: Fault): Promise<number> {
  const { method = 'POST', path = '', headers = {}, timeoutMs = 5_000 } = fault
  const { sign = (body, secret) => hmac('sha1', body, secret) } = fault
  const all = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'Shop/1.0',
    'x-signature': sign(body, SECRET),
    ...headers,
  }
  const set = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return new Promise((resolve) => {
    const options = { method, headers: Object.fromEntries(set), signal: AbortSignal.timeout(timeoutMs) }
    const request = http.request(url + path, options, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('error', () => resolve(0)).end(body)
  })
}
