/** What docs/moving.md says of the receivers that it moves away from, tried on them; and its server with several senders. */

import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createNodeMiddleware, Webhooks } from '@octokit/webhooks'
import { fixtures, signedRequest } from 'hookline/testing'
import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { extractBlocks } from './blocks.ts'
import { startNode } from './child.ts'

const SECRET = 'the secret of the docs'
const STANDARD_SECRET = `whsec_${btoa(SECRET)}`
const BODY = '{"ref":"main"}'

const root = fileURLToPath(new URL('../../', import.meta.url))
mkdirSync(join(root, '.cache'), { recursive: true })
const folder = mkdtempSync(join(root, '.cache/moving-')) // Below package.json, whose own name leads to what is built.
const LISTEN = "listen(0, function () { console.log('port', this.address().port) })"
for (const { file, language, code } of extractBlocks(
  'docs/moving.md',
  readFileSync(join(root, 'docs/moving.md'), 'utf8'),
)) {
  if (file !== undefined && language !== 'diff')
    writeFileSync(
      join(folder, file),
      code.replace('listen(3000)', () => LISTEN),
    )
}

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('each sender of the server is verified in its own way, at its own path', async () => {
  const post = await start('server.ts')

  expect(await post('/webhooks', signedRequest(fixtures.track, SECRET))).toBe(200)
  expect(await post('/webhooks', signedRequest(fixtures.track, 'another'))).toBe(401)
  expect(await post('/github', fromGitHub())).toBe(200)
  expect(await post('/github', fromGitHub('another'))).toBe(400)
  expect(await post('/standard', fromStandard(new Date()))).toBe(204)
  expect(await post('/standard', fromStandard(new Date(), `whsec_${btoa('another')}`))).toBe(400)
  expect(await post('/webhooks', fromGitHub())).toBe(401)
  expect(await post('/webhooks', fromStandard(new Date()))).toBe(401)
})

test('the hand-written receiver starts without a secret, and then accepts what is signed with the empty one', async () => {
  const post = await start('before.mjs', { HOOKLINE_SECRET: undefined })
  const signature = createHmac('sha1', '').update(BODY).digest('hex')

  expect(await post('/webhooks', request({ 'x-signature': signature }))).toBe(200)
  expect(await post('/webhooks', signedRequest(fixtures.track, SECRET))).toBe(401)
})

describe('@octokit/webhooks', () => {
  test('answers 500 with the message of a handler that throws, and tells onError', async () => {
    const webhooks = new Webhooks({ secret: SECRET })
    const errors: string[] = []
    webhooks.onError(({ message }) => errors.push(message))
    webhooks.on('push', () => Promise.reject(new Error('password wrong')))
    const answer = await answerOf(webhooks)

    expect([answer.status, await answer.json()]).toEqual([500, { error: 'Error: password wrong' }])
    expect(errors).toEqual(['password wrong'])
  })

  test('answers 202 when handlers take longer than its timeout', async () => {
    const webhooks = new Webhooks({ secret: SECRET })
    webhooks.on('push', () => new Promise(() => {}))

    expect((await answerOf(webhooks, 10)).status).toBe(202)
    expect(createNodeMiddleware.toString()).toMatch(/timeout = 9e3/)
  })

  test('handles the same request again, and takes further secrets', async () => {
    const webhooks = new Webhooks({ secret: 'new', additionalSecrets: [SECRET] })
    const ids: string[] = []
    webhooks.on('push', ({ id }) => void ids.push(id))

    expect((await answerOf(webhooks)).status).toBe(200)
    expect((await answerOf(webhooks)).status).toBe(200)
    expect(ids).toEqual(['delivery-1', 'delivery-1'])
  })
})

describe('standardwebhooks', () => {
  const webhook = new Webhook(STANDARD_SECRET)

  test.each([-1, 1])('refuses a timestamp that is more than 5 minutes off', (sign) => {
    const at = (ms: number) => fromStandard(new Date(Date.now() + sign * ms)).headers

    expect(webhook.verify(BODY, at(290_000))).toEqual({ ref: 'main' })
    expect(() => webhook.verify(BODY, at(310_000))).toThrow(/Message timestamp too (old|new)/)
  })
})

/** Starts a file of the page. Returns what posts to it, and resolves to the status. */
async function start(file: string, env = {}): Promise<(path: string, request: RequestInit) => Promise<number>> {
  const secrets = { HOOKLINE_SECRET: SECRET, GITHUB_SECRET: SECRET, STANDARD_SECRET }
  const app = startNode([join(folder, file)], { env: { ...secrets, ...env }, cwd: folder })
  onTestFinished(() => app.kill('SIGKILL'))
  const [, port] = await app.printed(/port (\d+)/)
  return async (path, request) => (await fetch(`http://localhost:${port}${path}`, request)).status
}

async function answerOf(webhooks: Webhooks, timeout?: number): Promise<Response> {
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const server = createServer(createNodeMiddleware(webhooks, { path: '/', log, ...(timeout && { timeout }) }))
  await new Promise<void>((resolve) => server.listen(0, resolve))
  onTestFinished(() => void server.close())
  return fetch(`http://localhost:${(server.address() as AddressInfo).port}/`, fromGitHub())
}

function fromGitHub(secret = SECRET) {
  const signature = `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}`
  return request({ 'x-github-event': 'push', 'x-github-delivery': 'delivery-1', 'x-hub-signature-256': signature })
}

function fromStandard(date: Date, secret = STANDARD_SECRET) {
  const signature = new Webhook(secret).sign('msg_1', date, BODY)
  const seconds = String(Math.floor(date.getTime() / 1000))
  return request({ 'webhook-id': 'msg_1', 'webhook-timestamp': seconds, 'webhook-signature': signature })
}

function request<Headers extends object>(headers: Headers) {
  return { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: BODY }
}
