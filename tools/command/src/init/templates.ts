/** The files that `hookline init` writes for each framework: a receiver, its test, and `.env.example`. */

export interface Framework {
  /** The path of the receiver, without its extension. */
  readonly path: string
  readonly packages: readonly string[]
  /** The additional packages that TypeScript needs. */
  readonly types: readonly string[]
  /** The imports of an ES module. Like all code here, they are valid in both JavaScript and TypeScript. */
  readonly imports: string
  /** An expression for the secret. It is a function if a build imports the module before the secret is set. */
  readonly secret: string
  /** The code after the handlers. Comments that begin in lower case are code to uncomment. */
  readonly mount: string
  /** The name that `mount` exports. */
  readonly exported: string
  /** The body of a function in the test. It posts a message signed with `secret`, and returns the status of the answer. */
  readonly post: string
  /** Whether the file is a program that listens on `PORT`. */
  readonly isServer: boolean
}

const STOP = '// To shut down cleanly, answer the requests that have arrived, and give the handlers ten seconds:'

const server = {
  path: 'webhooks',
  secret: 'process.env.HOOKLINE_SECRET',
  exported: 'server',
  isServer: true,
  post: `
  const { port } = server.address()
  return (await fetch(\`http://127.0.0.1:\${port}/webhooks\`, signedRequest(fixtures.track, secret))).status`,
}

export const FRAMEWORKS = {
  express: {
    ...server,
    packages: ['express'],
    types: ['@types/express'],
    imports: `
import express from 'express'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/express'`,
    mount: `
const app = express()

// Mount the receiver before any body parser, because the signature covers the exact bytes.
app.post('/webhooks', serve(receiver))

// Tells a load balancer whether to send traffic:
// app.get('/readyz', async (_request, response) => {
//   const { ready, status } = await receiver.health()
//   response.status(ready ? 200 : 503).send(status)
// })

export const server = app.listen(process.env.PORT ?? 3000)

${STOP}
// server.once('close', () => receiver.close())
// process.once('SIGTERM', () => server.close())`,
  },
  koa: {
    ...server,
    packages: ['koa'],
    types: ['@types/koa'],
    imports: `
import { createReceiver } from 'hookline'
import { serve } from 'hookline/koa'
import Koa from 'koa'`,
    mount: `
const app = new Koa()

// Mount the receiver before any body parser, because the signature covers the exact bytes.
app.use(serve(receiver, { path: '/webhooks' }))

// Tells a load balancer whether to send traffic:
// app.use(async (context, next) => {
//   if (context.path !== '/readyz') return next()
//   const { ready, status } = await receiver.health()
//   context.status = ready ? 200 : 503
//   context.body = status
// })

export const server = app.listen(process.env.PORT ?? 3000)

${STOP}
// server.once('close', () => receiver.close())
// process.once('SIGTERM', () => server.close())`,
  },
  fastify: {
    ...server,
    packages: ['fastify'],
    types: [],
    imports: `
import Fastify from 'fastify'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fastify'`,
    mount: `
export const app = Fastify()

app.register(serve(receiver), { path: '/webhooks' })

// Tells a load balancer whether to send traffic:
// app.get('/readyz', async (_request, reply) => {
//   const { ready, status } = await receiver.health()
//   return reply.code(ready ? 200 : 503).send(status)
// })

${STOP}
// app.addHook('onClose', async () => void (await receiver.close()))
// process.once('SIGTERM', () => app.close())

app.listen({ port: Number(process.env.PORT ?? 3000), host: '0.0.0.0' })`,
    exported: 'app',
    post: `
  const { method, headers, body } = signedRequest(fixtures.track, secret)
  return (await app.inject({ method, url: '/webhooks', headers, payload: body })).statusCode`,
  },
  node: {
    ...server,
    packages: [],
    types: [],
    imports: `
import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'`,
    mount: `
const webhooks = serve(receiver, { path: '/webhooks' })

export const server = createServer(async (request, response) => {
  // Tells a load balancer whether to send traffic:
  // if (request.url === '/readyz') {
  //   const { ready, status } = await receiver.health()
  //   response.writeHead(ready ? 200 : 503).end(status)
  //   return
  // }
  webhooks(request, response)
}).listen(process.env.PORT ?? 3000)

${STOP}
// server.once('close', () => receiver.close())
// process.once('SIGTERM', () => server.close())`,
  },
  next: {
    path: 'app/api/webhooks/route',
    packages: [],
    types: [],
    imports: `
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'`,
    secret: '() => process.env.HOOKLINE_SECRET',
    mount: `
// To answer at once and handle messages afterwards, see https://hookline.github.io/hookline/serverless
export const POST = serve(receiver)`,
    exported: 'POST',
    isServer: false,
    post: `
  const request = new Request('http://localhost/api/webhooks', signedRequest(fixtures.track, secret))
  return (await POST(request)).status`,
  },
  hono: {
    path: 'webhooks',
    packages: ['hono'],
    types: [],
    imports: `
import { Hono } from 'hono'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'`,
    secret: '() => process.env.HOOKLINE_SECRET',
    mount: `
const webhook = serve(receiver)

// Add these routes to your app with app.route('/', webhooks), or serve them directly.
export const webhooks = new Hono()

webhooks.post('/webhooks', (context) => webhook(context.req.raw))`,
    exported: 'webhooks',
    isServer: false,
    post: `
  return (await webhooks.request('/webhooks', signedRequest(fixtures.track, secret))).status`,
  },
  lambda: {
    path: 'webhooks',
    packages: [],
    types: [],
    imports: `
import { createReceiver } from 'hookline'
import { serve } from 'hookline/lambda'`,
    secret: 'process.env.HOOKLINE_SECRET',
    mount: `
// To answer at once and handle messages afterwards, see https://hookline.github.io/hookline/serverless
export const handler = serve(receiver)`,
    exported: 'handler',
    isServer: false,
    post: `
  const { method, headers, body } = signedRequest(fixtures.track, secret)
  const http = { method, path: '/webhooks', sourceIp: '127.0.0.1' }
  const event = { version: '2.0', rawPath: '/webhooks', rawQueryString: '', headers, body, isBase64Encoded: false }
  return (await handler({ ...event, requestContext: { http } })).statusCode`,
  },
} as const satisfies Readonly<Record<string, Framework>>

