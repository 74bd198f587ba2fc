// Prints, for each subpath that reads bodies, whether the error it throws is the HooklineError of the package's face.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { HooklineError } from 'hookline'
import { serve as serveExpress } from 'hookline/express'
import { serve as serveFastify } from 'hookline/fastify'
import { serve as serveFetch } from 'hookline/fetch'
import { serve as serveKoa } from 'hookline/koa'
import { serve as serveLambda } from 'hookline/lambda'
import { serve as serveNode } from 'hookline/node'

const thrown = {}

/** An endpoint that reads one byte of a longer body, and remembers what it was thrown for that. */
function tooSmallFor(name) {
  return {
    async handle(request) {
      try {
        await request.readBody(1)
      } catch (error) {
        thrown[name] = error instanceof HooklineError && error.code
      }
      return { status: 200, headers: {}, body: '' }
    },
  }
}

async function post(listener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await fetch(`http://127.0.0.1:${server.address().port}`, { method: 'POST', body: 'longer' })
  server.close()
  server.closeAllConnections()
}

await post(serveNode(tooSmallFor('hookline/node')))
await post(serveExpress(tooSmallFor('hookline/express')))

const koa = serveKoa(tooSmallFor('hookline/koa'))
await post(async (req, res) => {
  await koa({ req, res, request: {}, path: '/', url: '/', set() {} })
  res.end()
})

let route
const scope = {
  register() {},
  removeAllContentTypeParsers() {},
  addContentTypeParser() {},
  all: (_path, _options, handler) => (route = handler),
}
await serveFastify(tooSmallFor('hookline/fastify'))(scope, {})
await post((raw, res) => {
  route({ raw, url: '/', body: raw }, { raw: res, sent: false, code() {}, headers() {}, send: () => res.end() })
})

await serveFetch(tooSmallFor('hookline/fetch'))(new Request('http://localhost/', { method: 'POST', body: 'longer' }))

await serveLambda(tooSmallFor('hookline/lambda'))({ httpMethod: 'POST', path: '/', body: 'longer' })

const required = createRequire(import.meta.url)('hookline')
thrown.require = required.HooklineError === HooklineError
console.log(JSON.stringify(thrown))
