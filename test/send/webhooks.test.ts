import { describe, expect, it, test } from 'vitest'
import { readWebhooks } from '../../src/send/webhooks.ts'

const url = 'https://shop.example/webhooks'

describe('Setting · the service list: up to 5 entries, at least one', () => {
  it.each([1, 5])('takes %i', (count) => {
    const webhooks = Array.from({ length: count }, (_, index) => ({ url: `${url}/${index}` }))
    expect(readWebhooks(webhooks)).toHaveLength(count)
  })

  it.each([
    ['none', [], '0 entries'],
    ['six', Array.from({ length: 6 }, (_, index) => ({ url: `${url}/${index}` })), '6 entries'],
    ['no list', { url }, 'an object'],
  ])('refuses %s', (_case, webhooks, found) => {
    expect(() => readWebhooks(webhooks)).toThrow(
      `\`webhooks\` must be a list of 1 to 5 entries. Got ${found}. Pass URLs, for example [{ url:`,
    )
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
    ['ftp://shop.example/', /must be a full URL/],
    [undefined, /must be a full URL/],
    [
      'https://user:pass@shop.example/',
      /Got a URL with them\. Pass them as the header Authorization in `webhooks\[1\]\.headers`\.$/,
    ],
    ['https://shop.example/#top', /must hold no fragment/],
  ])('refuses %s', (given, expected) => {
    expect(() => readWebhooks([{ url }, { url: given }])).toThrow(expected)
    expect(() => readWebhooks([{ url }, { url: given }])).toThrow('`webhooks[1].url`')
  })

  it('shows no header value, and no name that is not a token', () => {
    for (const headers of [{ 'X-Team': 't0ken\n' }, { 't0ken ': 'a' }, { host: 't0ken' }, ['t0ken']]) {
      expect(() => readWebhooks([{ url, headers }])).toThrow(/^(?!.*t0ken)/s)
    }
  })

  it('does not show a URL that it refuses: it may hold a token', () => {
    expect(() => readWebhooks([{ url: 'htps://shop.example/?token=t0ken' }])).toThrow(/^(?!.*t0ken)/)
  })

  it('refuses the same URL twice, without showing it', () => {
    expect(() => readWebhooks([{ url }, { url }])).toThrow('`webhooks[1].url`')
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
    'upgrade',
    'te',
    'trailer',
    'keep-alive',
    'proxy-connection',
    'transfer-encoding',
    'expect',
    'X-SIGNATURE',
  ])('may not replace %s', (name) => {
    expect(() => withHeaders({ [name]: 'x' })).toThrow(
      `\`webhooks[0].headers.${name}\` is reserved for the sender. Remove it.`,
    )
  })

  it.each([
    [
      'a line break',
      { 'X-Team': 'a\r\nX-Signature: b' },
      /X-Team` must be a Latin-1 string without control characters\. Got a string with other characters\. Pass/,
    ],
    [
      'a zero',
      { 'X-Team': 'a\0b' },
      /X-Team` must be a Latin-1 string without control characters\. Got a string with other characters\. Pass/,
    ],
    ['beyond Latin-1', { 'X-Team': '☃' }, /must be a Latin-1 string .* Got a string with other characters\./],
    ['a number', { 'X-Team': 1 }, /must be a Latin-1 string .* Got a number\./],
    ['a name with a space', { 'X Team': 'a' }, '`webhooks[0].headers`'],
    [
      'an empty name',
      { '': 'a' },
      /must have valid header names\. Got an empty name\. Use letters, digits and hyphens\.$/,
    ],
    [
      'one name in two cases',
      { 'X-Team': 'a', 'x-team': 'b' },
      /x-team` must be given once\. Got the same name in upper and lower case\. Remove one of them\.$/,
    ],
    ['a list', ['X-Team: a'], '`webhooks[0].headers`'],
    ['a Map', new Map([['X-Team', 'a']]), /must be a plain object\. Got an iterable\./],
    ['text', 'X-Team: a', /must be a plain object\. Got a string\./],
  ])('refuses %s', (_case, headers, expected) => {
    expect(() => withHeaders(headers)).toThrow(expected)
  })
})

test('an entry has a url and headers, nothing else', () => {
  expect(() => readWebhooks([{ url, header: {} }])).toThrow('`webhooks[0].header`')
  expect(() => readWebhooks([null])).toThrow('`webhooks[0]`')
})
