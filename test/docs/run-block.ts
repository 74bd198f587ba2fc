/**
 * Runs one block of code and sends messages to what it makes: a server that listens, an exported `POST`, an exported
 * default with `fetch`, or an exported `handler` of a serverless function. All seven messages, signed, must be answered
 * 200, and a forged one 401. Its last line of output says what was tried.
 *
 * Convention for the blocks: the secret is in SHARED_SECRET, the path is /webhooks.
 */

import { deepEqual } from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, Server } from 'node:net'
import { pathToFileURL } from 'node:url'
import { fixtures, type SignedRequest, signedRequest } from 'hookline/testing'

/** Sends a request and says with what status it was answered. */
type Send = (request: SignedRequest) => Promise<number>

const servers: Server[] = []
const listen = Server.prototype.listen
// The port a block names may be taken on the machine of the test, and blocks run side by side.
Server.prototype.listen = function (this: Server, ...args: unknown[]) {
  servers.push(this)
  const callback = args.findLast((argument): argument is () => void => typeof argument === 'function')
  return listen.call(this, { port: 0, host: '127.0.0.1' }, callback)
} as typeof listen

const [, , path = ''] = process.argv
const block: Readonly<Record<string, unknown>> = await import(pathToFileURL(path).href)

const targets = new Map<string, Send>()
for (const server of servers) {
  if (!server.listening) await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  targets.set('listen', async (request) => {
    const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, request)
    await answer.arrayBuffer()
    return answer.status
  })
}
if (typeof block.POST === 'function') targets.set('POST', viaFetch(block.POST as FetchHandler))
if (typeof block.default === 'object' && block.default !== null && 'fetch' in block.default) {
  targets.set('fetch', viaFetch(block.default.fetch as FetchHandler))
}
if (typeof block.handler === 'function') targets.set('handler', viaFunction(block.handler as FunctionHandler))

for (const [name, send] of targets) {
  const secret = process.env.SHARED_SECRET ?? ''
  const statuses: Record<string, number> = {}
  for (const message of Object.values(fixtures)) statuses[message.type] = await send(signedRequest(message, secret))
  statuses.forged = await send(signedRequest(fixtures.track, 'not the secret'))
  const signed = Object.fromEntries(Object.keys(fixtures).map((type) => [type, 200]))
  deepEqual(statuses, { ...signed, forged: 401 }, `${name}: answered with the wrong statuses`)
}
console.log(JSON.stringify({ tried: [...targets.keys()] }))
process.exit()

type FetchHandler = (request: Request) => Promise<Response>

function viaFetch(handler: FetchHandler): Send {
  return async (request) => (await handler(new Request('http://localhost/webhooks', request))).status
}

type FunctionHandler = (event: object) => Promise<{ statusCode: number }>

/** An HTTP event as the gateways of serverless functions pass it. */
function viaFunction(handler: FunctionHandler): Send {
  return async ({ headers, body }) => {
    const event = { headers, body: Buffer.from(body).toString('base64'), isBase64Encoded: true }
    return (await handler(event)).statusCode
  }
}
