/** The guide of serverless hosts: its files, saved as it names them, each called as its host calls it. */

import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { needs } from '../support/needs.ts'
import { removeQueue } from '../support/redis.ts'
import { extractBlocks } from './blocks.ts'
import { startNode } from './child.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const guide = readFileSync(join(root, 'docs/serverless.md'), 'utf8')
const queue = `guide-${randomUUID()}`
const secret = 'the secret of the guide'
const url = inject('redisUrl')
const env = { HOOKLINE_SECRET: secret, REDIS_URL: url, CRON_SECRET: 'of the cron' }
let folder = ''

beforeAll(() => {
  mkdirSync(join(root, '.cache'), { recursive: true })
  folder = mkdtempSync(join(root, '.cache/serverless-'))
  for (const { file, code } of extractBlocks('docs/serverless.md', guide)) {
    if (file === undefined) continue
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, code.replace("name: 'inbox'", `name: '${queue}'`))
  }
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  vi.spyOn(console, 'log').mockImplementation(() => {})
})

afterAll(async () => {
  if (url !== undefined) {
    const { receiver } = await load('inbox.ts')
    await receiver.close()
    const redis = new Redis(url)
    await removeQueue(redis, queue)
    redis.disconnect()
  }
  rmSync(folder, { recursive: true, force: true })
})

async function load(file: string) {
  return import(pathToFileURL(join(folder, file)).href)
}

async function store(count: number): Promise<void> {
  const { receiver } = await load('inbox.ts')
  for (let index = 0; index < count; index += 1) {
    const { bytes, headers } = signedRequest({ ...fixtures.track, messageId: randomUUID() }, secret)
    expect(await receiver.receive(bytes, headers)).toMatchObject({ status: 200 })
  }
}

it('the cron route of Vercel handles what is stored, for the cron job alone', needs('Redis'), async () => {
  const { GET } = await load('app/cron/route.ts')
  const call = (authorization?: string): Promise<Response> =>
    GET(new Request('https://example.com/cron', authorization === undefined ? {} : { headers: { authorization } }))
  await store(2)

  expect((await call()).status).toBe(401)
  expect((await call('Bearer another')).status).toBe(401)
  vi.stubEnv('CRON_SECRET', undefined)
  expect((await call('Bearer undefined')).status).toBe(401)
  vi.stubEnv('CRON_SECRET', env.CRON_SECRET)
  const response = await call(`Bearer ${env.CRON_SECRET}`)

  expect(await response.json()).toEqual({ handled: 2, failed: 0, left: 0 })
})

it('after an answer on Vercel, requests share one call', needs('Redis'), async () => {
  const { work } = await load('work.ts')
  await store(1)
  const [one, other] = [work(), work()]
  expect(other).toBe(one)
  expect(await one).toEqual({ handled: 1, failed: 0, left: 0 })
})

it('the second function on Lambda handles what the first has stored', needs('Redis'), async () => {
  const { work } = await load('worker.ts')
  await store(1)
  expect(await work({}, {})).toEqual({ handled: 1, failed: 0, left: 0 })
})

it('the job of Cloud Run handles what is stored, and its process ends', needs('Redis'), async () => {
  await store(1)

  const job = startNode(['--input-type=module', '--eval', "import { run } from './job.ts'\nawait run()"], {
    cwd: folder,
    env,
  })

  expect(await job.exit).toBe(0)
  expect(job.output).toContain('{ handled: 1, failed: 0, left: 0 }')
})
