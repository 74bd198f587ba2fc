/** The examples of hosts, as a user builds, starts and ends them. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { createReceiver } from '../../../src/index.ts'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { freePort } from '../../support/redis.ts'
import { clientOfHttp1 } from '../../support/wire.ts'
import { openProjects } from './project.ts'

interface Host {
  readonly name: string
  readonly example: string
  /** Changes one of its files. */
  readonly edit?: (project: string) => void
  /** Undefined where nothing is built. */
  readonly build?: readonly string[]
  readonly start: (port: string) => readonly string[]
  /** Where its receiver is, when that is not `/webhooks`. */
  readonly path?: string
  /** What it needs beside the secret. */
  readonly env?: Readonly<Record<string, string>>
  /** Whether it has an inbox, which the server starts and the build does not. */
  readonly hasInbox?: boolean
  /** Whether it creates the receiver when it starts: without the secret it does not start. */
  readonly isEager?: boolean
  /** Whether it reads a body before it calls the receiver, which does not hear of one that is interrupted. */
  readonly isBuffered?: boolean
}

const [AZURE, WEB] = ['azure', 'web'].map((name) => fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url))) as [
  string,
  string,
]

const HOSTS: readonly Host[] = [
  {
    name: 'Next.js',
    example: 'next',
    build: ['next', 'build'],
    start: (port) => ['next', 'start', '--hostname', '127.0.0.1', '--port', port],
    hasInbox: true,
  },
  { name: 'SvelteKit', example: 'sveltekit', build: ['vite', 'build'], start: () => ['node', 'build'], hasInbox: true },
  { name: 'NestJS', example: 'nest', build: ['tsc'], start: () => ['node', 'dist/main.js'], isEager: true },
  {
    name: 'NestJS on Fastify',
    example: 'nest',
    build: ['tsc'],
    start: () => ['node', 'dist/fastify.js'],
    isEager: true,
  },
  {
    name: 'NestJS without its parser',
    example: 'nest',
    build: ['tsc'],
    start: () => ['node', 'dist/middleware.js'],
    isEager: true,
  },
  {
    name: 'NestJS with rawBody',
    example: 'nest',
    edit: keepRawBody,
    build: ['tsc'],
    start: () => ['node', 'dist/middleware.js'],
    isEager: true,
    isBuffered: true,
  },
  { name: 'Hono on Node', example: 'hono', start: () => ['node', 'node.ts'] },
  { name: 'Hono on Bun', example: 'hono', start: () => ['bun', 'app.ts'] },
  {
    name: 'Hono on Deno',
    example: 'hono',
    start: (port) => ['deno', 'serve', '--allow-env', '--port', port, 'app.ts'],
  },
  {
    name: 'Google Cloud Functions',
    example: 'google-cloud-functions',
    start: () => ['functions-framework', '--target=webhooks'],
    isEager: true,
    isBuffered: true,
  },
  // What Firebase runs a deployed function with.
  {
    name: 'Firebase Functions',
    example: 'firebase',
    start: () => ['functions-framework', '--target=webhooks'],
    isBuffered: true,
  },
  {
    name: 'Azure Functions',
    example: 'azure',
    build: ['tsc'],
    start: () => ['node', AZURE],
    isEager: true,
    isBuffered: true,
  },
  {
    name: 'Azure Functions with streams',
    example: 'azure',
    build: ['tsc'],
    start: () => ['node', AZURE, 'stream'],
    isEager: true,
    isBuffered: true,
  },
  {
    name: 'Vercel',
    example: 'vercel',
    start: () => ['node', WEB, 'api/webhooks.ts'],
    path: '/api/webhooks',
    isEager: true,
  },
  { name: 'Netlify', example: 'netlify', start: () => ['node', WEB, 'netlify/functions/webhooks.ts'], isEager: true },
  {
    name: 'React Router',
    example: 'react-router',
    build: ['react-router', 'build'],
    start: () => ['react-router-serve', 'build/server/index.js'],
  },
  { name: 'Astro', example: 'astro', build: ['astro', 'build'], start: () => ['node', 'dist/server/entry.mjs'] },
  { name: 'Elysia', example: 'elysia', start: () => ['bun', 'app.ts'], isEager: true },
  {
    name: 'Nitro',
    example: 'nitro',
    build: ['nitro', 'build'],
    start: () => ['node', '.output/server/index.mjs'],
  },
  { name: 'h3 2', example: 'h3', start: () => ['node', 'app.ts'], isEager: true },
  {
    name: 'AdonisJS',
    example: 'adonis',
    build: ['tsc'],
    start: () => ['node', 'build/bin/server.js'],
    env: { APP_KEY: 'the key of an app that is tested' },
  },
  { name: 'hapi', example: 'hapi', start: () => ['node', 'app.ts'], isEager: true },
]

const SECRET = 'the secret of the hosts'
const DEADLINE_MS = 4_500

const { copy, run } = openProjects()

