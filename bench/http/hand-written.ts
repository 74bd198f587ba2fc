/** The verification that a careful engineer writes without a library: form, HMAC, constant time, limit. */

import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { secret } from '../message.ts'

/** Most bytes of a body. */
export const LIMIT = 512 * 1024

const key = createSecretKey(Buffer.from(secret))

/** Whether the signature of the headers is the body's. */
export function isAuthentic(headers: IncomingHttpHeaders, body: Buffer): boolean {
  const signature = headers['x-signature']
  if (typeof signature !== 'string' || !/^[0-9a-f]{40}$/.test(signature)) return false
  const expected = createHmac('sha1', key).update(body).digest()
  return timingSafeEqual(expected, Buffer.from(signature, 'hex'))
}

/** Whether the headers announce JSON. */
function isJson(headers: IncomingHttpHeaders): boolean {
  return /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')
}

/** The message of a body, or undefined. */
export function parseMessage(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

/** Reads a body; undefined when it is larger than the limit. */
function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > LIMIT) resolve(undefined)
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', reject)
  })
}

/** Receives a request of node:http: the message, or the status of the refusal. */
export async function receive(request: IncomingMessage): Promise<{ message: unknown } | { status: number }> {
  if (!isJson(request.headers)) return { status: 415 }
  const body = await readBody(request)
  if (body === undefined) return { status: 413 }
  if (!isAuthentic(request.headers, body)) return { status: 401 }
  const message = parseMessage(body)
  return message === undefined ? { status: 400 } : { message }
}