export type FrameworkName = keyof typeof FRAMEWORKS

/** Returns the code of the receiver, as an ES module or a CommonJS module. */
export function receiverOf(framework: Framework, isModule: boolean): string {
  const { imports, secret, mount, exported, isServer } = framework
  const [imported, option, started] = isServer ? INBOX : ['', '', '']
  const options = isServer ? `{\n  secret: ${secret},\n  ${option}\n}` : `{ secret: ${secret} }`
  const code = `${imports.trim()}
${imported}
const receiver = createReceiver(${options})

receiver.on('track', (message) => console.log('track', message))
receiver.on('delete', (message) => console.log('forget', message))
${started}
${mount.trim()}
`
  return isModule ? code : toCommonJs(code, exported)
}

/** Commented-out code for an inbox: the import, the option, and the call that starts the inbox. */
const INBOX = [
  `
// An inbox stores each message, answers, and then calls the handlers, with retries. To use it, uncomment the code in this file:
// import { sqliteQueue } from 'hookline/queues/sqlite'
// const queue = sqliteQueue({ path: \`\${process.env.STATE_DIRECTORY ?? '.'}/inbox.sqlite\`, name: 'webhooks' })
`,
  '// inbox: { queue, history: { maxAgeMs: 7 * 24 * 60 * 60_000 } },',
  '// receiver.start()\n',
] as const

function toCommonJs(code: string, exported: string): string {
  const body = code
    .replace(/^((?:\/\/ )?)import (.+) from (.+)$/gm, '$1const $2 = require($3)')
    .replace(/^export /gm, '')
  return `${body}\nmodule.exports = { ${exported} }\n`
}

/** The test runner and the language of the test. */
export interface TestSettings {
  readonly runner: 'node' | 'vitest'
  readonly isTypeScript: boolean
}

/** @param receiver The file to import, such as `./webhooks.js`. */
export function testOf(framework: Framework, receiver: string, { runner, isTypeScript }: TestSettings): string {
  const { exported, post, isServer } = framework
  const isVitest = runner === 'vitest'
  const expectStatus = (call: string, status: number) =>
    isVitest ? `expect(${call}).toBe(${status})` : `assert.equal(${call}, ${status})`
  const imports = isVitest
    ? [
        "import { fixtures, signedRequest } from 'hookline/testing'",
        `import { ${isServer ? 'afterAll, ' : ''}expect, test } from 'vitest'`,
      ]
    : [
        "import assert from 'node:assert/strict'",
        `import { ${isServer ? 'after, ' : ''}test } from 'node:test'`,
        "import { fixtures, signedRequest } from 'hookline/testing'",
      ]
  const code = `${imports.join('\n')}

process.env.HOOKLINE_SECRET = 'secret of the tests'
${isServer ? "process.env.PORT = '0' // Any free port.\n" : ''}const { ${exported} } = await import('${receiver}')
${isServer ? `${isVitest ? 'afterAll' : 'after'}(() => ${exported}.close())\n` : ''}
/** Posts a track message that is signed with this secret. Returns the status of the answer. */
async function post(secret) {
  ${post.trim()}
}

test('an authentic message is accepted', async () => {
  ${expectStatus("await post('secret of the tests')", 200)}
})

test('a forged message is refused', async () => {
  ${expectStatus("await post('another secret')", 401)}
})
`
  return isTypeScript ? toTypeScript(code) : code
}

function toTypeScript(code: string): string {
  const typed = code.replace('post(secret)', 'post(secret: string)')
  if (!code.includes('server.address()')) return typed
  return `import type { AddressInfo } from 'node:net'\n${typed.replace('server.address()', 'server.address() as AddressInfo')}`
}

export function environmentOf({ isServer }: Framework): string {
  return `# The shared secret of the webhook, as in the settings of the sender.\nHOOKLINE_SECRET=\n${isServer ? 'PORT=3000\n' : ''}`
}
