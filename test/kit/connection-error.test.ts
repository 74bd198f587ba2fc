import { describe, expect, it } from 'vitest'
import { explainConnectionError } from '../../src/kit/connection-error.ts'

const coded = (code: string, message = code) => Object.assign(new Error(message), { code })

function textOf(thrown: unknown): string {
  const { rule, found, advice } = explainConnectionError(thrown)
  return `${rule}. Got ${found}. ${advice}`
}

describe('explainConnectionError', () => {
  it.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self_signed'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['UNSPECIFIED', 'tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
    ['EPROTO', 'tls'],
    ['CERT_NOT_YET_VALID', 'tls'],
    ['CERT_REVOKED', 'tls'],
    ['INVALID_PURPOSE', 'tls'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
    ['ERR_TLS_HANDSHAKE_TIMEOUT', 'timeout'],
    ['EAI_AGAIN', 'dns'],
    ['EHOSTUNREACH', 'refused'],
    ['ENETUNREACH', 'refused'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
    ['ETIMEDOUT', 'timeout'],
    ['ENOTFOUND', 'dns'],
    ['ENODATA', 'dns'],
    ['ECONNREFUSED', 'refused'],
    ['EMFILE', 'refused'],
    ['ECONNRESET', 'reset'],
    ['EPIPE', 'reset'],
    ['UND_ERR_SOCKET', 'reset'],
    ['HPE_INVALID_CONSTANT', 'http'],
    ['UND_ERR_HEADERS_OVERFLOW', 'http'],
    ['HOOKLINE_RESPONSE_TOO_LONG', 'http'],
    ['UND_ERR_DESTROYED', 'closed'],
    ['HOOKLINE_PRIVATE_ADDRESS', 'private_address'],
    ['SOMETHING_NEW', 'reset'],
  ])('%s is %s, and says what to do', (code, error) => {
    expect(explainConnectionError(coded(code))).toMatchObject({ error, code })
    expect(textOf(coded(code))).toMatch(/^(The|This) .+ must .+\. Got .+\. [A-Z].+[.?]$/)
    expect(textOf(coded(code)).length).toBeLessThan(250)
  })

  it('says of a private address what the option is called, and not which address it is', () => {
    expect(textOf(coded('HOOKLINE_PRIVATE_ADDRESS', '10.1.2.3'))).toBe(
      'The server must have a public address. Got a host with a private or reserved address. Use another URL, or set `allowPrivateAddresses` to true if you trust this one.',
    )
  })

  it.each(['bad response', 'bad upgrade'])('explains what undici calls a %s', (message) => {
    const explanation = explainConnectionError(coded('UND_ERR_SOCKET', message))
    expect(explanation).toMatchObject({ error: 'unexpected_continue', rule: expect.stringContaining('100 Continue') })
  })

  it('classifies the first of several addresses', () => {
    const error = new AggregateError([coded('ECONNREFUSED'), coded('ETIMEDOUT')])
    expect(explainConnectionError(error)).toMatchObject({ error: 'refused', found: 'ECONNREFUSED' })
  })

  it('classifies the cause of an error without a code', () => {
    const error = new Error('fetch failed', { cause: coded('ENOTFOUND') })
    expect(explainConnectionError(error)).toMatchObject({ error: 'dns', found: 'fetch failed' })
  })

  it('classifies an invalid response by the name of its error', () => {
    const error = Object.assign(new Error('broken'), { name: 'HTTPParserError' })
    expect(explainConnectionError(error)).toMatchObject({ error: 'http', found: 'broken' })
  })

  it('classifies an end between two chunks as reset', () => {
    const message = 'Response does not match the HTTP/1.1 protocol (Invalid EOF state)'
    expect(explainConnectionError(Object.assign(new Error(message), { name: 'HTTPParserError' }))).toMatchObject({
      error: 'reset',
      found: message,
    })
  })

  it.each([
    [undefined, 'a thrown undefined'],
    [null, 'a thrown null'],
    ['text', 'a thrown string'],
    [{}, 'a thrown object'],
  ])('classifies %j as reset', (thrown, found) => {
    expect(explainConnectionError(thrown)).toMatchObject({ error: 'reset', found })
  })

  it('quotes an error on one line, without control characters, up to 200 characters', () => {
    const found = explainConnectionError(coded('EPIPE', `one\r\ntwo\u001b[31m\u202e three. ${'x'.repeat(500)}`)).found
    expect(found).toMatch(/^one two \[31m three\. x+$/)
    expect(found).toHaveLength(200)
  })
})
