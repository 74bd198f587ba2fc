import { expect, it } from 'vitest'
import { explainConnectionError } from '../../src/kit/connection-error.ts'

const coded = (code: string, message = code) => Object.assign(new Error(message), { code })

function textOf(thrown: unknown): string {
  const { rule, found, advice } = explainConnectionError(thrown)
  return `${rule}. Got ${found}. ${advice}`
}

it.each([
  ['self_signed', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['tls', 'SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE CERT_UNTRUSTED CERT_REJECTED EPROTO ERR_OSSL_X'],
  ['tls', 'CERT_HAS_EXPIRED CERT_NOT_YET_VALID ERR_TLS_CERT_ALTNAME_INVALID HOSTNAME_MISMATCH CERT_REVOKED'],
  ['tls', 'INVALID_PURPOSE CRL_HAS_EXPIRED ERROR_IN_CERT_NOT_AFTER_FIELD PATH_LENGTH_EXCEEDED UNSPECIFIED ERR_SSL_X'],
  ['timeout', 'ERR_TLS_HANDSHAKE_TIMEOUT UND_ERR_CONNECT_TIMEOUT ETIMEDOUT'],
  ['dns', 'EAI_AGAIN ENOTFOUND ENODATA ESERVFAIL'],
  ['refused', 'ECONNREFUSED EHOSTUNREACH ENETUNREACH EHOSTDOWN EADDRNOTAVAIL EACCES EPERM EMFILE ENFILE'],
  ['reset', 'ECONNRESET EPIPE UND_ERR_SOCKET SOMETHING_NEW'],
  ['http', 'HPE_INVALID_CONSTANT ERR_ASSERTION UND_ERR_HEADERS_OVERFLOW HOOKLINE_RESPONSE_TOO_LONG'],
  ['closed', 'UND_ERR_DESTROYED UND_ERR_CLOSED'],
  ['private_address', 'HOOKLINE_PRIVATE_ADDRESS'],
])('an error is %s, and says what to do: %s', (error, codes) => {
  for (const code of codes.split(' ')) {
    expect(explainConnectionError(coded(code))).toMatchObject({ error, code })
    expect(textOf(coded(code))).toMatch(/^(The|This) .+ must .+\. Got .+\. [A-Z].+[.?]$/)
  }
})

const invalid = (message: string) => Object.assign(new Error(message), { name: 'HTTPParserError' })
it.each<[what: string, thrown: unknown, error: string, found: unknown]>([
  ['an invalid response', invalid('broken'), 'http', 'broken'],
  ['a response that ends between two chunks', invalid('(Invalid EOF state)'), 'reset', expect.any(String)],
  ['the first of several addresses', new AggregateError([coded('EPROTO'), coded('EPIPE')]), 'tls', 'EPROTO'],
  ['the cause of an error without a code', new Error('x', { cause: coded('ENOTFOUND') }), 'dns', 'x'],
  ['what is no error', null, 'reset', expect.any(String)],
  ['a private one', coded('HOOKLINE_PRIVATE_ADDRESS', '::1'), 'private_address', expect.not.stringMatching(/\d/)],
])('a code or a cause classifies %s', (_what, thrown, error, found) => {
  expect(explainConnectionError(thrown)).toMatchObject({ error, found })
})

it('an explanation quotes an error on one line, without control characters, up to 200 characters', () => {
  const found = explainConnectionError(coded('EPIPE', `one\r\ntwo\u001b[31m\u202e three. ${'x'.repeat(500)}`)).found
  expect(found).toMatch(/^one two \[31m three\. x+$/)
  expect(found).toHaveLength(200)
})
