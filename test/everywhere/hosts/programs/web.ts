/** Serves a function with a web signature, as Vercel and Netlify call it: `node web.ts <file>` in the directory of a project. */

import { createServer, type IncomingMessage } from 'node:http'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pathToFileURL } from 'node:url'

const [file = ''] = process.argv.slice(2)
const functions = await import(pathToFileURL(resolve(file)).href)
const context = { requestId: '01J', params: {}, waitUntil: () => {} }

/** Vercel: by the method and the place of the file. Netlify: the default export, at the path of its `config`. */
function find({ url = '', method = '' }: IncomingMessage): unknown {
  if (functions.config === undefined) return url === '/api/webhooks' ? functions[method] : undefined
  return url === functions.config.path ? functions.default : undefined
}

const server = createServer(async (incoming, outgoing) => {
  const handler = find(incoming)
  if (typeof handler !== 'function') return void outgoing.writeHead(404).end()
  const { url = '', method = '', headers } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = hasBody ? (Readable.toWeb(incoming) as ReadableStream) : null
  const init = { method, headers: headers as Record<string, string>, body, duplex: 'half' } as const
  const response: Response = await handler(new Request(`https://shop.example${url}`, init), context)
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  await pipeline(response.body ?? [], outgoing).catch(() => outgoing.destroy())
})
server.listen(process.env.PORT)
process.once('SIGTERM', () => process.exit())
