import { describe, expect, it } from 'vitest'
import { readWebhooks } from '../../src/send/webhooks.ts'
import { expectRefusal } from '../support/refusal.ts'

const url = 'https://shop.example/webhooks'
const urls = (count: number) => Array.from({ length: count }, (_, index) => ({ url: `${url}/${index}` }))
/** They describe the message, its signature or the connection. */
const RESERVED = [
  ...['content-type', 'content-length', 'content-encoding', 'user-agent', 'x-signature', 'X-SIGNATURE', 'host'],
  ...['expect', 'connection', 'transfer-encoding', 'upgrade', 'te', 'trailer', 'keep-alive', 'proxy-connection'],
]
const withHeaders = (headers: unknown) => readWebhooks([{ url, headers }])

it.each([1, 5])('Setting · the service list: up to 5 entries, at least one: takes %i', (count) => {
  expect(readWebhooks(urls(count))).toHaveLength(count)
})

describe('Setting · Webhook URL: full, with its scheme', () => {
  it.each([
    ['https://shop.example', 'https://shop.example', '/'],
    ['http://shop.example:8080/a/b', 'http://shop.example:8080', '/a/b'],
    ['https://shop.example/a?b=c&d', 'https://shop.example', '/a?b=c&d'],
  ])('takes %s', (given, origin, path) => {
    expect(readWebhooks([{ url: given }])).toMatchObject([{ origin, path }])
  })

  it('shows it without its query', () => {
    const [target] = readWebhooks([{ url: `${url}?token=t0ken` }])
    const id = 'b19de5c1ffd3d2d4' // Queues store it.
    expect(target).toMatchObject({ url: `${url}?token=t0ken`, shown: `${url}?…`, id })
  })
})

it('static headers are taken and copied', () => {
  const headers = { 'X-Team': 'growth', authorization: 'Bearer\tÀÿ~ ' }
  const [target] = withHeaders(headers)
  headers['X-Team'] = 'changed'
  expect(target?.headers).toEqual({ ...headers, 'X-Team': 'growth' })
})

it.each<[name: string, webhooks: unknown]>([
  ['webhooks', []],
  ['webhooks', urls(6)],
  ['webhooks', { url }],
  ['webhooks[0]', [null]],
  ['webhooks[1].url', [{ url }, { url }]],
  ...['shop.example/t0ken', 'htps://shop.example/?t0ken', undefined, 'https://me:t0ken@a.example/', `${url}#t0ken`].map(
    (wrong): [string, unknown] => ['webhooks[1].url', [{ url }, { url: wrong }]],
  ),
])('a wrong `%s` is refused, and not shown, because it may hold a token: %j', async (name, webhooks) => {
  await expectRefusal(() => readWebhooks(webhooks), `\`${name}\``, /t0ken|shop\.example/)
})

it.each<[name: string, headers: unknown]>([
  ['', 'X-Team: t0ken'],
  ['', new Map([['X-Team', 't0ken']])],
  ['', { 'X Team': 't0ken' }],
  ['', { 't0ken ': 'a' }],
  ['', { '': 't0ken' }],
  ['.X-Team', { 'X-Team': 't0ken\r\nX-Signature: b' }],
  ['.X-Team', { 'X-Team': 't0ken ☃' }],
  ['.X-Team', { 'X-Team': 't0ken\x7f' }],
  ['.X-Team', { 'X-Team': 1 }],
  ['.x-team', { 'X-Team': 'a', 'x-team': 't0ken' }],
  ...RESERVED.map((name): [string, object] => [`.${name}`, { [name]: 't0ken' }]),
])('static headers are refused, without a value of them: `webhooks[0].headers%s`, %j', async (name, headers) => {
  await expectRefusal(() => withHeaders(headers), `\`webhooks[0].headers${name}\``, /t0ken/)
})
