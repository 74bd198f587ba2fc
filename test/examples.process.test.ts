/** The examples, each as a user starts it. */

import { fileURLToPath } from 'node:url'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterEach, expect, test } from 'vitest'
import { type Child, startNode } from './docs/child.ts'
import { needs } from './support/needs.ts'

const SECRET = 'the secret of the examples'

let app: Child | undefined

afterEach(() => app?.kill('SIGKILL'))

test.each([
  ['express', true],
  ['koa', true],
  ['fastify', true],
  ['node', false],
  ['fetch', false],
])('examples/%s.ts receives, and shuts down', { ...needs('POSIX'), timeout: 30_000 }, async (name, hasEcho) => {
  app = start(name, { HOOKLINE_SECRET: SECRET, PORT: '0' })
  const [url] = await app.printed(/http:\/\/127\.0\.0\.1:\d+\/webhooks/)

  expect((await fetch(url, signedRequest(fixtures.track, SECRET))).status).toBe(200)
  await app.printed(/event: 'Order Completed'/)
  const hostile = { ...fixtures.track, event: `a \u001b[2J b\u009bc\nd` }
  expect((await fetch(url, signedRequest(hostile, SECRET))).status).toBe(200)
  await app.printed(/event: 'a \\x1B\[2J b\\x9Bc\\nd'/)
  const forged = await fetch(url, signedRequest(fixtures.track, 'another secret'))
  expect([forged.status, await forged.json()]).toMatchObject([401, { code: 'signature_mismatch' }])
  expect((await fetch(url.replace('/webhooks', '/other'))).status).toBe(404)
  if (hasEcho) {
    const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":1}' }
    expect(await (await fetch(url.replace('/webhooks', '/echo'), json)).json()).toEqual({ a: 1 })
  }

  app.kill('SIGTERM')
  expect(await app.exit).toBe(0)
})

test('an example without a secret does not start', { timeout: 30_000 }, async () => {
  app = start('express', { HOOKLINE_SECRET: undefined, PORT: '0' })
  expect(await app.exit).not.toBe(0)
  expect(app.output).toContain('`secret`')
})

test('the tests of the orders app pass with node:test', { timeout: 30_000 }, async () => {
  app = startNode(['--test', '--test-reporter=tap', fileIn('testing/orders.node.test.ts')])
  expect(await app.exit, app.output).toBe(0)
  expect(app.output).toMatch(/^# pass 32$/m)
})

function start(name: string, env: Readonly<Record<string, string | undefined>>): Child {
  return startNode([fileIn(`${name}.ts`)], { env })
}

function fileIn(path: string): string {
  return fileURLToPath(new URL(`../examples/${path}`, import.meta.url))
}
