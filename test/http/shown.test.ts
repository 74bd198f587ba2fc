import { expect, it } from 'vitest'
import { shownHeader, shownUrl } from '../../src/http/shown.ts'

const SIGNATURE = 'fc6d03c9286e0fa24d2b6ee2f4bb10acbf4e6a2a'

it.each([
  ['Content-Type', 'application/json'],
  ['user-agent', 'sender/1.0'],
  ['X-Signature', SIGNATURE],
  ['x-request-id', 'a-1'],
])('shows %s', (name, value) => {
  expect(shownHeader(name, value)).toBe(value)
})

it.each([
  ['Authorization', 'Basic c2VjcmV0'],
  ['Set-Cookie', 'id=secret'],
  ['X-Vercel-Protection-Bypass', 'secret'],
  ['X-Team', 'what nobody knows may be one'],
  ['X-Signature', 'the shared secret'],
  ['X-Signature', `sha1=${SIGNATURE}`],
  ['X-Signature', `${SIGNATURE}\n`],
  ['__proto__', 'x'],
  ['', 'x'],
])('hides %s: %s', (name, value) => {
  expect(shownHeader(name, value)).toBeUndefined()
})

it.each([
  ['/webhooks', '/webhooks'],
  ['/webhooks?token=secret', '/webhooks?…'],
  ['/webhooks?a=1?token=secret#x', '/webhooks?…'],
  ['/webhooks#access_token=secret', '/webhooks'],
  ['https://user:secret@shop.example/a?b', 'https://shop.example/a?…'],
  ['//user:secret@shop.example/a', '//shop.example/a'],
  ['*', '*'],
  ['', ''],
])('shows %s as %s', (url, shown) => {
  expect(shownUrl(url)).toBe(shown)
  expect(shownHeader('Referer', url)).toBe(shown)
  expect(shownHeader('location', url)).toBe(shown)
})
