/** What the servers of the benchmark share: the path, the answer, how they listen and read a body, and how the floors verify. */

import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { signBytes } from '../hmac.ts'

/** The path that every server answers. */
export const path = '/webhooks'

/** The answer that every server gives. */
export const answerBody = '{"ok":true}'

/** The headers of that answer. */
export const answerHeaders = { 'content-type': 'application/json', 'content-length': answerBody.length }

/** Lets a server listen on loopback, and returns its port. A connection that waits for its turn stays open. */
export async function listen(server: Server): Promise<number> {
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Reads a body with as little as node:http allows, and with no limit. */
export function readBare(request: IncomingMessage, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => done(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
}

/** What a floor does with a body: verifies it by two one-shot hashes, in constant time, and parses it. */
export function acceptBare(body: Buffer, signature: unknown): boolean {
  if (typeof signature !== 'string' || signature.length !== LENGTH) return false
  given.write(signature, 'latin1')
  expected.write(signBytes(body), 'latin1')
  if (!timingSafeEqual(given, expected)) return false
  handle(JSON.parse(body.toString()))
  return true
}

const LENGTH = 40
const given = Buffer.alloc(LENGTH)
const expected = Buffer.alloc(LENGTH)

let count = 0

/** The handler behind every server. */
export function handle(_message: unknown): void {
  count += 1
}

/** How many messages the handler got. */
export function handled(): number {
  return count
}
