/**
 * Runs blocks of code, one after the other, and sends messages to what each makes: a server that listens, an exported
 * `POST`, an exported default with `fetch`, or an exported `handler` of a serverless function. All seven messages,
 * signed, must be answered 200, and a forged one 401. A server with the page of an inspector must serve what that links to
 * instead. Writes what came of each block into the file named first.
 *
 * Convention for the blocks: the secret is in HOOKLINE_SECRET, the path is /webhooks, and that of an inspector / or /hookline.
 */

import { deepEqual, equal } from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { fixtures, type SignedRequest, signedRequest } from 'hookline/testing'

export type BlockResult = { readonly tried: readonly string[] } | { readonly error: string }

type Send = (request: SignedRequest) => Promise<number>

const PATIENCE_MS = 20_000

const servers: Server[] = []
const listen = Server.prototype.listen
// The port a block names may be taken on the machine of the test, and blocks run side by side.
Server.prototype.listen = function (this: Server, ...args: unknown[]) {
  servers.push(this)
  const callback = args.findLast((argument): argument is () => void => typeof argument === 'function')
  return listen.call(this, { port: 0, host: '127.0.0.1' }, callback)
} as typeof listen

// What a block leaves running fails the block, not its neighbours.
let fail: (error: unknown) => void = () => {}
process.on('uncaughtException', (error) => fail(error))

const [, , report = '', ...paths] = process.argv
const results: Record<string, BlockResult> = {}
for (const path of paths) {
  results[path] = await new Promise<BlockResult>((resolve) => {
    fail = (error) => resolve({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    const timer = setTimeout(() => fail(new Error(`It did not end within ${PATIENCE_MS} ms.`)), PATIENCE_MS)
    tryBlock(path)
      .then((tried) => resolve({ tried }), fail)
      .finally(() => clearTimeout(timer))
  })
  for (const server of servers.splice(0)) server.close()
}
writeFileSync(report, JSON.stringify(results))
process.exit()

async function tryBlock(path: string): Promise<string[]> {
  const block = await import(pathToFileURL(path).href)
  const pages = (await Promise.all(servers.map(findPage))).filter((page) => page !== undefined)
  for (const page of pages) {
    const { status } = await fetch(new URL('page.js', page.url))
    equal(status, 200, 'the page has no script')
  }
  const targets = findTargets(block, pages)
  const secret = process.env.HOOKLINE_SECRET ?? ''
  for (const [name, send] of targets) {
    const statuses: Record<string, number> = {}
    for (const message of Object.values(fixtures)) statuses[message.type] = await send(signedRequest(message, secret))
    statuses.forged = await send(signedRequest(fixtures.track, 'not the secret'))
    const signed = Object.fromEntries(Object.keys(fixtures).map((type) => [type, 200]))
    deepEqual(statuses, { ...signed, forged: 401 }, `${name}: wrong statuses ${JSON.stringify(statuses)}`)
  }
  await nextTurn() // A rejection that nobody handles is reported once the block is done.
  return [...targets.keys(), ...pages.map(() => 'page')]
}

interface Page {
  readonly server: Server
  readonly url: string
}

async function findPage(server: Server): Promise<Page | undefined> {
  if (!server.listening) await once(server, 'listening')
  for (const path of ['/', '/hookline']) {
    const answer = await fetch(originOf(server) + path)
    if ((await answer.text()).includes('src="page.js"')) return { server, url: answer.url }
  }
  return undefined
}

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function findTargets(block: Readonly<Record<string, unknown>>, pages: readonly Page[]): Map<string, Send> {
  const targets = new Map<string, Send>()
  for (const server of servers.filter((each) => pages.every((page) => page.server !== each))) {
    targets.set('listen', async (request) => {
      const answer = await fetch(`${originOf(server)}/webhooks`, request)
      await answer.arrayBuffer()
      return answer.status
    })
  }
  if (typeof block.POST === 'function') targets.set('POST', viaFetch(block.POST as FetchHandler))
  if (typeof block.default === 'object' && block.default !== null && 'fetch' in block.default) {
    targets.set('fetch', viaFetch(block.default.fetch as FetchHandler))
  }
  if (typeof block.handler === 'function') targets.set('handler', viaFunction(block.handler as FunctionHandler))
  return targets
}

type FetchHandler = (request: Request) => Promise<Response>

function viaFetch(handler: FetchHandler): Send {
  return async (request) => (await handler(new Request('http://localhost/webhooks', request))).status
}

type FunctionHandler = (event: object) => Promise<{ statusCode: number }>

function viaFunction(handler: FunctionHandler): Send {
  return async ({ headers, body }) => {
    const requestContext = { http: { method: 'POST' } }
    const bytes = { body: Buffer.from(body).toString('base64'), isBase64Encoded: true }
    const event = { rawPath: '/webhooks', requestContext, headers, ...bytes }
    return (await handler(event)).statusCode
  }
}
