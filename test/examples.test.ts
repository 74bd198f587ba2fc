/** The examples, each as a user starts it. */

import { fileURLToPath } from 'node:url'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { type Child, startNode } from './docs/child.ts'

const SECRET = 'the secret of the examples'

let app: Child | undefined

afterEach(() => app?.kill('SIGKILL'))

for (const name of ['express', 'koa', 'fastify', 'node', 'fetch']) {
  test(`examples/${name}.ts takes a signed message, refuses a forged one and shuts down`, {
    timeout: 30_000,
  }, async () => {
    app = start(name, { SHARED_SECRET: SECRET, PORT: '0' })
    const [url] = await app.printed(/http:\/\/127\.0\.0\.1:\d+\/webhooks/)

    const signed = await fetch(url, signedRequest(fixtures.track, SECRET))
    const forged = await fetch(url, signedRequest(fixtures.track, 'another secret'))
    const elsewhere = await fetch(url.replace('/webhooks', '/other'))

    expect(signed.status).toBe(200)
    await app.printed(/track user-1 Order Completed/)
    expect(forged.status).toBe(401)
    expect(await forged.json()).toMatchObject({ code: 'signature_mismatch' })
    expect(elsewhere.status).toBe(404)

    app.kill('SIGTERM')
    expect(await app.exit).toBe(0)
  })
}

for (const name of ['express', 'koa', 'fastify']) {
  test(`examples/${name}.ts leaves the body parser of the other routes alone`, { timeout: 30_000 }, async () => {
    app = start(name, { SHARED_SECRET: SECRET, PORT: '0' })
    const [url] = await app.printed(/http:\/\/127\.0\.0\.1:\d+\/webhooks/)

    const echo = await fetch(url.replace('/webhooks', '/echo'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"a":1}',
    })

    expect(await echo.json()).toEqual({ a: 1 })
  })
}

test('an example without a secret does not start', { timeout: 30_000 }, async () => {
  app = start('express', { SHARED_SECRET: undefined, PORT: '0' })

  expect(await app.exit).not.toBe(0)
  expect(app.output).toContain('`secret` is required')
})

describe('the tests of the orders app', () => {
  test('passes with node:test', { timeout: 30_000 }, async () => {
    app = startNode(['--test', '--test-reporter=tap', fileIn('testing/orders.node.test.ts')])

    expect(await app.exit, app.output).toBe(0)
    expect(app.output).toMatch(/^# pass 32$/m)
  })

  test('passes with vitest', { timeout: 60_000 }, async () => {
    const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
    const here = ['--root', fileIn('testing')] // Its own root, as in a project that has no settings for vitest.

    app = startNode([vitest, 'run', ...here, 'orders.vitest.test.ts'])

    expect(await app.exit, app.output).toBe(0)
    expect(app.output).toMatch(/^ +Tests +32 passed \(32\)$/m)
  })
})

function start(name: string, env: Readonly<Record<string, string | undefined>>): Child {
  return startNode([fileIn(`${name}.ts`)], { env })
}

function fileIn(path: string): string {
  return fileURLToPath(new URL(`../examples/${path}`, import.meta.url))
}
