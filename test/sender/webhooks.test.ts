import { describe, expect, it, test } from 'vitest'
import { readWebhooks } from '../../src/sender/webhooks.ts'

const url = 'https://shop.example/webhooks'

describe('Setting · the service list: up to 5 entries, at least one', () => {
  it.each([1, 2, 3, 4, 5])('takes %i', (count) => {
    const webhooks = Array.from({ length: count }, (_, index) => ({ url: `${url}/${index}` }))
    expect(readWebhooks(webhooks)).toHaveLength(count)
  })

  it.each([
    ['none', []],
    ['six', Array.from({ length: 6 }, (_, index) => ({ url: `${url}/${index}` }))],
    ['no list', { url }],
    ['nothing', undefined],
  ])('refuses %s', (_case, webhooks) => {
    expect(() => readWebhooks(webhooks)).toThrow(/^webhooks: must be a list of one to 5/)
  })
})

describe('Setting · Webhook URL: full, with its scheme', () => {
  it.each([
    ['https://shop.example', 'https://shop.example', '/'],
    ['http://shop.example:8080/a/b', 'http://shop.example:8080', '/a/b'],
    ['https://shop.example/a?b=c&d', 'https://shop.example', '/a?b=c&d'],
    ['https://bücher.example/ä', 'https://xn--bcher-kva.example', '/%C3%A4'],
  ])('takes %s', (given, origin, path) => {
    expect(readWebhooks([{ url: given }])).toMatchObject([{ origin, path }])
  })

  it.each([
    ['shop.example/webhooks', /must be a full URL/],
    ['/webhooks', /must be a full URL/],
    ['ftp://shop.example/', /must be a full URL/],
    ['', /must be a full URL/],
    [undefined, /must be a full URL/],
    ['https://user:pass@shop.example/', /must hold no user and password/],
    ['https://user@shop.example/', /must hold no user and password/],
    ['https://shop.example/#top', /must hold no #fragment/],
  ])('refuses %s', (given, expected) => {
    expect(() => readWebhooks([{ url }, { url: given }])).toThrow(expected)
    expect(() => readWebhooks([{ url }, { url: given }])).toThrow(/^webhooks\[1\]\.url: /)
  })

  it('does not quote a URL that it refuses: it may hold a token', () => {
    expect(() => readWebhooks([{ url: 'htps://shop.example/?token=t0ken' }])).toThrow(/^(?!.*t0ken)/)
  })

  it('refuses the same URL twice', () => {
    expect(() => readWebhooks([{ url }, { url }])).toThrow('webhooks[1].url: is there twice.')
  })

  it('shows it without its query', () => {
    const [target] = readWebhooks([{ url: `${url}?token=t0ken` }])
    expect(target).toMatchObject({ url: `${url}?token=t0ken`, shown: `${url}?…` })
    expect(target?.id).toMatch(/^[0-9a-f]{16}$/)
  })
})

describe('Setting · static headers', () => {
  const withHeaders = (headers: unknown) => readWebhooks([{ url, headers }])

  it('are taken and copied', () => {
    const headers = { 'X-Team': 'growth', authorization: 'Bearer t' }
    const [target] = withHeaders(headers)
    headers['X-Team'] = 'changed'
    expect(target?.headers).toEqual({ 'X-Team': 'growth', authorization: 'Bearer t' })
  })

  it.each([
    'content-type',
    'content-length',
    'content-encoding',
    'user-agent',
    'x-signature',
    'host',
    'connection',
    'transfer-encoding',
    'upgrade',
    'te',
    'trailer',
    'expect',
    'keep-alive',
    'proxy-connection',
    'X-SIGNATURE',
    'Host',
  ])('may not replace %s', (name) => {
    expect(() => withHeaders({ [name]: 'x' })).toThrow(`webhooks[0].headers.${name}: is set by the sender`)
  })

  it.each([
    ['a line break', { 'X-Team': 'a\r\nX-Signature: b' }, /must be text without line breaks/],
    ['a line feed', { 'X-Team': 'a\nb' }, /must be text without line breaks/],
    ['a zero', { 'X-Team': 'a\0b' }, /must be text without line breaks/],
    ['beyond Latin-1', { 'X-Team': '☃' }, /in Latin-1/],
    ['a number', { 'X-Team': 1 }, /must be text/],
    ['a name with a space', { 'X Team': 'a' }, /no header name/],
    ['a name with a line break', { 'X-Team\r\nX': 'a' }, /no header name/],
    ['an empty name', { '': 'a' }, /no header name/],
    ['one name in two cases', { 'X-Team': 'a', 'x-team': 'b' }, /is there twice/],
    ['a list', ['X-Team: a'], /must be a plain object/],
    ['a Map', new Map([['X-Team', 'a']]), /must be a plain object/],
    ['Headers', new Headers({ 'X-Team': 'a' }), /must be a plain object/],
    ['null', null, /must be a plain object/],
  ])('refuses %s', (_case, headers, expected) => {
    expect(() => withHeaders(headers)).toThrow(expected)
  })
})

test('an entry has a url and headers, nothing else', () => {
  expect(() => readWebhooks([{ url, header: {} }])).toThrow('webhooks[0].header: no such option')
  expect(() => readWebhooks([null])).toThrow('webhooks[0]: must be { url, headers }.')
})
