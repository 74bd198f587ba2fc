/** The examples of hosts, as a user builds, starts and ends them. */

import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createReceiver } from '../../../src/index.ts'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { freePort } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { clientOfHttp1 } from '../../support/wire.ts'
import { openProjects } from './project.ts'

interface Host {
  readonly name: string
  readonly example: string
  /** Undefined where nothing is built. */
  readonly build?: string
  /** It gets its port as `PORT`, in the environment and here. */
  readonly start: string
  /** Where its receiver is, when that is not `/webhooks`. */
  readonly path?: string
  /** What it needs beside the secret. */
  readonly env?: Readonly<Record<string, string>>
  /** Whether it has an inbox, which the server starts and the build does not. */
  readonly hasInbox?: true
  /** Whether it creates the receiver when it starts: without the secret it does not start. */
  readonly isEager?: true
  /** Whether it reads a body before it calls the receiver, which does not hear of one that is interrupted. */
  readonly isBuffered?: true
}

/** From the folder of a project. */
const PROGRAMS = '../../../hosts/programs'
const CLOUD = 'functions-framework --target=webhooks'
const [isEager, isBuffered, hasInbox] = [true, true, true] as const
const adonisEnv = { APP_KEY: 'the key of an app that is tested' }

const HOSTS: readonly Host[] = [
  { name: 'Next.js', example: 'next', build: 'next build', start: 'next start -H 127.0.0.1 -p PORT', hasInbox },
  { name: 'SvelteKit', example: 'sveltekit', build: 'vite build', start: 'node build', hasInbox },
  { name: 'NestJS', example: 'nest', build: 'tsc', start: 'node dist/main.js', isEager },
  { name: 'NestJS on Fastify', example: 'nest', build: 'tsc', start: 'node dist/fastify.js', isEager },
  { name: 'NestJS without its parser', example: 'nest', build: 'tsc', start: 'node dist/middleware.js', isEager },
  { name: 'Hono on Node', example: 'hono', start: 'node node.ts' },
  { name: 'Hono on Bun', example: 'hono', start: 'bun app.ts' },
  { name: 'Hono on Deno', example: 'hono', start: 'deno serve --allow-env --port PORT app.ts' },
  { name: 'Google Cloud Functions', example: 'google-cloud-functions', start: CLOUD, isEager, isBuffered },
  { name: 'Firebase Functions', example: 'firebase', start: CLOUD, isBuffered }, // What Firebase runs a deployed function with.
  { name: 'Azure Functions', example: 'azure', build: 'tsc', start: `node ${PROGRAMS}/azure.ts`, isEager, isBuffered },
  {
    name: 'Vercel',
    example: 'vercel',
    start: `node ${PROGRAMS}/web.ts api/webhooks.ts`,
    path: '/api/webhooks',
    isEager,
  },
  { name: 'Netlify', example: 'netlify', start: `node ${PROGRAMS}/web.ts netlify/functions/webhooks.ts`, isEager },
  {
    name: 'React Router',
    example: 'react-router',
    build: 'react-router build',
    start: 'react-router-serve build/server/index.js',
  },
  { name: 'Astro', example: 'astro', build: 'astro build', start: 'node dist/server/entry.mjs' },
  { name: 'Elysia', example: 'elysia', start: 'bun app.ts', isEager },
  { name: 'Nitro', example: 'nitro', build: 'nitro build', start: 'node .output/server/index.mjs' },
  { name: 'h3 2', example: 'h3', start: 'node app.ts', isEager },
  { name: 'AdonisJS', example: 'adonis', build: 'tsc', start: 'node build/bin/server.js', env: adonisEnv },
  { name: 'hapi', example: 'hapi', start: 'node app.ts', isEager },
]

const SECRET = 'the secret of the hosts'
const DEADLINE_MS = 4_500

const { copy, run } = openProjects()

test.concurrent.each(HOSTS)('$name', async (host) => {
  const project = copy(host.example)
  const stored = host.hasInbox ? await storeOne(project) : undefined
  if (host.build !== undefined) {
    const build = run(project, host.build.split(' '))
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
    const bare = run(project, host.start.split(' '), { PORT: '0' })
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
  const child = run(project, start.replace('PORT', `${port}`).split(' '), env)
  const { send } = clientOfHttp1(port)
  const ended = child.exit.then(() => Promise.reject(new Error(`It ended before it listened:\n${child.output}`)))
  const isUp = () => send({ method: 'GET', headers: {}, chunks: [] }).then(Boolean, () => false)
  await Promise.race([until(isUp), ended])

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
