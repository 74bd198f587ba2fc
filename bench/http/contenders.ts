/** What the servers of all frameworks share: their names, the handler, the answer, and how a body is read. */

import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { secret } from '../message.ts'
import { importPeer } from '../peers.ts'

/** Makes a server that does not listen yet. */
export type CreateServer = () => Server | Promise<Server>

/** The servers of one framework, by the way they receive. */
export interface Contenders {
  /** The raw body, read the cheapest way, and JSON.parse. */
  readonly bare: CreateServer
  /** What a careful engineer writes without a library. */
  readonly 'hand-written': CreateServer
  readonly octokit?: CreateServer
  readonly hookline: CreateServer
}

/** The path that every server answers. */
export const path = '/webhooks'

/** The answer that every server gives, but octokit's, which gives its own. */
export const answer = '{"ok":true}'

/** The headers of that answer. */
export const answerHeaders = { 'content-type': 'application/json', 'content-length': answer.length }

let count = 0

/** The handler behind every server. */
export function handle(_message: unknown): void {
  count++
}

/** How many messages the handler got. */
export function handled(): number {
  return count
}

/** Reads a body with as little as node:http allows, and with no limit. */
export function readBare(request: IncomingMessage, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => done(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
}

/** Octokit's listener, for any framework that stands on node:http. */
export async function octokitListener(): Promise<RequestListener> {
  const { Webhooks, createNodeMiddleware } = await importPeer<Octokit>('@octokit/webhooks')
  const webhooks = new Webhooks({ secret })
  webhooks.on('push', handle)
  return createNodeMiddleware(webhooks, { path })
}

interface Octokit {
  readonly Webhooks: new (options: { secret: string }) => { on(event: string, handler: (event: unknown) => void): void }
  readonly createNodeMiddleware: (webhooks: object, options: { path: string }) => RequestListener
}
