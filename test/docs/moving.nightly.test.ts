/** The hand-written receiver of docs/moving.md, and its server with several senders. */

import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fixtures, signedRequest } from 'hookline/testing'
import { Webhook } from 'standardwebhooks'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { extractBlocks } from './blocks.ts'
import { startNode } from './child.ts'

const SECRET = 'the secret of the docs'
const STANDARD_SECRET = `whsec_${btoa(SECRET)}`
const BODY = '{"ref":"main"}'

const root = fileURLToPath(new URL('../../', import.meta.url))
mkdirSync(join(root, '.cache'), { recursive: true })
const folder = mkdtempSync(join(root, '.cache/moving-')) // Below package.json, whose own name leads to what is built.
const LISTEN = "listen(0, function () { console.log('port', this.address().port) })"
const guide = readFileSync(join(root, 'docs/moving.md'), 'utf8')
for (const { file, language, code } of extractBlocks('docs/moving.md', guide)) {
  if (file === undefined || language === 'diff') continue
  writeFileSync(join(folder, file), code.replace('listen(3000)', LISTEN))
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

/** Starts a file of the page. Returns what posts to it, and resolves to the status. */
async function start(file: string, env = {}): Promise<(path: string, request: RequestInit) => Promise<number>> {
  const secrets = { HOOKLINE_SECRET: SECRET, GITHUB_SECRET: SECRET, STANDARD_SECRET }
  const app = startNode([join(folder, file)], { env: { ...secrets, ...env }, cwd: folder })
  onTestFinished(() => app.kill('SIGKILL'))
  const [, port] = await app.printed(/port (\d+)/)
  return async (path, request) => (await fetch(`http://localhost:${port}${path}`, request)).status
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
