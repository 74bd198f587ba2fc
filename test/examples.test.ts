/** The examples, each as a user starts it. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterEach, expect, test } from 'vitest'
import { toFailure, toPassing } from '../examples/demo/table.ts'
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
])(
  'examples/%s.ts accepts a signed message, refuses a forged one, leaves other routes alone and shuts down',
  { ...needs('POSIX'), timeout: 30_000 },
  async (name, hasEcho) => {
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
  },
)

test('no example prints a text that a sender wrote as it is: of an object it is escaped', () => {
  const folders = ['docs', 'examples', 'skills', 'tools/command/src/init']
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((file) => join(folder, String(file))),
  )
  const isRead = (file: string): boolean =>
    /\.(md|js|ts)$/.test(file) && !TYPED.includes(file) && !GENERATED.some((folder) => file.startsWith(folder))
  const code = ['README.md', ...files].filter(isRead)
  const found = code.filter((file) => /console\.log\(('[^']*', )?message\??\./.test(readFileSync(file, 'utf8')))

  expect(found).toEqual([])
})

/** The reference shows the types of fields, and a build of the guides may be under way. */
const GENERATED = [join('docs', 'api'), join('docs', '.vitepress')]

/** They show the types of fields. */
const TYPED = ['docs/typed-events.md', 'docs/moving.md'].map((file) => join(...file.split('/')))

test.each([toPassing, toFailure])('a line of the demo has no character that moves the cursor', (toLine) => {
  const line = toLine('receiver', 'a \u001b[2J b\u009bc\n\u202ed')

  expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u)
})

test('an example without a secret does not start', { timeout: 30_000 }, async () => {
  app = start('express', { HOOKLINE_SECRET: undefined, PORT: '0' })

  expect(await app.exit).not.toBe(0)
  expect(app.output).toContain('`secret` is required')
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
