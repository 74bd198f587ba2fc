import { expect, it } from 'vitest'
import { shownHeader, shownUrl } from '../../src/kit/shown.ts'

const SIGNATURE = 'fc6d03c9286e0fa24d2b6ee2f4bb10acbf4e6a2a'

it.each<[name: string, value: string, isVerified?: boolean]>([
  ['Content-Type', 'application/json'],
  ['user-agent', 'sender/1.0'],
  ['X-Signature', SIGNATURE, true],
])('shows %s', (name, value, isVerified) => {
  expect(shownHeader(name, value, isVerified)).toBe(value)
})

it.each([
  ...['Authorization', 'Cookie', 'Set-Cookie', 'Proxy-Authorization', 'X-Api-Key', 'X-Vercel-Protection-Bypass'],
  ...['X-Team', '__proto__', 'X-Signature'], // The signature may be the secret itself.
])('hides %s', (name) => {
  expect(shownHeader(name, SIGNATURE)).toBeUndefined()
})

it.each([
  ['/webhooks', '/webhooks'],
  ['/webhooks?token=secret', '/webhooks?…'],
  ['/webhooks?a=1?token=secret#x', '/webhooks?…'],
  ['/webhooks#access_token=secret', '/webhooks'],
  ['https://user:secret@shop.example/a?b', 'https://shop.example/a?…'],
  ['//user:secret@shop.example/a', '//shop.example/a'],
  ['android-app://user:secret@shop/', 'android-app://shop/'],
  ['/a%3FwriteKey%3Dsecret', '/a?…'],
  ['/a;writeKey=secret', '/a?…'],
  ['', ''],
])('shows %s as %s', (url, shown) => {
  expect(shownUrl(url)).toBe(shown)
  expect(shownHeader('Referer', url)).toBe(shown)
  expect(shownHeader('location', url)).toBe(shown)
  expect(shownHeader('Origin', url)).toBe(shown)
})