test.concurrent.each(HOSTS)('$name', async (host) => {
  const project = copy(host.example)
  host.edit?.(project)
  const stored = host.hasInbox === true ? await storeOne(project) : undefined
  if (host.build !== undefined) {
    const build = run(project, host.build, {})
    expect(await build.exit, build.output).toBe(0)
    expect(build.output).not.toContain('track')
    expect(await stored?.waiting()).toBe(stored && 1)
  }

  const app = await start(host, project, SECRET)
  const since = performance.now()
  expect(await app.post('anna')).toEqual([200, undefined])
  await app.printed(/\banna\b/)
  expect(await app.post('mallory', { secret: 'another secret' })).toEqual([401, 'signature_mismatch'])
  expect(await app.post('bert', { length: 400_000 })).toEqual([200, undefined])
  await app.printed(/\bbert\b/)
  await app.abort('carol')
  if (host.isBuffered !== true) await app.printed(/\bbody_aborted\b/)
  for (let sent = 0; sent < 3; sent++) await app.overflow('erik')
  expect(await app.post('dora')).toEqual([200, undefined])
  await app.printed(/\bdora\b/)
  if (stored !== undefined) await app.printed(/\bstored\b/)
  if (host.build === undefined) await setTimeout(Math.max(0, DEADLINE_MS + 100 - (performance.now() - since)))
  expect(app.output).not.toMatch(/mallory|carol|erik|handler_timeout|uncaught|ERR_INVALID_STATE/)
  app.kill('SIGTERM')
  await app.exit

  if (host.isEager === true) {
    const bare = run(project, host.start('0'), { PORT: '0' })
    expect(await bare.exit).not.toBe(0)
    expect(bare.output).toContain('`secret` is required. Got undefined.')
    return
  }
  const bare = await start(host, project, '')
  for (const user of ['anna', 'bert']) expect(await bare.post(user)).toEqual([503, 'secret_unavailable'])
  expect(bare.output).toContain('`secret` must be a non-empty string.')
  expect(bare.output).not.toMatch(/anna|bert/)
  bare.kill('SIGTERM')
  await bare.exit
})

/** Has NestJS read all bodies, and keep them, in place of none. */
function keepRawBody(project: string): void {
  const main = join(project, 'src/middleware.ts')
  const code = readFileSync(main, 'utf8')
    .replace('create(', "create<import('@nestjs/platform-express').NestExpressApplication>(")
    .replace('bodyParser: false })', "rawBody: true })\napp.useBodyParser('json', { limit: '512kb' })")
  writeFileSync(main, code)
}

/** Stores a message in the inbox of a project that does not run. */
async function storeOne(project: string) {
  const openInbox = () => sqliteQueue({ path: join(project, 'webhooks.sqlite'), name: 'inbox' })
  const receiver = createReceiver({ secret: SECRET, inbox: openInbox() })
  const { bytes, headers } = messageOf('stored')
  await receiver.receive(bytes, headers)
  await receiver.close()
  return {
    async waiting() {
      const inbox = openInbox()
      const { waiting } = await inbox.counts()
      await inbox.close({ graceMs: 0 })
      return waiting
    },
  }
}

function messageOf(userId: string, { secret = SECRET, length = 0 } = {}) {
  return signedRequest({ ...fixtures.track, userId, properties: { text: 'x'.repeat(length) } }, secret)
}

/** Starts a host that is built, with this secret, and waits until it answers. */
async function start({ start, path = '/webhooks', env: own }: Host, project: string, secret: string) {
  const port = await freePort()
  const env = { HOST: '127.0.0.1', PORT: String(port), ...own, ...(secret !== '' && { HOOKLINE_SECRET: secret }) }
  const child = run(project, start(String(port)), env)
  const { send } = clientOfHttp1(port)
  let hasEnded = false
  void child.exit.then(() => {
    hasEnded = true
  })
  const isUp = () => send({ method: 'GET', headers: {}, chunks: [] }).then(Boolean, () => false)
  while (!(await isUp())) {
    if (hasEnded) throw new Error(`It ended before it listened:\n${child.output}`)
    await setTimeout(50)
  }

  return {
    printed: child.printed,
    kill: child.kill,
    exit: child.exit,
    get output() {
      return child.output
    },
    async post(userId: string, options?: { readonly secret?: string; readonly length?: number }) {
      const { bytes, headers } = messageOf(userId, options)
      const reply = await send({ path, headers, chunks: [bytes] })
      return [reply?.status, JSON.parse(reply?.text ?? '{}').code]
    },
    /** Sends more than the limit. A client that is still writing may miss the answer. */
    async overflow(userId: string) {
      const { bytes, headers } = messageOf(userId, { length: 700_000 })
      await send({ path, headers, chunks: [bytes] }).catch(() => undefined)
    },
    async abort(userId: string) {
      const { bytes, headers } = messageOf(userId, { length: 200_000 })
      const chunks = [bytes.subarray(0, 100_000)]
      await send({ path, headers, chunks, contentLength: bytes.length, ending: 'abort' })
    },
  }
}
